"""When a session gives a game up."""

from __future__ import annotations

__all__ = ["Resigning"]

_NUM_MOVES = 3
"""Of a side in a row that must look lost, as in KataGo."""


class Resigning:
    """Counts how long a game has looked lost, for each side by itself.

    Args:
        below: Values below it look lost, in [-1, 1]; None never to resign.
    """

    def __init__(self, below: float | None) -> None:
        self._below = below
        # Plies at which each side last looked lost, in a row.
        self._lost_at: dict[int, list[int]] = {0: [], 1: []}

    def resigns(self, player: int, ply: int, value_to_play: float) -> bool:
        """Takes in what a side's search has found; returns whether it resigns.

        Args:
            player: Whose search it was.
            ply: Moves before it. What was seen later than that, before an undo or in
                another game, does not count any more.
            value_to_play: The search's value to that side.
        """
        if self._below is None:
            return False
        seen = [at for at in self._lost_at[player] if at < ply]
        seen = [*seen, ply][-_NUM_MOVES:] if value_to_play < self._below else []
        self._lost_at[player] = seen
        return len(seen) == _NUM_MOVES
