"""Numbers of generations for an outage of an hour."""

from __future__ import annotations

import itertools

import pytest

from tengen.remote.messages import MOST_AHEAD
from tengen.remote.stock import NumberStock


class Player:
    """Begins generations, and claims as a mirror does, once a look."""

    def __init__(self):
        self.now_s = 0.0
        self.stock = NumberStock()
        self.known = set()
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
        self.known.add(self.stock.begin(self.known, self.now_s))
        self.now_s += seconds
        left = self.stock.num_free(self.known)
        self.look()
        return left


@pytest.mark.parametrize(("seconds", "wanted"), [(60, 60), (20, 180), (1000, 15)])
def test_it_is_for_an_hour_at_any_time(seconds, wanted):
    player = Player()
    left = [player.play(seconds) for _ in range(300)]
    assert min(left[10:]) >= wanted
    assert max(left) <= wanted * 1.5


def test_the_last_pace_counts_where_it_is_faster():
    player = Player()
    for _ in range(20):
        player.play(600)
    player.play(30)
    player.play(30)
    for _ in range(5):
        player.look()
    assert player.stock.num_free(player.known) >= 120


def test_fast_generations_have_what_the_service_gives():
    player = Player()
    left = [player.play(0.5) for _ in range(300)]
    assert min(left[50:]) >= MOST_AHEAD * 3 // 4 - 1
    assert max(left) <= MOST_AHEAD


def test_an_outage_is_no_pace():
    player = Player()
    for _ in range(20):
        player.play(60)
    while player.stock.begin(player.known, player.now_s) is not None:
        player.known.add(player.stock.begin(player.known, player.now_s))
        player.now_s += 60
    player.now_s += 100_000
    for _ in range(10):
        player.look()
    assert player.stock.num_free(player.known) >= 60
