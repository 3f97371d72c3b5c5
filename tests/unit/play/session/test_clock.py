"""Time settings, and searches that stay within them."""

import pytest

from tengen.play.growing import Contest
from tengen.play.session.clock import Clock, TimeSettings
from tengen.play.session.searches import Limits, Thinker


def settings_of(kind, main_s, period_s=0.0, count=0):
    return TimeSettings(kind, main_s, period_s, count)


def test_no_clock_is_no_limit():
    clock = Clock(TimeSettings())
    assert not clock.is_running
    assert clock.budget_s(0, 0, 81) is None


# 0.8 of 81 points are 64.8 moves, half of them per side, with a minimum of 20 left; 600
# s minus a tenth and 0.15 s.
@pytest.mark.parametrize(
    ("settings", "ply", "budget_s"),
    [
        (settings_of("absolute", 600), 0, (540 - 0.15) / 32.4),
        (settings_of("absolute", 600), 20, (540 - 0.15) / 22.4),
        (settings_of("absolute", 600), 80, (540 - 0.15) / 20),
        (settings_of("absolute", 0.1), 0, 0.0),
        (settings_of("byoyomi", 0, 10, 3), 0, 8.85),
        (settings_of("byoyomi", 600, 10, 3), 0, (540 - 0.15) / 32.4),
        (settings_of("byoyomi", 60, 10, 3), 0, 8.85),
        (settings_of("canadian", 0, 100, 10), 0, (90 - 0.15) / 10),
        (settings_of("canadian", 600, 1, 10), 0, (540 - 0.15) / 32.4),
        (settings_of("fischer", 600, 10), 0, (540 - 0.15) / 32.4 + 9),
        (settings_of("fischer", 5, 10), 0, 4.5 - 0.15),
        (settings_of("fischer", 0, 10), 0, 0),
        (TimeSettings("fischer", 600, 10, 0, 900, 8), 0, 7.2 - 0.15),
    ],
)
def test_worked_budgets(settings, ply, budget_s):
    assert Clock(settings).budget_s(1, ply, 81) == pytest.approx(budget_s)


def test_time_is_spent():
    clock = Clock(settings_of("canadian", 10, 100, 4))
    # Each move takes 0.02 s longer than its search.
    clock.spend(0, 7.98)
    clock.spend(0, 4.98)  # 3 s into the first period
    assert clock.budget_s(0, 0, 81) == pytest.approx((97 * 0.9 - 0.15) / 3)
    for _ in range(3):
        clock.spend(0, 1)
    assert clock.budget_s(0, 0, 81) == pytest.approx((90 - 0.15) / 4)
    # White's clock has not been running.
    assert clock.budget_s(1, 80, 81) == pytest.approx((90 - 0.15) / 4)
    clock.set_left(1, 20, 2)
    assert clock.budget_s(1, 0, 81) == pytest.approx((18 - 0.15) / 2)
    clock.set_left(1, 1000, 0)
    assert clock.budget_s(1, 0, 81) == pytest.approx((900 - 0.15) / 32.4)


def test_a_move_adds_to_the_main_time_up_to_a_limit():
    clock = Clock(TimeSettings("fischer", 100, 10, 0, 105))
    clock.spend(0, 7.98)
    assert clock.budget_s(0, 0, 81) == pytest.approx((102 * 0.9 - 0.15) / 32.4 + 9)
    clock.spend(0, 0.98)
    assert clock.budget_s(0, 0, 81) == pytest.approx((105 * 0.9 - 0.15) / 32.4 + 9)
    # The controller's time is main time, whatever number of stones it sends.
    clock.set_left(0, 3, 1)
    assert clock.budget_s(0, 0, 81) == pytest.approx(2.7 - 0.15)


class RefereeClock:
    """An independent server clock, with assertions that fail if time is lost."""

    def __init__(self, kind, main_s, period_s, count):
        self.kind, self.main_s = kind, main_s
        self.period_s, self.count = period_s, count
        self.left_s, self.moves = period_s, count

    def spend(self, seconds):
        from_main = min(seconds, self.main_s)
        self.main_s -= from_main
        over_s = seconds - from_main
        if self.kind == "absolute":
            assert over_s == 0
        if self.kind == "fischer":
            assert over_s == 0
            self.main_s += self.period_s
        if self.kind == "byoyomi":
            while over_s > self.period_s:
                over_s -= self.period_s
                self.count -= 1
                assert self.count > 0
        if self.kind == "canadian" and self.main_s == 0:
            self.left_s -= over_s
            assert self.left_s > 0
            self.moves -= 1
            if self.moves == 0:
                self.left_s, self.moves = self.period_s, self.count


class FakeSearch:
    """A search on a machine with a given speed."""

    is_proven = False

    def __init__(self, machine, seconds, share=0.5, *, is_best=True):
        self.machine, self.seconds = machine, seconds
        self.share, self.is_best = share, is_best
        self.num_simulations = 0
        machine[0] += seconds  # the root's evaluation

    def grow(self, num_simulations):
        self.num_simulations += num_simulations
        self.machine[0] += num_simulations * self.seconds

    def contest(self):
        """Two moves share all visits, in a constant ratio."""
        most = round(self.share * self.num_simulations)
        second = self.num_simulations - most
        return Contest(most, second, self.is_best, has_best_value=True)


def warmed(simulation_s, num_simulations=1000):
    """Returns a machine, and a thinker that has measured its speed."""
    machine = [0.0]
    thinker = Thinker(now=lambda: machine[0])
    think(thinker, machine, simulation_s, Limits(num_simulations))
    return machine, thinker


def think(thinker, machine, seconds, limits, between=lambda: False):
    begun_s = machine[0]
    search = FakeSearch(machine, seconds)
    thinker.think(search, limits, begun_s, between)
    return search, machine[0] - begun_s


@pytest.mark.parametrize("simulation_s", [0.00002, 0.002, 0.05])
@pytest.mark.parametrize(
    "settings",
    [
        ("absolute", 300, 0, 0),
        ("absolute", 30, 0, 0),
        ("byoyomi", 0, 1, 1),
        ("byoyomi", 20, 5, 3),
        ("canadian", 0, 25, 20),
        ("canadian", 5, 10, 5),
        ("fischer", 60, 1, 0),
        ("fischer", 2, 5, 0),
    ],
)
@pytest.mark.parametrize("is_hard", [False, True])
def test_no_game_is_lost_on_time(settings, simulation_s, is_hard):
    machine = [1000.0]
    thinker = Thinker(now=lambda: machine[0])
    clock, referee = Clock(settings_of(*settings)), RefereeClock(*settings)
    used = []
    for ply in range(0, 160, 2):
        limits = Limits(
            1 << 24,
            clock.budget_s(0, ply, 81),
            clock.most_s(0, ply, 81) if is_hard else None,
            may_end_early=is_hard,
        )
        _, seconds = think(thinker, machine, simulation_s, limits)
        clock.spend(0, seconds)
        referee.spend(seconds + 0.01)  # the round trip to the server
        used.append(seconds)
    # The available time is used: in overtime, most of every period.
    if settings[0] == "byoyomi" and simulation_s < 0.01:
        assert used[-1] > 0.5 * settings[2]
    if settings == ("absolute", 300, 0, 0) and simulation_s < 0.01:
        assert sum(used) > 200


def test_limits_of_simulations_are_met():
    machine = [0.0]
    thinker = Thinker(now=lambda: machine[0])
    for simulations in (1, 2, 1000, 7):
        search, _ = think(thinker, machine, 0.001, Limits(simulations))
        assert search.num_simulations == simulations
    assert think(thinker, machine, 0.001, Limits(0))[0].num_simulations == 0


@pytest.mark.parametrize(
    ("share", "is_best", "seconds"),
    [
        (0.9, True, 10 / 1.8),  # the lead of 0.8 n exceeds the simulations to come
        (0.6, True, 10 / 1.2),  # so does the lead of 0.2 n, somewhat later
        (0.55, True, 25 / 1.1),  # unclear: the same, of the time for a hard move
        (0.5, True, 25.0),  # both moves are equally good: the maximum time
        (0.9, False, 25.0),  # the most visited move is not the one to be played
    ],
)
def test_hard_moves_get_more_time_and_clear_ones_less(share, is_best, seconds):
    machine, thinker = warmed(0.001)
    search = FakeSearch(machine, 0.001, share, is_best=is_best)
    begun_s = machine[0]
    limits = Limits(1 << 24, 10.0, 25.0, may_end_early=True)
    thinker.think(search, limits, begun_s, lambda: False)
    assert machine[0] - begun_s == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_a_search_ends_where_simulations_cannot_change_the_move(share):
    machine, thinker = warmed(0.0001)
    search = FakeSearch(machine, 0.0001, share)
    limits = Limits(100_000, may_end_early=True)
    thinker.think(search, limits, machine[0], lambda: False)
    # The lead is (2 share - 1) n, and 100,000 - n simulations remain.
    assert search.num_simulations == pytest.approx(100_000 / (2 * share), rel=0.02)
    whole = FakeSearch(machine, 0.0001, share)
    thinker.think(whole, Limits(100_000), machine[0], lambda: False)
    assert whole.num_simulations == 100_000


def test_a_look_between_slices_ends_a_search():
    machine, thinker = warmed(0.001, 100)
    looks = iter([False, False, True])
    search, seconds = think(
        thinker, machine, 0.001, Limits(1 << 20), lambda: next(looks)
    )
    # Three slices of a twentieth of a second.
    assert 3 <= search.num_simulations <= 160
    assert seconds < 0.2


def test_a_machine_that_grows_slow_is_noticed():
    machine, thinker = warmed(0.0001, 10_000)
    _, seconds = think(thinker, machine, 0.01, Limits(1 << 20, 10.0))
    assert seconds < 12
    _, seconds = think(thinker, machine, 0.01, Limits(1 << 20, 2.0))
    assert seconds < 2.1


class CachedSearch(FakeSearch):
    """Every third slice takes no time, because its positions are cached."""

    num_slices = 0

    def grow(self, num_simulations):
        self.num_simulations += num_simulations
        self.num_slices += 1
        is_known = self.num_slices % 3 == 0
        self.machine[0] += num_simulations * (1e-7 if is_known else self.seconds)


def test_a_cache_does_not_make_a_search_too_long():
    machine = [0.0]
    thinker = Thinker(now=lambda: machine[0])
    for _ in range(20):
        begun_s = machine[0]
        search = CachedSearch(machine, 0.001)
        thinker.think(search, Limits(1 << 24, 0.1), begun_s, lambda: False)
        assert search.num_simulations > 0
        assert machine[0] - begun_s < 0.12
