"""What a call has spent of its budget, and what a run has been given in all."""

import pytest

from tengen.agents import History
from tengen.agents.bases.stages import num_begun
from tengen.errors import RunError
from tengen.launch import Budget
from tengen.launch.budget import Spending
from tengen.recipes import make_config
from tengen.roles.spent import RunSpent, read_spent, record_spent
from tengen.run import RunDirectory
from tests.refusals import refused


class Clock:
    """Wall time and the runner's own CPU time, which only the test moves."""

    def __init__(self):
        self.now_s = 1000.0
        self.own_s = 7.0

    def spending(self, budget, before=None, num_threads=2):
        return Spending(
            budget,
            before,
            num_threads,
            clock=lambda: self.now_s,
            own_cpu=lambda: self.own_s,
        )


def test_a_call_that_ended_counts_whole(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    assert read_spent(run) == RunSpent()
    record_spent(run, 12.5)
    record_spent(run, 19.75)
    assert read_spent(run) == RunSpent(19.75)
    for damaged in ("", "[]", '{"core_minutes": -1}', '{"core_minutes": NaN}'):
        (run.path / "spent.json").write_text(damaged)
        with refused(RunError, "spent.json is damaged"):
            read_spent(run)


NAMES = ("core_minutes", "core_minutes_in_all", "remaining", "asked")


@pytest.mark.parametrize(
    ("budget", "before", "seconds", "cpu_s", "frames", "expected"),
    [
        (Budget(), RunSpent(7.0, 5), 60.0, 120.0, 0, (9.0, None, None, None)),
        (Budget(games=9), RunSpent(7.0, 5), 60.0, 120.0, 0, (9.0, None, None, None)),
        # A first call: two cores for ten minutes, a quarter of them gone.
        (Budget(minutes=10.0), RunSpent(), 150.0, 300.0, 0, (5.0, 20.0, 0.75, 1.0)),
        # The same with a tenth of these cores: the budget is a tenth, not the share.
        (Budget(minutes=10.0), RunSpent(), 150.0, 30.0, 0, (0.5, 2.0, 0.75, 1.0)),
        # CPU-seconds pass as fast as processes work.
        (Budget(cpu_seconds=1200), RunSpent(), 600.0, 300.0, 0, (5.0, 20.0, 0.75, 1.0)),
        (
            Budget(cpu_seconds=600),
            RunSpent(5.0),
            90.0,
            900.0,
            0,
            (20.0, 20.0, 0.0, 0.75),
        ),
        # The minutes end first, and then the CPU-seconds.
        (
            Budget(minutes=10.0, cpu_seconds=1e6),
            RunSpent(),
            150.0,
            300.0,
            0,
            (5.0, 20.0, 0.75, 1.0),
        ),
        (
            Budget(minutes=1000.0, cpu_seconds=1200),
            RunSpent(),
            150.0,
            300.0,
            0,
            (5.0, 20.0, 0.75, 1.0),
        ),
        # Nothing is measured yet.
        (Budget(minutes=10.0), RunSpent(20.0), 0.0, 0.0, 0, (20.0, 40.0, 0.5, 0.5)),
        # Fifty minutes after those ten: what sixty at once say after 35 minutes.
        (
            Budget(minutes=50.0),
            RunSpent(20.0),
            1500.0,
            3000.0,
            0,
            (70.0, 120, 5 / 12, 5 / 6),
        ),
        # Over its time.
        (
            Budget(minutes=10.0),
            RunSpent(20.0),
            700.0,
            1200.0,
            0,
            (40.0, 40.0, 0.0, 0.5),
        ),
        # Frames are frames, however little CPU time they took.
        (
            Budget(frames=300),
            RunSpent(0.0, 100),
            600.0,
            6.0,
            150,
            (0.1, None, 3 / 8, 0.75),
        ),
        # The nearer end counts.
        (
            Budget(minutes=10.0, frames=300),
            RunSpent(0.0, 100),
            60.0,
            120.0,
            270,
            (2.0, 20.0, 30 / 400, 0.75),
        ),
        (
            Budget(minutes=10.0, frames=300),
            RunSpent(0.0, 100),
            570.0,
            1140.0,
            0,
            (19.0, 20.0, 0.05, 1.0),
        ),
    ],
)
def test_what_a_turn_is_told(budget, before, seconds, cpu_s, frames, expected):
    clock = Clock()
    spending = clock.spending(budget, before)
    spending.begin_work()
    clock.now_s += seconds
    clock.own_s += cpu_s / 4
    spending.count({"cpu_s": cpu_s / 2})
    spending.count({"cpu_s": cpu_s / 4})
    if frames:
        spending.end_turn({"num_rows": frames}, counts_frames=True)
    outlook = spending.outlook()
    assert [outlook[name] for name in NAMES] == [
        value if value is None else pytest.approx(value) for value in expected
    ]


def test_a_call_ends_with_its_cpu_seconds_however_long_they_take():
    clock = Clock()
    spending = clock.spending(Budget(cpu_seconds=100, fits_generations=True))
    clock.now_s += 1000.0
    clock.own_s += 50.0  # start-up does not count
    spending.begin_work()
    assert spending.seconds_left == pytest.approx(50.0)  # two cores
    assert spending.counts_cpu
    assert spending.generation_s == pytest.approx(50.0 / 8)
    clock.now_s += 300.0
    spending.count({"cpu_s": 60.0})
    assert spending.seconds_left == pytest.approx(200.0)  # a fifth of a core
    assert spending.generation_s == pytest.approx(50.0 / 8)
    assert not spending.is_over(199.0)
    assert spending.is_late(201.0)
    clock.own_s += 40.0
    assert spending.is_over()


def test_a_starved_call_is_given_no_time_that_it_does_not_get():
    """An hour with a twentieth of two cores is no budget for a larger network."""
    clock = Clock()
    spending = clock.spending(Budget(minutes=60.0))
    spending.begin_work()
    for _ in range(30):
        clock.now_s += 60.0
        spending.count({"cpu_s": 6.0})
    outlook = spending.outlook()
    assert outlook["core_minutes"] == pytest.approx(3.0)
    assert outlook["core_minutes_in_all"] == pytest.approx(6.0)
    config = make_config("gomoku/9", None, None)
    history = History(outlook["core_minutes"], outlook["core_minutes_in_all"])
    assert num_begun(config.stages, history) == 0


@pytest.mark.parametrize(
    "first",
    [
        {"stage": "self-play", "num_games": 0, "num_evaluations": 0},
        {"num_rows": 512, "num_episodes": 3},
        {"num_steps": 1, "stage": "learning"},
    ],
)
def test_minutes_begin_with_the_first_turn_of_work(first):
    clock = Clock()
    spending = clock.spending(Budget(minutes=1.0))
    for start in (
        {"stage": "starting", "cpu_s": 20.0},
        {"num_steps": 0, "checkpoint": 0, "cpu_s": 5.0},
        {"candidate": 0, "check": {}, "cpu_s": 5.0},
    ):
        clock.now_s += 290.0
        spending.count(dict(start))
        assert not spending.is_over()
        assert spending.seconds_left == 60.0
    spending.count({**first, "cpu_s": 2.0})
    assert not spending.is_over()
    assert (spending.cpu_s, spending.core_minutes) == (32.0, 0.0)
    clock.now_s += 30.0
    spending.count({"num_games": 3, "cpu_s": 15.0})
    assert (spending.seconds_left, spending.core_minutes) == (30.0, 0.25)
    assert spending.is_over(30.0)
    clock.now_s += 30.0
    assert spending.is_over()


def test_a_message_keeps_no_cpu_time():
    """Roles' reports go on to files, where it would look like the turn's."""
    report = {"stopped": True, "cpu_s": 1.0}
    Clock().spending(Budget()).count(report)
    assert report == {"stopped": True}


@pytest.mark.parametrize(
    ("budget", "generation_s"),
    [
        (Budget(minutes=10.0, fits_generations=True), 75.0),
        (Budget(minutes=10.0), None),
        (Budget(games=100, fits_generations=True), None),
        # A run by games is the same on any machine.
        (Budget(games=100, minutes=10.0, fits_generations=True), None),
    ],
)
def test_a_generation_is_given_a_part_of_the_minutes(budget, generation_s):
    assert Clock().spending(budget).generation_s == generation_s
