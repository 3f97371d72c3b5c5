"""The budget of one call of ``tengen train``, and the spent time, games and frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen.roles.spent import RunSpent

# The number of generations that should fit into a call's minutes. On an idle machine
# with two cores the recipes complete 18 generations in ten minutes.
_GENERATIONS = 8
# Prevents a division by zero if the budget is spent before any work.
_LEAST_MINUTES = 1e-9


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one call of ``tengen train``. None means no limit."""

    minutes: float | None = None
    """Wall-clock minutes of the call, counted from its first turn of work. Start-up and
    the target match do not count."""
    cpu_seconds: float | None = None
    """CPU-seconds of all processes of the call, counted like ``minutes``. Unlike
    minutes they buy the same work on a busy machine."""
    games: int | None = None
    """Number of games to play in this call, rounded up to complete generations."""
    models: int | None = None
    """The number of the run's final model, with which training ends."""
    frames: int | None = None
    """Number of environment steps in this call, rounded up to complete actor turns."""
    fits_generations: bool = False
    """Whether generations get fewer games if only a few fit into the time."""

    def seconds_on(self, num_cores: float) -> float | None:
        """Returns the seconds that the budget takes on busy cores; None if unlimited.

        Args:
            num_cores: The number of cores that the call keeps busy, positive.
        """
        limits = []
        if self.minutes is not None:
            limits.append(60 * self.minutes)
        if self.cpu_seconds is not None:
            limits.append(self.cpu_seconds / num_cores)
        return min(limits, default=None)


@dataclass
class _Turn:
    """A turn of an acting process that is in progress."""

    num_games: int
    """Number of games of the turn, with games that an earlier process had finished."""
    num_recovered: int | None = None
    """Number of games finished by an earlier process; None before the first report."""

    @property
    def num_left(self) -> int:
        return max(0, self.num_games - (self.num_recovered or 0))


class Spending:
    """Counts the time, games and frames that a call has spent. Not thread-safe.

    Args:
        budget: The call's budget.
        before: Time and frames that earlier calls have spent on the run.
        num_threads: Number of cores that this call may use.
        newest_model: Returns the number of the run's newest model, or None if the run
            has no model yet.
        clock: Returns monotonic time in seconds.
        own_cpu: Returns the CPU-seconds of this process without its children, because
            children report their own CPU time.

    Attributes:
        num_rows: Number of rows of experience from this call's completed acting turns.
        num_evaluations: Number of positions that the network evaluated in these turns.
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
        # CPU-seconds that role processes have reported since the call started.
        self._roles_cpu_s = 0.0
        # The start time of the first turn of work, and the CPU time of start-up.
        self._begun_s: float | None = None
        self._startup_cpu_s = 0.0
        self._games = 0
        self._frames = 0
        self.num_rows = 0
        self.num_evaluations = 0
        # The run's frame count when this call began.
        self._frames_before: int | None = None
        # The acting turns in progress, by process name.
        self._turns: dict[str, _Turn] = {}

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call since its first turn of work; 0 during start-up."""
        return 0.0 if self._begun_s is None else self._clock() - self._begun_s

    @property
    def seconds_left(self) -> float | None:
        """Expected seconds until the time is spent; None if nothing limits the time.

        CPU-seconds are expected to pass as fast as in the call so far.
        """
        limits = []
        if self.budget.minutes is not None:
            limits.append(60 * self.budget.minutes - self.elapsed_s)
        if self.budget.cpu_seconds is not None:
            left_s = self.budget.cpu_seconds - self._worked_s
            limits.append(left_s / self._num_busy_cores)
        return max(0.0, min(limits)) if limits else None

    @property
    def generation_s(self) -> float | None:
        """Time limit in seconds for a generation and its learning; None: no limit.

        If ``counts_cpu``, CPU-seconds per thread of the call.
        """
        budget = self.budget
        whole_s = budget.seconds_on(self._num_threads)
        if not budget.fits_generations or whole_s is None or budget.games is not None:
            return None
        return whole_s / _GENERATIONS

    @property
    def counts_cpu(self) -> bool:
        """Whether only CPU-seconds limit the time."""
        return self.budget.minutes is None and self.budget.cpu_seconds is not None

    @property
    def cpu_s(self) -> float:
        """CPU-seconds of all processes of this call, including start-up."""
        return self._roles_cpu_s + self._own_cpu() - self._own_cpu_s

    @property
    def core_minutes(self) -> float:
        """CPU-minutes that all calls of train spent on the run, without start-up."""
        return self._before.core_minutes + self._worked_s / 60

    @property
    def _worked_s(self) -> float:
        """CPU-seconds of this call since its first turn of work."""
        return 0.0 if self._begun_s is None else self.cpu_s - self._startup_cpu_s

    def begin_work(self, ago_s: float = 0.0) -> None:
        """Records that start-up has ended. Later calls do nothing.

        Args:
            ago_s: The number of seconds since start-up ended.
        """
        if self._begun_s is None:
            self._begun_s = self._clock() - ago_s
            self._startup_cpu_s = self.cpu_s

    def outlook(self) -> dict[str, float | None]:
        """Returns the budget's state for the fields of ``RoleContext`` in a turn.

        The keys are ``core_minutes``, ``core_minutes_in_all``, ``remaining`` and
        ``asked``. With a budget in games only, the last two are None, so that the
        result of such a run does not depend on how it is divided into calls. If both
        time and frames are limited, the smaller remaining share counts. The CPU time
        of the remaining minutes is estimated from the number of cores that the call has
        kept busy, or from all its cores before the first turn of work.
        """
        budget, before = self.budget, self._before
        worked = max(0.0, self._worked_s) / 60
        in_all: float | None = None
        # For each limit, the share that is left and this call's share of the total.
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
        """The average number of cores that the call has kept busy."""
        if self.elapsed_s <= 0.0 or self._worked_s <= 0.0:
            return float(self._num_threads)
        return self._worked_s / self.elapsed_s

    def frames_left(self) -> int | None:
        """Returns the number of frames left in the budget; None without a limit."""
        if self.budget.frames is None:
            return None
        return max(0, self.budget.frames - self._frames)

    @property
    def experience_share(self) -> float | None:
        """Share of the budget's games or frames that this call has, in [0, 1]."""
        if self.budget.games:
            return min(1.0, self._games / self.budget.games)
        if self.budget.frames:
            return min(1.0, self._frames / self.budget.frames)
        return None

    def count_frames(self, num_frames: int) -> None:
        """Sets the run's frame count, if reports of turns do not count frames.

        Frames that a killed process had not saved do not count, and are repeated.

        Args:
            num_frames: Number of frames of all calls, counted by the learner's table.
        """
        if self._frames_before is None:
            self._frames_before = num_frames - self._frames
        self._frames = self.num_rows = max(0, num_frames - self._frames_before)

    def is_over(self, next_s: float = 0.0) -> bool:
        """Returns whether the budget is spent, or will be before the next turn ends.

        Args:
            next_s: Expected duration of the next turn and its learning, in seconds.
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
        """Returns whether the run has reached its final model."""
        if self.budget.models is None:
            return False
        newest = self._newest_model()
        return newest is not None and newest >= self.budget.models

    def is_late(self, next_s: float = 0.0) -> bool:
        """Returns whether at most ``next_s`` seconds are left; False if unlimited."""
        left_s = self.seconds_left
        if left_s is None or self._begun_s is None:
            return False
        return left_s <= next_s

    def is_taken(self) -> bool:
        """Returns whether the turns in progress will use up the budget in games."""
        if self.budget.games is None:
            return False
        coming = sum(turn.num_left for turn in self._turns.values())
        return self._games + coming >= self.budget.games

    def begin_turn(self, who: str = "", num_games: int = 0) -> None:
        """Records the start of an acting turn.

        Args:
            who: The name of the acting process, if there are several.
            num_games: Number of the turn's games, including games already finished.
        """
        self._turns[who] = _Turn(num_games)

    def count(self, report: dict[str, Any]) -> None:
        """Moves a report's CPU time to the total, and detects the first turn of work.

        Args:
            report: A progress report or turn report of any role; modified in place.
        """
        self._roles_cpu_s += report.pop("cpu_s", 0.0)
        is_acting = any(name in report for name in ("num_games", "num_rows", "gate"))
        # Waiting for a full cluster counts as work, because the wait may never end.
        is_waiting = report.get("waiting_s") is not None
        if is_acting or is_waiting or report.get("num_steps"):
            self.begin_work(report.get("seconds", 0.0))

    def note(self, report: Mapping[str, Any], who: str = "") -> None:
        """Records the number of recovered games in the report of an acting turn."""
        turn = self._turns.get(who)
        # Only the first report counts, because a repeated turn recovers its own games.
        if turn is not None and turn.num_recovered is None:
            turn.num_recovered = report.get("num_recovered")

    def drop_turn(self, who: str = "") -> None:
        """Discards an acting turn that ended without doing anything."""
        self._turns.pop(who, None)

    def end_turn(
        self, report: Mapping[str, Any], *, counts_frames: bool, who: str = ""
    ) -> None:
        """Adds the report of a completed acting turn.

        Args:
            report: The turn's report.
            counts_frames: Whether the report's rows count as environment frames.
            who: The name of the acting process; see ``begin_turn``.
        """
        self.note(report, who)
        turn = self._turns.pop(who, _Turn(0))
        # Games that an earlier call finished do not count towards this call's budget.
        self._games += int(report.get("num_games", 0)) - (turn.num_recovered or 0)
        self.num_rows += int(report.get("num_rows", 0))
        self.num_evaluations += int(report.get("num_evaluations", 0))
        if counts_frames:
            self._frames += int(report.get("num_rows", 0))
