"""Numbers of generations for an outage of an hour."""

from __future__ import annotations

import itertools
import time

import pytest

from tengen.mirror import stock
from tengen.mirror.messages import MOST_AHEAD
from tests.integration.runs import wait_for
from tests.unit.mirror.playing import claimed, play, writer_of


class Clock:
    """The time, which may be put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_s = 0.0
        monkeypatch.setattr(stock, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Player:
    """Begins generations, and claims as a mirror does, once a look."""

    def __init__(self, clock):
        self.stock = stock.NumberStock()
        self.known = set()
        self._clock = clock
        self._numbers = itertools.count(1)
        self._claimed = []
        for _ in range(3):
            self.look()

    def look(self):
        lacking = self.stock.num_lacking(self.known)
        self._claimed += itertools.islice(self._numbers, lacking)
        self.stock.put(self._claimed)

    def play(self, seconds):
        """Plays a generation; returns how many numbers are left before the look."""
        self.known.add(self.stock.begin(self.known))
        self._clock.ahead_s += seconds
        left = self.stock.num_free(self.known)
        self.look()
        return left


@pytest.mark.parametrize(("seconds", "wanted"), [(60, 60), (20, 180), (1000, 15)])
def test_it_is_for_an_hour_at_any_time(clock, seconds, wanted):
    player = Player(clock)
    left = [player.play(seconds) for _ in range(300)]
    assert min(left[10:]) >= wanted
    assert max(left) <= wanted * 1.5


def test_the_last_pace_counts_where_it_is_faster(clock):
    player = Player(clock)
    for _ in range(20):
        player.play(600)
    player.play(30)
    player.play(30)
    for _ in range(5):
        player.look()
    assert player.stock.num_free(player.known) >= 120


def test_fast_generations_have_what_the_service_gives(clock):
    player = Player(clock)
    left = [player.play(0.5) for _ in range(300)]
    assert min(left[50:]) >= MOST_AHEAD * 3 // 4 - 1
    assert max(left) <= MOST_AHEAD


def test_an_outage_is_no_pace(clock):
    player = Player(clock)
    for _ in range(20):
        player.play(60)
    while player.stock.begin(player.known) is not None:
        player.known.add(player.stock.begin(player.known))
        clock.ahead_s += 60
    clock.ahead_s += 100_000
    for _ in range(10):
        player.look()
    assert player.stock.num_free(player.known) >= 60


def test_a_mirror_has_an_hour_in_stock(host, mirror_at, tmp_path, clock):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)

    def num_left():
        return mirror._stock.num_free(mirror._local_generations())

    with writer_of(mirror) as writer:
        for _ in range(3):
            play(mirror, writer, range(1))
            clock.ahead_s += 60
        for _ in range(30):
            wait_for(lambda: num_left() >= 60)
            play(mirror, writer, range(1))
            clock.ahead_s += 60
            assert num_left() >= 59
