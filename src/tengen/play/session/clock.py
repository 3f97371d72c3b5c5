"""Time control: the time settings of a game, the clocks, and the time of a move.

Times are in seconds. A move gets less than the clock has, because a search ends a
little late, and because the controller's clock runs until the answer arrives.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Clock", "TimeSettings"]

_RESERVE_S = 0.15
_RESERVE_PART = 0.1
# Overhead of a move on top of its search, if no controller reports the time.
_LAG_S = 0.02
# Shares of the board's points: those that a usual game plays on, and the minimum that
# is expected to follow at any time.
_PLAYED_PART = 0.8
_LEFT_PART = 0.3
_MIN_MOVES_LEFT = 20.0
# A move that is not clear gets so many shares of the main time. With less main time
# than the limit each move gets one share.
_HARD = 2.5
_SHORT_S = 10.0


@dataclass(frozen=True)
class TimeSettings:
    """The time settings of a game, the same for both sides."""

    kind: Literal["none", "absolute", "byoyomi", "canadian", "fischer"] = "none"
    """``byoyomi``: each period is for one move; ``canadian``: a period is for several
    moves; ``fischer``: each move adds to the main time."""
    main_s: float = 0.0
    """Main time, before the overtime."""
    period_s: float = 0.0
    """Length of a period of overtime, or the increment of each move."""
    count: int = 0
    """Periods of ``byoyomi``, or moves in a period of ``canadian``."""
    main_limit_s: float = math.inf
    """``fischer``: the maximum of the main time."""
    move_limit_s: float = math.inf
    """``fischer``: the maximum time of a move."""


@dataclass(frozen=True)
class _Left:
    """The time that one side has left."""

    main_s: float
    period_s: float  # of the running period
    count: int  # periods with the running one; moves until the end of it


class Clock:
    """The clocks of both sides. A clock runs only by calls of ``spend``.

    Args:
        settings: The game's settings. None if they are unknown; then only the time left
            is known, once ``set_left`` reports it.
    """

    def __init__(self, settings: TimeSettings | None = None) -> None:
        self._is_said = settings is not None
        self._settings = settings = settings or TimeSettings()
        left = _Left(settings.main_s, settings.period_s, settings.count)
        self._left = [left, left]

    @property
    def is_running(self) -> bool:
        """Whether there is any limit."""
        return self._settings.kind != "none"

    def set_left(self, player: int, seconds: float, count: int) -> None:
        """Sets a side's clock to the controller's.

        Args:
            player: 0 Black, 1 White.
            seconds: Left of the main time if ``count`` is 0, else of the period.
            count: Moves left in the period, or periods left.
        """
        if not (self._is_said or self.is_running) and seconds > 0:
            # Unknown overtime counts as none: there is main time alone, or one period.
            self._settings = TimeSettings("canadian")
            self.set_left(1 - player, seconds, count)
        left = self._left[player]
        if self._settings.kind == "fischer" or (
            count == 0 and self._settings.kind == "absolute"
        ):
            self._left[player] = dataclasses.replace(left, main_s=seconds)
        elif count == 0:
            fresh = (self._settings.period_s, self._settings.count)
            self._left[player] = _Left(seconds, *fresh)
        else:
            self._left[player] = _Left(0.0, seconds, count)

    def budget_s(self, player: int, ply: int, num_points: int) -> float | None:
        """Returns the time for a side's move; None without a limit.

        Args:
            player: 0 Black, 1 White.
            ply: Moves made so far.
            num_points: Points of the board.
        """
        return self._share_s(player, ply, num_points, 1.0)

    def most_s(self, player: int, ply: int, num_points: int) -> float | None:
        """Returns the time for a move that is not clear; None without a limit.

        Args:
            player: As for ``budget_s``.
            ply: As for ``budget_s``.
            num_points: As for ``budget_s``.
        """
        is_short = self._left[player].main_s < _SHORT_S
        return self._share_s(player, ply, num_points, 1.0 if is_short else _HARD)

    def _share_s(
        self, player: int, ply: int, num_points: int, factor: float
    ) -> float | None:
        """Returns the time for a move with ``factor`` shares of the main time."""
        if not self.is_running:
            return None
        left = self._left[player]
        num_points_left = max(_PLAYED_PART * num_points - ply, _LEFT_PART * num_points)
        num_moves = max(num_points_left / 2, _MIN_MOVES_LEFT)
        share_s = factor * _usable(left.main_s) / num_moves
        if self._settings.kind == "absolute":
            return share_s
        if self._settings.kind == "fischer":
            # The increment comes after the move, which must fit the main time alone.
            added_s = (1 - _RESERVE_PART) * left.period_s
            limit_s = _usable(self._settings.move_limit_s)
            return min(share_s + added_s, _usable(left.main_s), limit_s)
        moves = left.count if self._settings.kind == "canadian" else 1
        return max(share_s, _usable(left.period_s) / max(moves, 1))

    def spend(self, player: int, seconds: float) -> None:
        """Subtracts the time of one move from a side's clock."""
        seconds += _LAG_S
        left = self._left[player]
        over_s = max(seconds - left.main_s, 0.0)
        main_s = max(left.main_s - seconds, 0.0)
        period_s, count = left.period_s, left.count
        whole_s = self._settings.period_s
        if self._settings.kind == "fischer":
            main_s = min(main_s + whole_s, self._settings.main_limit_s)
        elif self._settings.kind == "byoyomi":
            # A period that was not used up is whole again for the next move.
            while over_s >= period_s and count > 1:
                over_s -= period_s
                period_s, count = whole_s, count - 1
            period_s = whole_s
        elif self._settings.kind == "canadian" and main_s == 0:
            period_s, count = max(period_s - over_s, 0.0), count - 1
            if count <= 0:
                period_s, count = whole_s, self._settings.count
        self._left[player] = _Left(main_s, period_s, count)


def _usable(seconds: float) -> float:
    return max(seconds * (1 - _RESERVE_PART) - _RESERVE_S, 0.0)
