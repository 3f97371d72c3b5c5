"""The share of time in which roles work that all work at once."""

import pytest

from tengen.observe import BusyTimes


@pytest.fixture
def clock():
    class Clock:
        now_s = 100.0

        def __call__(self):
            return self.now_s

    return Clock()


def work(busy, clock, role, seconds, worked=True):
    busy.begin(role)
    clock.now_s += seconds
    busy.end(role, worked=worked)


def test_shares_overlap_and_are_of_the_whole_time(clock):
    busy = BusyTimes(clock)
    busy.begin("selfplay")
    work(busy, clock, "learn", 6.0)
    busy.end("selfplay", worked=True)
    clock.now_s += 2.0
    assert busy.shares() == {"selfplay": 0.75, "learn": 0.75}


def test_looking_for_work_is_no_work(clock):
    busy = BusyTimes(clock)
    work(busy, clock, "gate", 3.0, worked=False)
    work(busy, clock, "learn", 1.0)
    assert busy.shares() == {"learn": 0.25}


def test_a_turn_that_goes_on_counts_and_no_share_is_above_one(clock):
    """A generation of an hour ends within a look at the last ten minutes."""
    busy = BusyTimes(clock)
    busy.begin("selfplay")
    for _ in range(60):
        work(busy, clock, "learn", 15.0)
        clock.now_s += 45.0
        shares = busy.shares()
        assert shares["selfplay"] == 1.0
        assert shares["learn"] == pytest.approx(0.25, abs=0.01)
    busy.end("selfplay", worked=True)
    assert busy.shares()["selfplay"] == 1.0


def test_what_was_before_the_last_ten_minutes_is_forgotten(clock):
    busy = BusyTimes(clock)
    work(busy, clock, "learn", 300.0)
    clock.now_s += 450.0
    assert busy.shares()["learn"] == 0.25
    clock.now_s += 1000.0
    assert busy.shares()["learn"] == 0.0


def test_a_restart_counts_an_open_turn_from_then_on(clock):
    busy = BusyTimes(clock)
    work(busy, clock, "learn", 5.0)
    busy.begin("selfplay")
    clock.now_s += 5.0
    busy.restart()
    clock.now_s += 4.0
    assert busy.shares() == {"selfplay": 1.0}
