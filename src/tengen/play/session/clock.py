"""Time control: a game's time settings, the clocks, and the time budget of a move.

Times are in seconds. Budgets leave a reserve, because a search ends slightly after its
limit and the controller's clock runs until the response arrives.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

_RESERVE_S = 0.15
_RESERVE_PART = 0.1
# Assumed overhead per move outside the search, until the controller reports the time.
_LAG_S = 0.02
# Expected plies of a game, and the least expected number of remaining plies, both as
# shares of the number of points on the board.
_PLAYED_PART = 0.8
_LEFT_PART = 0.3
_MIN_MOVES_LEFT = 20.0
# If no move is clearly best, a move's time budget is multiplied by _HARD, unless the
# remaining main time is below _SHORT_S.
_HARD = 2.5
_SHORT_S = 10.0


@dataclass(frozen=True)
class TimeSettings:
    """The time settings of a game, which are the same for both sides."""

    kind: Literal["none", "absolute", "byoyomi", "canadian", "fischer"] = "none"
    """The time system. A period of overtime is for one move in ``byoyomi``, for several
    in ``canadian``. In ``fischer``, each move adds time to the main time."""
    main_s: float = 0.0
    """Main time, before the overtime begins."""
    period_s: float = 0.0
    """Length of an overtime period; for ``fischer`` the increment per move."""
    count: int = 0
    """Number of overtime periods for ``byoyomi``; moves per period for ``canadian``."""
    main_limit_s: float = math.inf
    """Maximum main time after an increment, for ``fischer``."""
    move_limit_s: float = math.inf
    """Maximum time per move, for ``fischer``."""


@dataclass(frozen=True)
class _Left:
    """The remaining time of one side of the game."""

    main_s: float
    period_s: float  # Remaining time of the current period.
    count: int  # Remaining periods, including the current one, or moves in it.


class Clock:
    """The clocks of both sides. A clock advances only when ``spend`` is called.

    Args:
        settings: The game's time settings. None if unknown; then the remaining time is
            unlimited until ``set_left`` reports it.
    """

    def __init__(self, settings: TimeSettings | None = None) -> None:
        self._is_said = settings is not None
        self._settings = settings = settings or TimeSettings()
        left = _Left(settings.main_s, settings.period_s, settings.count)
        self._left = [left, left]

    @property
    def is_running(self) -> bool:
        """Whether the time settings limit the time."""
        return self._settings.kind != "none"

    def set_left(self, player: int, seconds: float, count: int) -> None:
        """Sets a side's clock to the time that the controller reports.

        Args:
            player: The side, 0 for Black or 1 for White.
            seconds: Remaining main time if ``count`` is 0, otherwise the period's.
            count: Remaining moves in the period, or remaining periods.
        """
        if not (self._is_said or self.is_running) and seconds > 0:
            # No time settings were sent. Assume that there is no further overtime.
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
        """Returns the normal time budget of a move; None if time is unlimited.

        Args:
            player: The side, 0 for Black or 1 for White.
            ply: Number of moves played so far.
            num_points: Number of points on the board.
        """
        return self._share_s(player, ply, num_points, 1.0)

    def most_s(self, player: int, ply: int, num_points: int) -> float | None:
        """Returns a move's time budget if no move is clearly best; None if unlimited.

        Args:
            player: The side, 0 for Black or 1 for White.
            ply: Number of moves played so far.
            num_points: Number of points on the board.
        """
        is_short = self._left[player].main_s < _SHORT_S
        return self._share_s(player, ply, num_points, 1.0 if is_short else _HARD)

    def _share_s(
        self, player: int, ply: int, num_points: int, factor: float
    ) -> float | None:
        """Returns a move's time budget; ``factor`` scales the main time's share."""
        if not self.is_running:
            return None
        left = self._left[player]
        num_points_left = max(_PLAYED_PART * num_points - ply, _LEFT_PART * num_points)
        num_moves = max(num_points_left / 2, _MIN_MOVES_LEFT)
        share_s = factor * _usable(left.main_s) / num_moves
        if self._settings.kind == "absolute":
            return share_s
        if self._settings.kind == "fischer":
            # At most the main time, because the increment is added only after the move.
            added_s = (1 - _RESERVE_PART) * left.period_s
            limit_s = _usable(self._settings.move_limit_s)
            return min(share_s + added_s, _usable(left.main_s), limit_s)
        moves = left.count if self._settings.kind == "canadian" else 1
        return max(share_s, _usable(left.period_s) / max(moves, 1))

    def spend(self, player: int, seconds: float) -> None:
        """Subtracts a move's time plus a fixed overhead from a side's clock."""
        seconds += _LAG_S
        left = self._left[player]
        over_s = max(seconds - left.main_s, 0.0)
        main_s = max(left.main_s - seconds, 0.0)
        period_s, count = left.period_s, left.count
        whole_s = self._settings.period_s
        if self._settings.kind == "fischer":
            main_s = min(main_s + whole_s, self._settings.main_limit_s)
        elif self._settings.kind == "byoyomi":
            # In byoyomi, an unfinished period is reset for the next move.
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
