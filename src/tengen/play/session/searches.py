"""Limits the time, simulations and memory of searches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tengen.games import Game
from tengen.play.growing import GrowingSearch

USUAL_SIMULATIONS = 400
"""Default number of simulations per move in a session."""

_MAX_TREE_BYTES = 1 << 30
# A simulation adds one node: about _NODE_BYTES plus _LEGAL_BYTES per legal action.
_NODE_BYTES = 200
_LEGAL_BYTES = 6


def most_simulations(game: Game, tree_bytes: int | None = None) -> int:
    """Returns the number of simulations whose search tree fits into the given memory.

    Args:
        game: The game to search.
        tree_bytes: Memory for the tree, limited to 1 GiB; None for 1 GiB.
    """
    room = _MAX_TREE_BYTES if tree_bytes is None else min(tree_bytes, _MAX_TREE_BYTES)
    return room // (_NODE_BYTES + _LEGAL_BYTES * game.num_actions)


_SLICE_S = 0.05
# Maximum share of a move's remaining time that one slice of the search may take.
_SLICE_PART = 0.25
_MAX_SLICE = 1 << 16
_MAX_SPEED_UP = 2.0
# The most visited move is clearly best if the second move has at most this share of its
# visits and no higher value.
_CLEAR_PART = 0.75


@dataclass(frozen=True)
class Limits:
    """Limits of a search. The search ends when it reaches any of them."""

    simulations: int
    """Total number of simulations of the search."""
    seconds: float | None = None
    """Time limit in seconds after the move was requested; None for no limit."""
    most_seconds: float | None = None
    """Time limit in seconds if no move is clearly best, at least ``seconds``; None for
    ``seconds``."""
    may_end_early: bool = False
    """Whether the search stops once the remaining simulations cannot change which move
    is most visited. If that move is clearly best, only simulations within ``seconds``
    count."""

    @property
    def last_s(self) -> float | None:
        """The maximum time of the search, in seconds; None for no limit."""
        return self.seconds if self.most_seconds is None else self.most_seconds


class Thinker:
    """Extends searches within limits, and measures their speed.

    Args:
        now: A function that returns a monotonic time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rate: float | None = None  # Simulations per second, of recent slices.

    def think(
        self,
        search: GrowingSearch,
        limits: Limits,
        begun_s: float,
        between: Callable[[], bool],
    ) -> None:
        """Extends a search until it reaches a limit or its result is proven. Blocks.

        If there is no time for a single simulation, the search keeps the network's
        policy, which then determines the move.

        Args:
            search: The search to extend.
            limits: Limits of the search.
            begun_s: Time at which the move was requested, from ``now``.
            between: Called between slices; ends the search if it returns True.
        """
        while not search.is_proven and search.num_simulations < limits.simulations:
            left_s = None
            if limits.last_s is not None:
                left_s = limits.last_s - (self._now() - begun_s)
            size = min(self._slice(left_s), limits.simulations - search.num_simulations)
            if size == 0 or self._is_decided(search, limits, left_s):
                return
            started_s, before = self._now(), search.num_simulations
            search.grow(size)
            self._measure(search.num_simulations - before, self._now() - started_s)
            if between():
                return

    def _is_decided(
        self, search: GrowingSearch, limits: Limits, left_s: float | None
    ) -> bool:
        """Returns whether no remaining simulations can change the chosen move."""
        if not limits.may_end_early or search.num_simulations == 0:
            return False
        contest = search.contest()
        if not contest.is_best:
            return False
        to_come = limits.simulations - search.num_simulations
        if limits.seconds is not None and limits.last_s is not None:
            assert left_s is not None
            if self._rate is None:
                return False
            is_clear = contest.second_visits <= _CLEAR_PART * contest.most_visits
            if is_clear and contest.has_best_value:
                left_s -= limits.last_s - limits.seconds
            to_come = min(to_come, max(0, int(self._rate * left_s)))
        return contest.most_visits - contest.second_visits > to_come

    def _slice(self, left_s: float | None) -> int:
        """Returns the number of simulations to run before the limits are checked."""
        if left_s is not None and left_s <= 0:
            return 0
        if self._rate is None:
            return 1
        wanted_s = _SLICE_S if left_s is None else min(_SLICE_S, _SLICE_PART * left_s)
        size = int(self._rate * wanted_s)
        if size == 0 and left_s is not None and self._rate * left_s < 1:
            return 0  # A single simulation would exceed the time limit.
        return min(max(size, 1), _MAX_SLICE)

    def _measure(self, simulations: int, seconds: float) -> None:
        if simulations == 0:
            return
        rate = simulations / max(seconds, 1e-6)
        # Limit the increase of the rate: cache hits can make one slice unusually fast.
        most = rate if self._rate is None else _MAX_SPEED_UP * self._rate
        self._rate = min(rate, most)
