"""The schedule of launchers whose roles all work at once, each in a process of its own.

::

    a thread a role:
        while the call goes on:
            take a turn; where there was nothing to do, wait a moment
    then:
        end acting; learn, export and gate what is there, in turn

Self-play goes on with models that are published meanwhile, in the middle of a game. A
process that dies is started again and its turn is redone; one that dies again and again
ends the run and is named. A seed does not give the same run: who is how fast decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from tengen.agents import Schedule
from tengen.launch.budget import Budget, Spending
from tengen.launch.journal import RunJournal
from tengen.launch.launcher import Handle, Launcher
from tengen.observe import BusyTimes
from tengen.roles import (
    TRAIN_WRITER,
    RunConfig,
    StopListener,
    num_games_kept,
    read_config,
    sealed_generation,
    writer_directory,
)
from tengen.run import RunDirectory

__all__ = ["run_at_once", "threads_at_once"]

_POLL_S = 0.5
_LEARNING_PART = 4


def run_at_once(
    launcher: Launcher,
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains until the budget is spent or ``stop`` hears something. Blocks.

    Args:
        launcher: Starts the processes.
        config: The run's config, of roles that share no process; its task is what the
            user typed.
        run: The run; the caller holds its ``train`` lock.
        budget: Of this call.
        journal: Takes every report.
        stop: Ends the turns that are going on, with everything saved.
        num_threads: Cores to use; see ``threads_at_once`` for who has how many.

    Raises:
        UsageError: A role refused its config or its files.
        RunError: A role failed or died again and again.
    """
    handles = {
        role: launcher.start((role,), threads, config.launch.of(role))
        for role, threads in threads_at_once(config, num_threads).items()
    }
    loop = _AtOnce(config, run, budget, journal, handles)

    def end() -> None:
        loop.end()
        for handle in handles.values():
            handle.stop()

    stop.tell(end)
    try:
        loop.run()
        if not stop.event.is_set():
            loop.finish()
    finally:
        end()
        for handle in handles.values():
            handle.close()


def threads_at_once(config: RunConfig, num_threads: int) -> dict[str, int]:
    """Returns the threads of each role of a run.

    Those that always work divide the cores: the learner has every fourth, one at
    least, and self-play the others; without self-play the learner has all. The other
    roles work now and then and have one thread each. ``launch.roles`` changes any.

    Args:
        config: The run's.
        num_threads: Cores to use.
    """
    schedule = config.agent.schedule(config)
    threads = {role: 1 for role in (*schedule.needed, schedule.rating) if role}
    threads["learn"] = num_threads
    if schedule.acting:
        threads["learn"] = max(1, num_threads // _LEARNING_PART)
        threads[schedule.acting] = max(1, num_threads - threads["learn"])
    return {
        role: config.launch.of(role).num_cpus or number
        for role, number in threads.items()
    }


class _AtOnce:
    """A thread a role; ``run`` and ``finish`` are for the caller's thread."""

    def __init__(
        self,
        config: RunConfig,
        run: RunDirectory,
        budget: Budget,
        journal: RunJournal,
        handles: Mapping[str, Handle],
    ) -> None:
        self._config = config
        self._schedule: Schedule = config.agent.schedule(config)
        self._run = run
        self._journal = journal
        self._handles = handles
        self._is_over = threading.Event()
        # Of all below, which no thread keeps while a turn goes on.
        self._lock = threading.Lock()
        self._error: Exception | None = None
        before = 0
        if budget.games is not None:
            before = num_games_kept(writer_directory(run, TRAIN_WRITER))
        self._spending = Spending(budget, before)
        self._busy = BusyTimes()
        self._stages: dict[str, str] = {}
        self._rated_s = 0.0
        self._last_s: dict[str, float] = {}
        self._is_chosen = False

    def run(self) -> None:
        """Works until the budget is spent, something stops it, or a role fails."""
        threads = [
            threading.Thread(target=self._serve, args=(role,), name=role)
            for role in self._handles
        ]
        for thread in threads:
            thread.start()
        while not self._is_over.wait(_POLL_S):
            with self._lock:
                if self._spending.is_over(self._publishing_s()):
                    self._is_over.set()
        for role in self._handles if self._error else self._ending():
            self._handles[role].stop()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Learns from the last games while there is time, and makes a model of it."""
        for role in self._schedule.learning:
            while (report := self._turn(role)) is not None:
                is_late = self._spending.is_late(self._publishing_s())
                if report.get("stopped") or (role == "learn" and is_late):
                    break

    def end(self) -> None:
        """Has every role take no other turn. From any thread; does not block."""
        self._is_over.set()

    def _ending(self) -> list[str]:
        """Returns the roles that end their turns when the budget is spent.

        In minutes the learner does too: what it has learned by then makes the model.
        """
        schedule = self._schedule
        ending = [schedule.acting, schedule.rating]
        if self._spending.is_late(self._publishing_s()):
            ending += [
                role for role in schedule.learning if role in ("shuffle", "learn")
            ]
        return [role for role in ending if role]

    def _publishing_s(self) -> float:
        """Returns how long a model takes from its checkpoint on, as it last did."""
        return self._last_s.get("export", 0.0) + self._last_s.get("gate", 0.0)

    def _serve(self, role: str) -> None:
        try:
            while not self._is_over.is_set():
                if not self._is_wanted(role) or self._turn(role) is None:
                    self._is_over.wait(_POLL_S)
        except Exception as error:
            with self._lock:
                self._error = self._error or error
            self._is_over.set()

    def _is_wanted(self, role: str) -> bool:
        """Returns whether a role may take a turn now."""
        if role in ("shuffle", "learn", "export"):
            return True
        # Export completes the config, which the others read once.
        if not self._is_chosen and read_config(self._run).inference.has_auto:
            return False
        self._is_chosen = True
        with self._lock:
            if role == self._schedule.acting:
                # Checked before each turn, not in the loop that looks now and then, so
                # that no generation too many begins.
                if self._spending.is_over(self._publishing_s()):
                    self._is_over.set()
                return not self._is_over.is_set()
            rating = self._config.agent.rating
            if role != self._schedule.rating or rating is None:
                return True
            return self._rated_s < rating.time_share * self._spending.elapsed_s

    def _turn(self, role: str) -> dict[str, Any] | None:
        is_acting = role == self._schedule.acting
        sealed = sealed_generation(writer_directory(self._run, TRAIN_WRITER))
        with self._lock:
            if is_acting:
                self._spending.begin_turn()
            details = {
                "remaining": self._spending.remaining(),
                "spent": self._spending.spent(),
                "sealed": sealed,
                "follow_models": True,
            }
            self._busy.begin(role)
        start_s = time.monotonic()

        def on_progress(report: dict[str, Any]) -> None:
            with self._lock:
                if is_acting:
                    self._spending.note(report)
                self._journal.progress({**report, "stage": self._stage(role, report)})

        def on_death(role: str, how: str) -> None:
            with self._lock:
                self._journal.death(role, how)

        report = None
        try:
            report = self._handles[role].turn(role, on_progress, on_death, details)
        finally:
            with self._lock:
                self._busy.end(role, worked=report is not None)
                self._stages.pop(role, None)
        if report is not None and not report.keys() <= {"stopped"}:
            with self._lock:
                self._take(role, report, time.monotonic() - start_s)
        return report

    def _stage(self, role: str, report: Mapping[str, Any]) -> str:
        """Returns what all roles do now."""
        if "stage" in report:
            self._stages[role] = report["stage"]
        told = (self._stages[name] for name in self._handles if name in self._stages)
        return ", ".join(told)

    def _take(self, role: str, report: dict[str, Any], seconds: float) -> None:
        schedule = self._schedule
        # The first turn of a call starts a process, which tells nothing of the next.
        is_first = role not in self._last_s
        self._last_s[role] = 0.0 if is_first else seconds
        if is_first and role == (schedule.acting or "learn"):
            self._busy.restart()
        if role == schedule.acting:
            self._spending.end_turn(report, counts_frames=schedule.counts_frames)
        if role == schedule.rating:
            self._rated_s += seconds
        self._journal.report(role, report, seconds)
        if role == schedule.learning[-1] and not report.get("stopped"):
            self._journal.end_generation(self._busy.shares())
