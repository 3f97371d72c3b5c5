"""What a call has spent of its budget, and what a run has been given in all."""

import pytest

from tengen.errors import RunError
from tengen.launch import Budget
from tengen.launch.budget import Spending
from tengen.roles import RunSpent, read_spent, record_spent
from tengen.run import RunDirectory


class Clock:
    """Stands in for ``time`` of ``launch.budget``."""

    def __init__(self, monkeypatch):
        self.now_s = 1000.0
        monkeypatch.setattr("tengen.launch.budget.time", self)

    def monotonic(self):
        return self.now_s


def test_a_call_that_ended_counts_whole(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    assert read_spent(run) == RunSpent()
    record_spent(run, 12.5)
    record_spent(run, 19.75)
    assert read_spent(run) == RunSpent(19.75)
    for damaged in ("", "[]", '{"core_minutes": -1}', '{"core_minutes": NaN}'):
        (run.path / "spent.json").write_text(damaged)
        with pytest.raises(RunError, match=r"spent\.json is damaged; remove it"):
            read_spent(run)


NAMES = ("core_minutes", "core_minutes_in_all", "remaining", "asked")


@pytest.mark.parametrize(
    ("budget", "before", "seconds", "frames", "expected"),
    [
        (Budget(), RunSpent(7.0, 5), 60.0, 0, (9.0, None, None, None)),
        (Budget(games=9), RunSpent(7.0, 5), 60.0, 0, (9.0, None, None, None)),
        # A first call: two cores for ten minutes, a quarter of them gone.
        (Budget(minutes=10.0), RunSpent(), 150.0, 0, (5.0, 20.0, 0.75, 1.0)),
        # Fifty minutes after those ten: what sixty at once say after 35 minutes.
        (Budget(minutes=50.0), RunSpent(20.0), 1500.0, 0, (70.0, 120, 5 / 12, 5 / 6)),
        (Budget(minutes=60.0), RunSpent(), 2100.0, 0, (70.0, 120.0, 5 / 12, 1.0)),
        # Over its time.
        (Budget(minutes=10.0), RunSpent(20.0), 700.0, 0, (130 / 3, 40.0, 0.0, 0.5)),
        (Budget(frames=300), RunSpent(0.0, 100), 60.0, 150, (2.0, None, 3 / 8, 0.75)),
        # The nearer end counts.
        (
            Budget(minutes=10.0, frames=300),
            RunSpent(0.0, 100),
            60.0,
            270,
            (2.0, 20.0, 30 / 400, 0.75),
        ),
        (
            Budget(minutes=10.0, frames=300),
            RunSpent(0.0, 100),
            570.0,
            0,
            (19.0, 20.0, 0.05, 1.0),
        ),
    ],
)
def test_what_a_turn_is_told(monkeypatch, budget, before, seconds, frames, expected):
    clock = Clock(monkeypatch)
    spending = Spending(budget, before, num_threads=2)
    clock.now_s += seconds
    if frames:
        spending.end_turn({"num_rows": frames}, counts_frames=True)
    outlook = spending.outlook()
    assert [outlook[name] for name in NAMES] == [
        value if value is None else pytest.approx(value) for value in expected
    ]
