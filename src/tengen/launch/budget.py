"""The budget of one call of ``tengen train``, and what of it is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen.roles import RunSpent

__all__ = ["Budget", "Spending"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one call; None is no limit."""

    minutes: float | None = None
    """Wall time of the call; the closing match comes after it."""
    games: int | None = None
    """Games to play in this call, in whole generations."""
    models: int | None = None
    """The number of the model with which the run's training ends, over all calls."""
    frames: int | None = None
    """Environment steps to make in this call, in whole turns of the actors."""


@dataclass
class _Turn:
    """A turn of acting in progress."""

    num_games: int
    """Games of the turn, including games that it found finished."""
    num_recovered: int | None = None
    """Games that it found finished, once it has reported them."""

    @property
    def num_left(self) -> int:
        return max(0, self.num_games - (self.num_recovered or 0))


class Spending:
    """What a call has spent of its budget. Used by one thread at a time.

    Args:
        budget: The call's budget.
        before: What earlier calls have spent on the run.
        num_threads: Cores of this call.
        newest_model: Returns the number of the run's newest model, None before the
            first.
    """

    def __init__(
        self,
        budget: Budget,
        before: RunSpent | None = None,
        num_threads: int = 1,
        newest_model: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.budget = budget
        self._newest_model = newest_model
        self._before = before or RunSpent()
        self._num_threads = num_threads
        self._start_s = time.monotonic()
        self._games = 0
        self._frames = 0
        # Frames of the run when this call began.
        self._frames_before: int | None = None
        # The turns in progress, by acting process.
        self._turns: dict[str, _Turn] = {}

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call."""
        return time.monotonic() - self._start_s

    def outlook(self) -> dict[str, float | None]:
        """Returns what a turn needs to know of the budget; see ``RoleContext``.

        The keys are ``core_minutes``, ``core_minutes_in_all``, ``remaining`` and
        ``asked``. With a budget in games alone the last two are None, so that a run by
        games is the same whatever a call asks for. Of two budgets the one that ends
        first counts.
        """
        budget, before = self.budget, self._before
        elapsed = self.elapsed_s / 60 * self._num_threads
        in_all: float | None = None
        # For each budget the share that is left of the run's, and the call's share.
        parts = []
        if budget.minutes is not None:
            asked = budget.minutes * self._num_threads
            in_all = before.core_minutes + asked
            parts.append((max(0.0, asked - elapsed) / in_all, asked / in_all))
        if budget.frames is not None:
            frames_in_all = before.num_frames + budget.frames
            left = max(0, budget.frames - self._frames)
            parts.append((left / frames_in_all, budget.frames / frames_in_all))
        remaining, share = min(parts) if parts else (None, None)
        return {
            "core_minutes": before.core_minutes + elapsed,
            "core_minutes_in_all": in_all,
            "remaining": remaining,
            "asked": share,
        }

    @property
    def core_minutes(self) -> float:
        """Core-minutes that all calls have spent on the run so far."""
        elapsed = self.elapsed_s / 60 * self._num_threads
        return self._before.core_minutes + elapsed

    def frames_left(self) -> int | None:
        """Returns the frames that are left; None without a budget in frames."""
        if self.budget.frames is None:
            return None
        return max(0, self.budget.frames - self._frames)

    def count_frames(self, num_frames: int) -> None:
        """Sets how many frames the run has, where turns do not count them.

        Frames that a killed process had not saved do not count, and are made again.

        Args:
            num_frames: Frames of all calls, as the learner's table counts them.
        """
        if self._frames_before is None:
            self._frames_before = num_frames - self._frames
        self._frames = max(0, num_frames - self._frames_before)

    def is_over(self, next_s: float = 0.0) -> bool:
        """Returns whether the budget is spent, or would be before the next turn's end.

        Args:
            next_s: Seconds that a turn and learning from it take.
        """
        budget = self.budget
        if self.is_trained():
            return True
        if budget.games is not None and self._games >= budget.games:
            return True
        if budget.frames is not None and self._frames >= budget.frames:
            return True
        return self.is_late(next_s)

    def is_trained(self) -> bool:
        """Returns whether the run has all the models that it is to have."""
        if self.budget.models is None:
            return False
        newest = self._newest_model()
        return newest is not None and newest >= self.budget.models

    def is_late(self, next_s: float = 0.0) -> bool:
        """Returns whether the minutes are spent; False where they have no limit."""
        minutes = self.budget.minutes
        return minutes is not None and self.elapsed_s + next_s >= 60 * minutes

    def is_taken(self) -> bool:
        """Returns whether the turns in progress play all games that are left."""
        if self.budget.games is None:
            return False
        coming = sum(turn.num_left for turn in self._turns.values())
        return self._games + coming >= self.budget.games

    def begin_turn(self, who: str = "", num_games: int = 0) -> None:
        """Notes that a turn of acting begins.

        Args:
            who: The acting process, if there are several.
            num_games: Games of the turn, including games that it finds finished.
        """
        self._turns[who] = _Turn(num_games)

    def note(self, report: Mapping[str, Any], who: str = "") -> None:
        """Takes a progress report of a turn, for how many games it found finished."""
        turn = self._turns.get(who)
        # Only the first report counts: a redone turn also recovers its own games.
        if turn is not None and turn.num_recovered is None:
            turn.num_recovered = report.get("num_recovered")

    def drop_turn(self, who: str = "") -> None:
        """Notes that a turn of acting ended and did nothing."""
        self._turns.pop(who, None)

    def end_turn(
        self, report: Mapping[str, Any], *, counts_frames: bool, who: str = ""
    ) -> None:
        """Takes the report of a turn of acting.

        Args:
            report: The turn's report.
            counts_frames: Whether its rows are environment frames.
            who: As for ``begin_turn``.
        """
        self.note(report, who)
        turn = self._turns.pop(who, _Turn(0))
        # Games that an earlier call finished do not count for this call.
        self._games += int(report.get("num_games", 0)) - (turn.num_recovered or 0)
        if counts_frames:
            self._frames += int(report.get("num_rows", 0))
