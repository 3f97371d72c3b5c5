"""When a session gives a game up."""

from __future__ import annotations

from collections.abc import Sequence

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
        # What was played when each side last looked lost, a turn of it after another.
        self._lost_after: dict[int, list[list[int]]] = {0: [], 1: []}

    def resigns(
        self, player: int, actions: Sequence[int], value_to_play: float
    ) -> bool:
        """Takes in what a side's search has found; returns whether it resigns.

        Args:
            player: Whose search it was.
            actions: What was played before it. What was seen where this game was not,
                before an undo or in another game, does not count any more.
            value_to_play: The search's value to that side.
        """
        if self._below is None:
            return False
        now = list(actions)
        seen = self._lost_after[player]
        while seen and not (len(seen[-1]) == len(now) - 2 and now[:-2] == seen[-1]):
            seen.pop()
        if not value_to_play < self._below:
            seen.clear()
        else:
            seen.append(now)
        del seen[:-_NUM_MOVES]
        return len(seen) == _NUM_MOVES
