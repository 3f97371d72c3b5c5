"""The budget of one call of ``tengen train``, and what of it is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen.roles import RunSpent

__all__ = ["Budget", "Spending"]

# So many generations are to fit into a call's minutes. On a quiet machine with two
# cores the recipes make 18 in ten minutes.
_GENERATIONS = 8
# So that shares of a budget that is spent before any work are numbers.
_LEAST_MINUTES = 1e-9


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one call; None is no limit."""

    minutes: float | None = None
    """Wall time of the call from its first turn of work on; start-up comes before it,
    and matches after it."""
    games: int | None = None
    """Games to play in this call, in whole generations."""
    models: int | None = None
    """The number of the model with which the run's training ends, over all calls."""
    frames: int | None = None
    """Environment steps to make in this call, in whole turns of the actors."""
    fits_generations: bool = False
    """Whether generations may get smaller where few of them fit into the minutes."""


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
        clock: Returns seconds that never go back.
        own_cpu: Returns CPU-seconds of this process without its children, which report
            their own.

    Attributes:
        num_rows: Rows of experience made in this call, in turns of acting that ended.
        num_evaluations: Positions that the network evaluated in these turns.
    """

    def __init__(
        self,
        budget: Budget,
        before: RunSpent | None = None,
        num_threads: int = 1,
        newest_model: Callable[[], int | None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        own_cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.budget = budget
        self._newest_model = newest_model
        self._before = before or RunSpent()
        self._num_threads = num_threads
        self._clock = clock
        self._own_cpu = own_cpu
        self._own_cpu_s = own_cpu()
        # CPU-seconds that role processes have reported, since the call's start.
        self._roles_cpu_s = 0.0
        # The first turn of work: its wall time, and the CPU time of start-up.
        self._begun_s: float | None = None
        self._startup_cpu_s = 0.0
        self._games = 0
        self._frames = 0
        self.num_rows = 0
        self.num_evaluations = 0
        # Frames of the run when this call began.
        self._frames_before: int | None = None
        # The turns in progress, by acting process.
        self._turns: dict[str, _Turn] = {}

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call since its first turn of work; 0 during start-up."""
        return 0.0 if self._begun_s is None else self._clock() - self._begun_s

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the call's minutes; None where they have no limit."""
        if self.budget.minutes is None:
            return None
        return max(0.0, 60 * self.budget.minutes - self.elapsed_s)

    @property
    def generation_s(self) -> float | None:
        """Seconds to play a generation and learn from it; None for any time."""
        budget = self.budget
        if not budget.fits_generations or budget.minutes is None:
            return None
        return None if budget.games is not None else 60 * budget.minutes / _GENERATIONS

    @property
    def cpu_s(self) -> float:
        """CPU-seconds of this call, of all its processes, with its start-up."""
        return self._roles_cpu_s + self._own_cpu() - self._own_cpu_s

    @property
    def core_minutes(self) -> float:
        """CPU-minutes that all calls have spent on the run so far, without start-up."""
        return self._before.core_minutes + self._worked_s / 60

    @property
    def _worked_s(self) -> float:
        """CPU-seconds of this call since its first turn of work."""
        return 0.0 if self._begun_s is None else self.cpu_s - self._startup_cpu_s

    def begin_work(self, ago_s: float = 0.0) -> None:
        """Notes that start-up is over; later calls do nothing.

        Args:
            ago_s: How many seconds ago that was.
        """
        if self._begun_s is None:
            self._begun_s = self._clock() - ago_s
            self._startup_cpu_s = self.cpu_s

    def outlook(self) -> dict[str, float | None]:
        """Returns what a turn needs to know of the budget; see ``RoleContext``.

        The keys are ``core_minutes``, ``core_minutes_in_all``, ``remaining`` and
        ``asked``. With a budget in games alone the last two are None, so that a run by
        games is the same whatever a call asks for. Of two budgets the one that ends
        first counts. How much CPU time the minutes still bring is expected from the
        cores that the call has kept busy so far; before its first turn of work, it is
        expected to have all its cores.
        """
        budget, before = self.budget, self._before
        worked = max(0.0, self._worked_s) / 60
        in_all: float | None = None
        # For each budget the share that is left of the run's, and the call's share.
        parts = []
        if self.seconds_left is not None:
            left = self._num_busy_cores * self.seconds_left / 60
            in_all = before.core_minutes + worked + left
            whole = max(in_all, _LEAST_MINUTES)
            parts.append((left / whole, max(left + worked, _LEAST_MINUTES) / whole))
        if budget.frames is not None:
            frames_in_all = before.num_frames + budget.frames
            left_frames = max(0, budget.frames - self._frames)
            parts.append((left_frames / frames_in_all, budget.frames / frames_in_all))
        remaining, share = min(parts) if parts else (None, None)
        return {
            "core_minutes": before.core_minutes + worked,
            "core_minutes_in_all": in_all,
            "remaining": remaining,
            "asked": share,
        }

    @property
    def _num_busy_cores(self) -> float:
        """How many cores the call has kept busy so far, on the mean."""
        if self.elapsed_s <= 0.0 or self._worked_s <= 0.0:
            return float(self._num_threads)
        return self._worked_s / self.elapsed_s

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
        self._frames = self.num_rows = max(0, num_frames - self._frames_before)

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
        left_s = self.seconds_left
        if left_s is None or self._begun_s is None:
            return False
        return left_s <= next_s

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

    def count(self, report: dict[str, Any]) -> None:
        """Takes the CPU time out of any role's message, and notes when work begins.

        Args:
            report: A progress report, or the report of a turn.
        """
        self._roles_cpu_s += report.pop("cpu_s", 0.0)
        is_acting = any(name in report for name in ("num_games", "num_rows", "gate"))
        # A cluster without room may never have any: the minutes go on meanwhile.
        is_waiting = report.get("waiting_s") is not None
        if is_acting or is_waiting or report.get("num_steps"):
            self.begin_work(report.get("seconds", 0.0))

    def note(self, report: Mapping[str, Any], who: str = "") -> None:
        """Takes a report of a turn of acting, for how many games it found finished."""
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
        self.num_rows += int(report.get("num_rows", 0))
        self.num_evaluations += int(report.get("num_evaluations", 0))
        if counts_frames:
            self._frames += int(report.get("num_rows", 0))
