"""How much one call of ``tengen train`` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen.roles import RunSpent

__all__ = ["Budget", "Spending"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one call does; None is no limit."""

    minutes: float | None = None
    """Wall time of the call; the closing match comes after it."""
    games: int | None = None
    """Games to play in this call, in whole generations."""
    models: int | None = None
    """The number of the model with which the run's training ends, in whichever call."""
    frames: int | None = None
    """Steps of environments to take in this call, in whole turns of the actors."""


@dataclass
class _Turn:
    """A turn of acting that goes on."""

    num_games: int
    """With those that it found finished."""
    num_recovered: int | None = None
    """Those, once it said so."""

    @property
    def num_left(self) -> int:
        return max(0, self.num_games - (self.num_recovered or 0))


class Spending:
    """What a call has spent of its budget. Used by one thread at a time.

    Args:
        budget: Of the call.
        before: What earlier calls gave the run.
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
        # Of the run, when this call began.
        self._frames_before: int | None = None
        # By who acts.
        self._turns: dict[str, _Turn] = {}

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call."""
        return time.monotonic() - self._start_s

    def outlook(self) -> dict[str, float | None]:
        """Returns what a turn is told of the budget, by name; see ``RoleContext``.

        ``core_minutes`` and ``core_minutes_in_all``, ``remaining`` and ``asked``. In
        games the last two are None: a run by games is the same whatever a call asks
        for. Of two budgets the one that ends first counts.
        """
        budget, before = self.budget, self._before
        elapsed = self.elapsed_s / 60 * self._num_threads
        in_all: float | None = None
        # Each of what is left of the run's, and what the call asks of it.
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
        """What all calls gave the run so far."""
        elapsed = self.elapsed_s / 60 * self._num_threads
        return self._before.core_minutes + elapsed

    def frames_left(self) -> int | None:
        """Returns the frames to come; None without a budget of them."""
        if self.budget.frames is None:
            return None
        return max(0, self.budget.frames - self._frames)

    def count_frames(self, num_frames: int) -> None:
        """Takes how many frames the run has, where the call's are not counted else.

        Those that a process made and did not save before it was killed are to be made
        again: they are not among these.

        Args:
            num_frames: Of all calls, as the learner's table has them.
        """
        if self._frames_before is None:
            self._frames_before = num_frames - self._frames
        self._frames = max(0, num_frames - self._frames_before)

    def is_over(self, next_s: float = 0.0) -> bool:
        """Returns whether the budget is spent, or would be before the next turn's end.

        Args:
            next_s: Seconds that a turn takes, and learning from it.
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
        """Returns the same of the minutes alone; False where they have no limit."""
        minutes = self.budget.minutes
        return minutes is not None and self.elapsed_s + next_s >= 60 * minutes

    def is_taken(self) -> bool:
        """Returns whether the turns that go on play all games that are left."""
        if self.budget.games is None:
            return False
        coming = sum(turn.num_left for turn in self._turns.values())
        return self._games + coming >= self.budget.games

    def begin_turn(self, who: str = "", num_games: int = 0) -> None:
        """Notes that a turn of acting begins.

        Args:
            who: Acts, where several do.
            num_games: Of the turn, with those that it finds finished.
        """
        self._turns[who] = _Turn(num_games)

    def note(self, report: Mapping[str, Any], who: str = "") -> None:
        """Takes what such a turn says on its way, how many games it found finished."""
        turn = self._turns.get(who)
        # The first word counts: a turn that is redone recovers its own games too.
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
            report: The turn's.
            counts_frames: Whether its rows are frames of environments.
            who: As for ``begin_turn``.
        """
        self.note(report, who)
        turn = self._turns.pop(who, _Turn(0))
        # Games that an earlier call finished are not of this one.
        self._games += int(report.get("num_games", 0)) - (turn.num_recovered or 0)
        if counts_frames:
            self._frames += int(report.get("num_rows", 0))
