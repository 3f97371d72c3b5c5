"""The inline launcher: roles take turns, in one process tree on one machine.

::

    while budget is left:
        learn, export, gate           # nothing to do unless a generation is new; an
                                      # epoch a turn, until it is learned from;
                                      # shuffle before them where it draws the batches
        selfplay (or actor)           # one generation on the newest model
        rate, now and then

Every turn carries on from what is published, so whatever killed the last call, the
same loop resumes. On a CPU the turns use all cores one after the other: self-play and
learning never compete for caches, and a seed gives the same run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.launch.journal import RunJournal
from tengen.launch.process import RoleProcess
from tengen.roles import (
    TRAIN_WRITER,
    RunConfig,
    StopListener,
    num_games_kept,
    sealed_generation,
    with_games,
    writer_directory,
)
from tengen.run import RunDirectory
from tengen.store import WindowConfig
from tengen.store.files import experience_files

__all__ = ["Budget", "run_inline"]


_POLL_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one call does; None is no limit."""

    minutes: float | None = None
    """Wall time of the call; the closing match comes after it."""
    games: int | None = None
    """Games (or episodes' unrolls) to play in this call, in whole generations."""

    def spent(self, *, elapsed_s: float, games: int, games_before: int) -> float | None:
        """Returns the share that is spent, in [0, 1]; None without a budget.

        In games it is of the run's games at the end of the call, so that a run which
        is interrupted and then plays the rest grows where it would have anyway. Of two
        budgets the one that ends first counts.

        Args:
            elapsed_s: Seconds of this call.
            games: Games that this call has played.
            games_before: Those that the run had before.
        """
        shares = []
        if self.minutes is not None:
            shares.append(elapsed_s / (60 * self.minutes))
        if self.games is not None:
            shares.append((games_before + games) / (games_before + self.games))
        return min(1.0, max(shares)) if shares else None


def run_inline(
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
        config: The run's config.
        run: The run; the caller holds its ``train`` lock.
        budget: Of this call.
        journal: Takes every report.
        stop: Ends the turn that is going on, with everything saved.
        num_threads: Cores to use.

    Raises:
        RunError: A role failed or died again and again.
        UsageError: A role refused its config or files.
    """
    actor = "selfplay" if config.actor.kind == "selfplay" else "actor"
    learning = _learning_roles(config)
    processes = _processes(run, actor, learning, num_threads)
    distinct = set(processes.values())

    def end() -> None:
        for process in distinct:
            process.stop()

    stop.tell(end)
    try:
        _Loop(config, run, budget, journal, processes, actor, learning, stop).run()
    finally:
        end()
        for process in distinct:
            process.close()


def _learning_roles(config: RunConfig) -> tuple[str, ...]:
    """Returns the roles between two generations, in order."""
    store = config.store
    is_shuffled = isinstance(store, WindowConfig) and store.drawn_by == "shuffle"
    return (*(("shuffle",) if is_shuffled else ()), "learn", "export", "gate")


def _processes(
    run: RunDirectory, actor: str, learning_roles: tuple[str, ...], num_threads: int
) -> dict[str, RoleProcess]:
    """Returns the process of each role.

    Torch in the learner's threads slows OpenVINO in its process, so self-play has one
    of its own; environments share one with their learner.
    """
    if actor == "actor":
        shared = RoleProcess(run, (actor, *learning_roles), num_threads)
        return dict.fromkeys(shared.roles, shared)
    playing = RoleProcess(run, (actor, "rate"), num_threads)
    learning = RoleProcess(run, learning_roles, num_threads)
    return {name: p for p in (playing, learning) for name in p.roles}


class _Loop:
    def __init__(
        self,
        config: RunConfig,
        run: RunDirectory,
        budget: Budget,
        journal: RunJournal,
        processes: dict[str, RoleProcess],
        actor: str,
        learning_roles: tuple[str, ...],
        stop: StopListener,
    ) -> None:
        self._config = config
        self._run = run
        self._budget = budget
        self._journal = journal
        self._processes = processes
        self._actor = actor
        self._learning_roles = learning_roles
        self._stop = stop
        self._start_s = time.monotonic()
        self._games = 0
        self._games_before = 0
        if actor == "selfplay" and budget.games is not None:
            self._games_before = num_games_kept(writer_directory(run, TRAIN_WRITER))
        self._num_recovered: int | None = None
        self._rated_s = 0.0
        self._learning_s = 0.0
        self._playing_s = 0.0
        self._has_begun = False
        self._games_seen: set[Path] = set()

    def run(self) -> None:
        """Turns until the budget is spent or something stops it."""
        while not self._stop.event.is_set():
            self._learn()
            self._journal.end_generation()
            self._rate()
            if self._is_over():
                return
            if self._config.learn_from:
                self._wait_for_games()
            else:
                self._play()
            self._has_begun = True

    @property
    def elapsed_s(self) -> float:
        """Seconds of this call."""
        return time.monotonic() - self._start_s

    def _remaining(self) -> float | None:
        if self._budget.minutes is None:
            return None
        return max(0.0, 1.0 - self.elapsed_s / (60 * self._budget.minutes))

    def _learn(self) -> None:
        start_s = time.monotonic()
        for role in self._learning_roles:
            report = self._turn(role)
            if role == "learn":
                self._learn_rest(report)
        # The first turns of a call start processes, which tells nothing of the next.
        if self._has_begun:
            self._learning_s = time.monotonic() - start_s

    def _learn_rest(self, report: dict[str, Any] | None) -> None:
        """Takes turns until the generation is learned from whole, as in one turn.

        Where others play meanwhile that may never be: the first turn that takes in new
        games is the last before a model comes.
        """
        while report is not None and report.get("steps_left"):
            report = self._turn("learn")
            if report is not None and report.get("num_new"):
                return

    def _spent(self) -> float | None:
        return self._budget.spent(
            elapsed_s=self.elapsed_s, games=self._games, games_before=self._games_before
        )

    def _is_over(self) -> bool:
        if self._budget.games is not None and self._games >= self._budget.games:
            return True
        if self._budget.minutes is None:
            return False
        # A generation is played only if it can be learned from before the end.
        next_s = self._playing_s + self._learning_s
        return self.elapsed_s + next_s >= 60 * self._budget.minutes

    def _play(self) -> None:
        start_s = time.monotonic()
        self._num_recovered = None
        report = self._turn(self._actor)
        self._playing_s = time.monotonic() - start_s
        if report is None:
            raise RunError(
                f"role ({self._actor}) found no model to play with; "
                f"see {self._run.logs}"
            )
        # Games that an earlier call finished are not of this one.
        self._games += int(report.get("num_games", 0)) - (self._num_recovered or 0)

    def _wait_for_games(self) -> None:
        """Returns once the other run has sealed some, or the end has come."""
        experience = with_games(self._config, self._run).experience
        start_s = time.monotonic()
        while not self._stop.event.is_set() and not self._is_over():
            found = set(experience_files(experience, "npz"))
            if found != self._games_seen:
                self._games_seen = found
                break
            self._stop.event.wait(_POLL_S)
        self._journal.waited(time.monotonic() - start_s)

    def _rate(self) -> None:
        """Rates the newest model when its share of the time allows it."""
        share = self._config.rating.time_share
        if self._actor == "actor" or share == 0 or self._stop.event.is_set():
            return
        if self._rated_s > share * self.elapsed_s or self.elapsed_s < 1.0:
            return
        start_s = time.monotonic()
        self._turn("rate")
        self._rated_s += time.monotonic() - start_s

    def _turn(self, role: str) -> dict[str, Any] | None:
        if self._stop.event.is_set():
            return {"stopped": True}
        start_s = time.monotonic()
        details = {
            "remaining": self._remaining(),
            "spent": self._spent(),
            "sealed": sealed_generation(writer_directory(self._run, TRAIN_WRITER)),
        }
        report = self._processes[role].turn(
            role, self._on_progress, self._journal.death, details
        )
        if report is not None:
            self._note_recovered(report)
            self._journal.report(role, report, time.monotonic() - start_s)
        return report

    def _on_progress(self, report: dict[str, Any]) -> None:
        self._note_recovered(report)
        self._journal.progress(report)

    def _note_recovered(self, report: dict[str, Any]) -> None:
        # The first word counts: a turn that is redone recovers its own games too.
        if self._num_recovered is None:
            self._num_recovered = report.get("num_recovered")
