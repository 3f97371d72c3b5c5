"""When a session resigns."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Resigning"]

_NUM_MOVES = 3
"""Consecutive moves of a side that must look lost, as in KataGo."""


class Resigning:
    """Counts how long a game has looked lost, separately for each side.

    Args:
        below: Lower values look lost, in [-1, 1]; None to never resign.
    """

    def __init__(self, below: float | None) -> None:
        self._below = below
        # The actions before each of a side's latest consecutive moves that looked lost.
        self._lost_after: dict[int, list[list[int]]] = {0: [], 1: []}

    def resigns(
        self, player: int, actions: Sequence[int], value_to_play: float
    ) -> bool:
        """Takes the result of a side's search; returns whether the side resigns.

        Args:
            player: The side that searched.
            actions: The actions before the search. Results from positions that are not
                in this game, after an undo or in another game, no longer count.
            value_to_play: The search's value for that side.
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
