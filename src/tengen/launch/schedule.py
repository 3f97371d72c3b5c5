"""The schedule of a call: when each role takes a turn.

::

    at once:                              in turns:
      a thread a process:                   while budget is left:
        while the call goes on:               learn, export, gate
          take a turn of each of its          act: one generation
          roles; if none had anything         rate, now and then
          to do, wait
      then:
        end acting; learn, export and
        gate what is there, in turn

If the run had all its models before the call, nothing works.

Where roles work at once, a run of a board game has a process for each role, and several
of ``selfplay`` if ``launch.roles`` says so. A run of environments has one process for
learning, one for inference and one for each actor; actors have no network (see
``roles.actor``). Self-play goes on with models that are published meanwhile, in the
middle of a game. A seed does not give the same run, because the processes' speeds
decide. A process that dies is started again and its turn is redone; if it dies again
and again, the run ends and names it.

Where roles take turns, each turn continues from what is published, so the same loop
resumes whatever killed the last call. In environments actor and learner are in one
process, and the actor uses the learner's network in memory; a checkpoint and a model
are written every few seconds, and at the end. On a CPU each turn uses all cores:
self-play and learning never compete for caches, and a seed gives the same run.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.experience.games.files import experience_files
from tengen.launch.budget import Budget, Spending
from tengen.launch.crew import Crew
from tengen.launch.process import Processes, close_all
from tengen.launch.reports.journal import RunJournal
from tengen.launch.taking import TurnTaker
from tengen.launch.workers import Worker, workers_at_once, workers_in_turns
from tengen.roles import (
    RunConfig,
    StopListener,
    read_config,
    read_spent,
    record_spent,
    with_games,
)
from tengen.run import RunDirectory, remove_services

__all__ = ["run_schedule"]

_POLL_S = 0.5
_IDLE_S = 0.05
_PLAYING_SHARE = 0.5


def run_schedule(
    processes: Processes,
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
    takes_turns: bool = False,
) -> None:
    """Trains until the budget is spent or ``stop`` is told to end the run. Blocks.

    Args:
        processes: Starts the processes.
        config: The run's config; its task is what the user typed.
        run: The run; the caller holds its ``train`` lock.
        budget: The call's budget.
        journal: Takes every report.
        stop: Ends the present turns, with everything saved.
        num_threads: Cores to use; see ``workers_at_once`` for who has how many.
        takes_turns: Whether roles take turns, each on all cores; else all work at once.

    Raises:
        UsageError: A role refused its config or its files.
        RunError: A role failed or died again and again.
    """
    if takes_turns:
        # Roles that worked at once may have left experience in memory when they were
        # killed. It is older than what roles in turns write now.
        remove_services(run)
    workers_of = workers_in_turns if takes_turns else workers_at_once
    # Read first, so that damaged files are refused before a process starts.
    spending = Spending(budget, read_spent(run), num_threads, run.models.latest)
    journal.begin(spending)
    crew = Crew(processes, config, run, workers_of(config, num_threads))
    kind = _InTurns if takes_turns else _AtOnce
    loop = kind(config, run, spending, journal, crew, stop)

    def end() -> None:
        if isinstance(loop, _AtOnce):
            loop.end()
        for handle in crew.handles():
            handle.stop()
        crew.kill_soon(crew.workers)

    stop.tell(end)
    try:
        loop.run()
    finally:
        end()
        # A second interrupt may end this process while roles save.
        record_spent(run, spending.core_minutes)
        crew.join()
        try:
            crew.close_actors()
            close_all(crew.handles())
        finally:
            remove_services(run)
            record_spent(run, spending.core_minutes)


class _AtOnce(TurnTaker):
    """The schedule of roles that work at the same time: a thread for each process."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts, at_once=True)
        self._is_over = threading.Event()
        # Further learners take turns as long as the first one learns.
        self._is_learned = threading.Event()
        self._error: Exception | None = None
        self._is_chosen = False

    def run(self) -> None:
        """Works until the budget is spent, the run is stopped, or a role fails."""
        # Otherwise the learner would go on and make a model too many.
        if not self._spending.is_trained():
            self._work()
            if not self._stop.event.is_set():
                self._finish()

    def _work(self) -> None:
        crew = self._crew
        crew.start_threads(self._serve)
        while not self._is_over.wait(_POLL_S):
            with self._lock:
                if self._spending.is_over(self._publishing_s):
                    self._is_over.set()
                self._tell_who_waits()
            self._scale()
        self._tells_at_once = True
        ending = [one for one in crew.workers if self._error or self._is_ending(one)]
        for worker in ending:
            crew.handle(worker).stop()
        crew.kill_soon(ending)
        following = {one.name for one in crew.workers if one.is_follower}
        for name, thread in crew.threads.items():
            if name not in following:
                thread.join()
        if self._error is not None:
            raise self._error

    def _finish(self) -> None:
        """Learns from the last games while there is time, and makes a last model.

        Raises:
            UsageError: A role refused its config or files.
            RunError: A role that the run needs has no room in the cluster, or failed.
        """
        if not self._spending.is_trained():
            with self._lock:
                self._waiting.check_end(self._crew.workers)
        for role in self._schedule.learning:
            worker = self._crew.of_role(role)
            # Once a turn has made the last model, the remaining games are not learned
            # from.
            while not self._spending.is_trained():
                report = self._turn(worker, role)
                is_late = self._spending.is_late(self._publishing_s)
                if report is None or report.get("stopped"):
                    break
                if role == "learn" and is_late:
                    break

    def end(self) -> None:
        """Makes no role take another turn. From any thread; does not block."""
        self._is_over.set()
        self._is_learned.set()

    def _is_ending(self, worker: Worker) -> bool:
        """Returns whether a process ends its turn when the budget is spent.

        With a budget in minutes the learner does too: the model has what it has learned
        by then, but nothing of a pass (``store.kind=generations``) that is not over.
        """
        schedule = self._schedule
        if worker.roles[0] in (schedule.acting, schedule.rating):
            return True
        is_late = self._spending.is_late(self._publishing_s)
        return is_late and worker.roles in (("shuffle",), ("learn",))

    def _serve(self, worker: Worker) -> None:
        idle_s = _IDLE_S if self._schedule.serving else _POLL_S
        is_over = self._is_learned if worker.is_follower else self._is_over
        try:
            while not is_over.is_set() and not self._crew.has_left(worker):
                reports = [
                    self._turn(worker, role)
                    for role in worker.roles
                    if not is_over.is_set() and self._is_wanted(worker, role)
                ]
                if all(report is None for report in reports):
                    is_over.wait(idle_s)
            if self._crew.has_left(worker):
                self._crew.forget(worker)
        except Exception as error:
            with self._lock:
                if self._is_over.is_set() and self._crew.is_actor(worker):
                    # The services that it uses may end first, and it has nothing to
                    # save.
                    self._journal.ended_late(worker.name, str(error))
                else:
                    self._error = self._error or error
                    # Stop every process, so that none waits for another.
                    self._is_learned.set()
            self._is_over.set()

    def _scale(self) -> None:
        """Starts or ends acting processes as ``run.json`` says (``tengen scale``)."""
        before = len(self._crew.workers)
        count, leaving, refused = self._crew.follow_config()
        if len(self._crew.workers) != before or refused:
            with self._lock:
                self._acting.count(count, [one.name for one in leaving])
                for worker in leaving:
                    self._waiting.forget(worker)
                outgrown = self._crew.outgrown(count)
                self._journal.scaled(self._schedule.acting, count, refused, outgrown)
        self._crew.kill_soon(leaving)
        self._crew.start_threads(self._serve)

    def _is_wanted(self, worker: Worker, role: str) -> bool:
        """Returns whether a role takes a turn now; a turn of acting then begins."""
        if role in self._schedule.learning and self._spending.is_trained():
            return False  # it would lead to a model too many
        if role in ("shuffle", "learn", "export", "follow"):
            return True
        # Export completes the config, which the other roles read once.
        if not self._is_chosen and read_config(self._run).inference.has_auto:
            return False
        self._is_chosen = True
        with self._lock:
            if role == self._schedule.acting:
                serving = self._schedule.serving
                if serving and not {"learn", serving} <= self._begun:
                    return False  # the services of actors are not there yet
                # Checked before each turn, not only now and then, so that no extra
                # generation begins.
                if self._spending.is_over(self._publishing_s):
                    self._is_over.set()
                if self._is_over.is_set() or self._spending.is_taken():
                    return False
                # Counted at once, so that no other process takes the same games of the
                # budget.
                num_games = self._schedule.games_per_turn
                self._spending.begin_turn(worker.name, num_games)
                return True
            if role != self._schedule.rating:
                return True
            share = self._schedule.rating_share
            return self._rated_s < share * self._spending.elapsed_s


class _InTurns(TurnTaker):
    """The schedule of turns. Used by one thread."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts, at_once=False)
        self._learning_s = 0.0
        self._playing_s = 0.0
        self._has_begun = False
        self._games_seen: set[Path] = set()

    def run(self) -> None:
        """Takes turns until the budget is spent or the run is stopped."""
        if self._run.checkpoints.latest() is None:
            # Makes the first model; imported games may be learned from before any game.
            self._learn()
        while not self._stop.event.is_set():
            self._learn()
            self._journal.end_generation()
            self._rate()
            if self._is_over():
                if self._schedule.is_shared:
                    # What the last turns learned but did not save becomes a model.
                    self._learn(saves=True)
                return
            if not self._schedule.acting:
                self._wait_for_games()
            else:
                self._play()
            self._has_begun = True

    def _learn(self, *, saves: bool = False) -> None:
        if self._spending.is_trained():
            return
        start_s = time.monotonic()
        for role in self._schedule.learning:
            report = self._take(role, saves=saves)
            if role == "learn":
                self._count_frames(report)
                self._learn_rest(report)
        # The first turns of a call start processes, so their times are not typical.
        if self._has_begun:
            self._learning_s = time.monotonic() - start_s

    def _count_frames(self, report: dict[str, Any] | None) -> None:
        """Sets the frames from the table: a killed process may have lost some."""
        table = {} if report is None else report.get("table", {})
        if self._schedule.counts_frames and "num_rows" in table:
            self._spending.count_frames(table["num_rows"])

    def _learn_rest(self, report: dict[str, Any] | None) -> None:
        """Takes turns until the whole generation is learned from, as in one turn.

        If other processes play meanwhile that might never happen, so the first turn
        that takes in new games is the last before a model is made.
        """
        while report is not None and report.get("steps_left"):
            report = self._take("learn")
            if report is not None and report.get("num_new"):
                return

    def _is_over(self) -> bool:
        # A generation is played only if it can be learned from before the end.
        return self._spending.is_over(self._playing_s + self._learning_s)

    def _play(self) -> None:
        start_s = time.monotonic()
        acting = self._schedule.acting
        self._spending.begin_turn(self._crew.of_role(acting).name)
        report = self._take(acting)
        self._playing_s = time.monotonic() - start_s
        if report is None:
            raise RunError(
                f"role ({acting}) found no model to play with; see {self._run.logs}"
            )

    def _wait_for_games(self) -> None:
        """Returns once the other run has sealed games, or this run is to end."""
        experience = with_games(self._config, self._run).experience
        self._spending.begin_work()
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
        share, elapsed_s = self._schedule.rating_share, self._spending.elapsed_s
        if not share or self._stop.event.is_set():
            return
        if self._rated_s <= share * elapsed_s and elapsed_s:
            self._take(self._schedule.rating)

    def _take(self, role: str, *, saves: bool = False) -> dict[str, Any] | None:
        if self._stop.event.is_set():
            return {"stopped": True}
        return self._turn(
            self._crew.of_role(role),
            role,
            saves=saves or not self._schedule.is_shared,
            generation_s=self._generation_s(),
        )

    def _generation_s(self) -> float | None:
        """Returns the seconds that playing a generation may take; None for any time."""
        whole_s = self._spending.generation_s
        total_s = self._playing_s + self._learning_s
        # Before both are known, playing is taken to be half of a generation's time.
        is_known = self._playing_s > 0.0 and self._learning_s > 0.0
        share = self._playing_s / total_s if is_known else _PLAYING_SHARE
        return None if whole_s is None else whole_s * share
