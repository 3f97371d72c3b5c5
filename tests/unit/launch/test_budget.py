"""How far a budget is spent, by which networks grow."""

import pytest

from tengen.launch import Budget


@pytest.mark.parametrize(
    ("budget", "counts", "share"),
    [
        (Budget(), (50.0, 7, 0), None),
        (Budget(minutes=2.0), (0.0, 0, 0), 0.0),
        (Budget(minutes=2.0), (48.0, 10_000, 500), 0.4),
        (Budget(minutes=2.0), (130.0, 0, 0), 1.0),
        (Budget(games=100), (9999.0, 40, 0), 0.4),
        # Interrupted after 30 of 100: the other 70 complete them.
        (Budget(games=70), (9999.0, 10, 30), 0.4),
        (Budget(games=100), (9999.0, 120, 30), 1.0),
        # The nearer end counts.
        (Budget(minutes=2.0, games=100), (12.0, 40, 0), 0.4),
        (Budget(minutes=2.0, games=100), (48.0, 10, 0), 0.4),
    ],
)
def test_the_share_that_is_spent(budget, counts, share):
    elapsed_s, games, before = counts
    assert budget.spent(elapsed_s=elapsed_s, games=games, games_before=before) == share
