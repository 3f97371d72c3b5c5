"""The searches of a session: each within limits, in a tree of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from tengen import _core
from tengen.errors import TengenError
from tengen.games import Game
from tengen.play.growing import Analysis
from tengen.play.player import Player
from tengen.play.session.thinking import Limits, Thinker

__all__ = ["USUAL_SIMULATIONS", "Searches", "most_simulations"]

USUAL_SIMULATIONS = 400
"""Of a move that nothing else limits."""

_MAX_TREE_BYTES = 1 << 30
# The longest variation that is told of a move.
_MAX_VARIATION = 15
# What one simulation adds to a tree.
_NODE_BYTES = 200
_LEGAL_BYTES = 6


def most_simulations(game: Game, tree_bytes: int | None = None) -> int:
    """Returns how many simulations a tree has room for.

    Args:
        game: What is searched.
        tree_bytes: The room; no more than 1 GiB, which None is.
    """
    room = _MAX_TREE_BYTES if tree_bytes is None else min(tree_bytes, _MAX_TREE_BYTES)
    return room // (_NODE_BYTES + _LEGAL_BYTES * game.num_actions)


class Searches:
    """Makes the searches of one session. Used by one thread.

    Args:
        threads: That search one tree.
        usual: Simulations of most moves, which the batches of all are made for.
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
        """Returns what a search within limits finds. Blocks.

        Args:
            player: Who searches.
            moves: From the first move of its game, which is not over.
            limits: When the search ends.
            begun_s: When it was asked for, by ``time.monotonic``.
            between: Called between slices with what tells of the search so far; True
                ends it.
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
        """Makes a search that nobody asked for; returns whether it could be made.

        Where it could not, a line on stderr says why: the search that is asked for
        next says it to the other program.
        """
        try:
            search()
        except (TengenError, _core.CoreError) as error:
            print(f"tengen: pondering ends: {error}", file=sys.stderr)
            return False
        return True
