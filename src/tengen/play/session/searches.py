"""The searches of a session: they keep to limits of time and of memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tengen import _core
from tengen.errors import TengenError
from tengen.games import Game
from tengen.play.growing import Analysis, GrowingSearch
from tengen.play.player import Player

__all__ = ["USUAL_SIMULATIONS", "Limits", "Searches", "Thinker", "most_simulations"]

USUAL_SIMULATIONS = 400
"""Simulations of a move without any other limit."""

_MAX_TREE_BYTES = 1 << 30
# The longest variation that is reported.
_MAX_VARIATION = 15
# Bytes that one simulation adds to a tree: of the node, and of each legal action.
_NODE_BYTES = 200
_LEGAL_BYTES = 6


def most_simulations(game: Game, tree_bytes: int | None = None) -> int:
    """Returns how many simulations a tree has room for.

    Args:
        game: The game to search.
        tree_bytes: Memory for the tree, at most 1 GiB; None for 1 GiB.
    """
    room = _MAX_TREE_BYTES if tree_bytes is None else min(tree_bytes, _MAX_TREE_BYTES)
    return room // (_NODE_BYTES + _LEGAL_BYTES * game.num_actions)


class Searches:
    """Makes the searches of one session. Used by one thread.

    Args:
        threads: Threads that search one tree.
        usual: Simulations of a usual move, which batches are sized for.
    """

    def __init__(self, threads: int, usual: int = USUAL_SIMULATIONS) -> None:
        self.threads = threads
        self._usual = min(usual, USUAL_SIMULATIONS)
        self._thinker = Thinker()

    def run(
        self,
        player: Player,
        moves: Sequence[int],
        limits: Limits,
        begun_s: float,
        between: Callable[[Callable[[], Analysis]], bool],
        left_out: Sequence[tuple[int, int, int]] = (),
    ) -> Analysis:
        """Returns the analysis of a search within limits. Blocks.

        Args:
            player: The player that searches.
            moves: Actions from the start of its game, which is not over.
            limits: When the search ends.
            begun_s: When the move was requested, by ``time.monotonic``.
            between: Called between slices with a function that returns the analysis so
                far; True ends the search.
            left_out: As for ``Player.begin``.
        """
        with player.begin(
            moves, self._usual, threads=self.threads, left_out=left_out
        ) as search:
            self._thinker.think(
                search,
                limits,
                begun_s,
                lambda: between(lambda: search.analysis(_MAX_VARIATION)),
            )
            return search.analysis(_MAX_VARIATION)

    @staticmethod
    def ponder(search: Callable[[], object]) -> bool:
        """Runs a search in the opponent's time; returns whether it succeeded.

        If it fails, a line on stderr says why. The next requested search will fail too
        and tell the other program.
        """
        try:
            search()
        except (TengenError, _core.CoreError) as error:
            print(f"tengen: pondering ends: {error}", file=sys.stderr)
            return False
        return True


_SLICE_S = 0.05
# The largest share of a move's remaining time that one slice may take.
_SLICE_PART = 0.25
_MAX_SLICE = 1 << 16
_MAX_SPEED_UP = 2.0
# The best move is clear if the second has at most this share of its visits, and no
# higher value.
_CLEAR_PART = 0.75


@dataclass(frozen=True)
class Limits:
    """When a search ends: at the first limit that it reaches."""

    simulations: int
    """Total simulations."""
    seconds: float | None = None
    """Seconds since the move was requested; None for no limit."""
    most_seconds: float | None = None
    """The limit if no move is clearly the best, at least ``seconds``; None for
    ``seconds``."""
    may_end_early: bool = False
    """Whether a search also ends once the remaining simulations cannot give another
    move the most visits. Only those until ``seconds`` count if one move is clear."""

    @property
    def last_s(self) -> float | None:
        """The latest end of any search, in seconds; None for no limit."""
        return self.seconds if self.most_seconds is None else self.most_seconds


class Thinker:
    """Grows searches within limits, and measures their speed.

    Args:
        now: Returns a monotonic time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rate: float | None = None  # simulations per second of the last slices

    def think(
        self,
        search: GrowingSearch,
        limits: Limits,
        begun_s: float,
        between: Callable[[], bool],
    ) -> None:
        """Grows a search until it reaches a limit or its result is proven. Blocks.

        Without any time, the move is the one that the network prefers.

        Args:
            search: The search.
            limits: When it ends.
            begun_s: When the move was requested, by ``now``.
            between: Called between slices; True ends it.
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
        """Returns whether more simulations cannot change the move."""
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
        """Returns the number of simulations until the next check of the limits."""
        if left_s is not None and left_s <= 0:
            return 0
        if self._rate is None:
            return 1
        wanted_s = _SLICE_S if left_s is None else min(_SLICE_S, _SLICE_PART * left_s)
        size = int(self._rate * wanted_s)
        if size == 0 and left_s is not None and self._rate * left_s < 1:
            return 0  # Not even one simulation would end in time.
        return min(max(size, 1), _MAX_SLICE)

    def _measure(self, simulations: int, seconds: float) -> None:
        if simulations == 0:
            return
        rate = simulations / max(seconds, 1e-6)
        # A slice answered from the cache says little about the next one.
        most = rate if self._rate is None else _MAX_SPEED_UP * self._rate
        self._rate = min(rate, most)
