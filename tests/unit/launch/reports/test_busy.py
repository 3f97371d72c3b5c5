"""The share of time in which roles work that all work at once."""

import pytest

from tengen.observe.roles import Spans


@pytest.mark.parametrize(
    ("worked", "first_s", "now_s", "open_s", "share"),
    [
        ([(0, 6)], 0, 8, None, 0.75),
        # A turn in progress counts from its start, or from when counting began.
        ([], 100, 104, 90, 1.0),
        ([(0, 5)], 10, 14, 5, 1.0),
        # A generation of an hour ends within a look at the last ten minutes.
        ([], 0, 3600, 0, 1.0),
        ([(60 * n, 60 * n + 15) for n in range(60)], 0, 3600, None, 0.25),
        # What was before the last ten minutes is forgotten.
        ([(0, 300)], 0, 750, None, 0.25),
        ([(0, 300)], 0, 1750, None, 0.0),
    ],
)
def test_a_share_is_of_the_last_ten_minutes(worked, first_s, now_s, open_s, share):
    spans = Spans()
    for begun_s, ended_s in worked:
        spans.add(begun_s, ended_s)
    assert spans.share(first_s, now_s, open_s) == pytest.approx(share, abs=0.01)
