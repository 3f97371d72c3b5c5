"""How much one call of ``tengen train`` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Budget", "Spending"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one call does; None is no limit."""

    minutes: float | None = None
    """Wall time of the call; the closing match comes after it."""
    games: int | None = None
    """Games to play in this call, in whole generations."""
    frames: int | None = None
    """Steps of environments to take in this call, in whole turns of the actors."""

    def spent(
        self, *, elapsed_s: float, games: int, games_before: int, frames: int = 0
    ) -> float | None:
        """Returns the share that is spent, in [0, 1]; None without a budget.

        In games it is of the run's games at the end of the call, so that a run which
        is interrupted and then plays the rest grows where it would have anyway. Of two
        budgets the one that ends first counts.

        Args:
            elapsed_s: Seconds of this call.
            games: Games that this call has played.
            games_before: Games that the run had before this call.
            frames: Steps of environments that this call has taken.
        """
        shares = []
        if self.minutes is not None:
            shares.append(elapsed_s / (60 * self.minutes))
        if self.games is not None:
            shares.append((games_before + games) / (games_before + self.games))
        if self.frames is not None:
            shares.append(frames / self.frames)
        return min(1.0, max(shares)) if shares else None


class Spending:
    """What a call has spent of its budget. Used by one thread at a time.

    Args:
        budget: Of the call.
        games_before: Games that the run had when the call began.
    """

    def __init__(self, budget: Budget, games_before: int = 0) -> None:
        self.budget = budget
        self._games_before = games_before
        self._start_s = time.monotonic()
        self._games = 0
        self._frames = 0
        self._num_recovered: int | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call."""
        return time.monotonic() - self._start_s

    def remaining(self) -> float | None:
        """Returns the share of time or frames to come, in [0, 1]; None without either.

        In games it is None: a run by games is the same whatever a call asks for.
        """
        left = []
        if self.budget.minutes is not None:
            left.append(1.0 - self.elapsed_s / (60 * self.budget.minutes))
        if self.budget.frames is not None:
            left.append(1.0 - self._frames / self.budget.frames)
        return max(0.0, min(left)) if left else None

    def frames_left(self) -> int | None:
        """Returns the frames to come; None without a budget of them."""
        if self.budget.frames is None:
            return None
        return max(0, self.budget.frames - self._frames)

    def spent(self) -> float | None:
        """Returns the share that is spent; see ``Budget.spent``."""
        return self.budget.spent(
            elapsed_s=self.elapsed_s,
            games=self._games,
            games_before=self._games_before,
            frames=self._frames,
        )

    def is_over(self, next_s: float = 0.0) -> bool:
        """Returns whether the budget is spent, or would be before the next turn's end.

        Args:
            next_s: Seconds that a turn takes, and learning from it.
        """
        budget = self.budget
        if budget.games is not None and self._games >= budget.games:
            return True
        if budget.frames is not None and self._frames >= budget.frames:
            return True
        return self.is_late(next_s)

    def is_late(self, next_s: float = 0.0) -> bool:
        """Returns the same of the minutes alone; False where they have no limit."""
        minutes = self.budget.minutes
        return minutes is not None and self.elapsed_s + next_s >= 60 * minutes

    def begin_turn(self) -> None:
        """Notes that a turn of acting begins."""
        self._num_recovered = None

    def note(self, report: Mapping[str, Any]) -> None:
        """Takes what such a turn says on its way, how many games it found finished."""
        # The first word counts: a turn that is redone recovers its own games too.
        if self._num_recovered is None:
            self._num_recovered = report.get("num_recovered")

    def end_turn(self, report: Mapping[str, Any], *, counts_frames: bool) -> None:
        """Takes the report of a turn of acting.

        Args:
            report: The turn's.
            counts_frames: Whether its rows are frames of environments.
        """
        self.note(report)
        # Games that an earlier call finished are not of this one.
        self._games += int(report.get("num_games", 0)) - (self._num_recovered or 0)
        if counts_frames:
            self._frames += int(report.get("num_rows", 0))
