"""The schedule of a call: when each role takes a turn.

::

    at once:                              in turns:
      a thread a process:                   while budget is left:
        while the call goes on:               learn, export, gate   # see ``turns``
          take a turn of each of its          act
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
"""

from __future__ import annotations

import threading
import time
from typing import Any

from tengen.launch.budget import Budget, Spending
from tengen.launch.crew import Crew
from tengen.launch.process import Processes, close_all
from tengen.launch.reports.journal import RunJournal
from tengen.launch.reports.turns import TurnReports
from tengen.launch.turns import Turns
from tengen.launch.waiting import Waiting
from tengen.launch.workers import Worker, workers_at_once, workers_in_turns
from tengen.roles import (
    TRAIN_WRITER,
    RunConfig,
    Schedule,
    StopListener,
    read_config,
    read_spent,
    record_generation,
    record_spent,
    sealed_generation,
    writer_directory,
)
from tengen.run import RunDirectory, remove_services

__all__ = ["run_schedule"]

_POLL_S = 0.5
_IDLE_S = 0.05


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
    loop: Turns | _AtOnce
    if takes_turns:
        loop = Turns(config, run, spending, journal, crew, stop)
    else:
        loop = _AtOnce(config, run, spending, journal, crew, stop)

    def end() -> None:
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


class _AtOnce:
    """The schedule, with one thread for each process."""

    def __init__(
        self,
        config: RunConfig,
        run: RunDirectory,
        spending: Spending,
        journal: RunJournal,
        crew: Crew,
        stop: StopListener,
    ) -> None:
        self._config = config
        self._schedule: Schedule = config.schedule
        self._run = run
        self._journal = journal
        self._crew = crew
        self._is_over = threading.Event()
        # Further learners take turns as long as the first one learns.
        self._is_learned = threading.Event()
        self._stop = stop
        # Guards everything below; no thread holds it during a turn.
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._spending = spending
        self._waiting = Waiting(self._schedule, config.launch)
        self._reports = TurnReports(self._schedule, spending, journal, crew.workers)
        self._is_chosen = False
        self._begun: set[str] = set()
        # The roles that are to read the config again.
        self._changed: set[str] = set()

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
                if self._spending.is_over(self._reports.publishing_s):
                    self._is_over.set()
                self._tell_who_waits()
            self._scale()
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
                is_late = self._spending.is_late(self._reports.publishing_s)
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
        is_late = self._spending.is_late(self._reports.publishing_s)
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
                self._reports.count(count, leaving)
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
                if self._spending.is_over(self._reports.publishing_s):
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
            return self._reports.rated_s < share * self._spending.elapsed_s

    def _turn(self, worker: Worker, role: str) -> dict[str, Any] | None:
        is_acting = role == self._schedule.acting
        writer = TRAIN_WRITER + (worker.index if is_acting else 0)
        sealed = sealed_generation(writer_directory(self._run, writer))
        with self._lock:
            details: dict[str, Any] = {
                **self._spending.outlook(),
                "sealed": sealed,
                "follow_models": True,
                "frames_left": self._spending.frames_left(),
                # Learning goes on meanwhile, so playing may take all of the time.
                "generation_s": self._spending.generation_s,
                "is_changed": role in self._changed,
            }
            self._changed.discard(role)
            if not worker.is_follower:
                self._reports.begin(worker, role)
        start_s = time.monotonic()

        def on_progress(report: dict[str, Any]) -> None:
            with self._lock:
                self._spending.count(report)
            # The leading learner reports what all learners do.
            if worker.is_follower:
                return
            if "starting" not in report:  # said before a cluster has found room
                self._note_room(worker, report.get("waiting_s"))
            with self._lock:
                self._reports.progress(worker, role, report, self._crew.workers)

        def on_death(role: str, how: str) -> None:
            with self._lock:
                self._journal.death("learn" if worker.is_follower else role, how)

        report = None
        try:
            handle = self._crew.handle(worker)
            report = handle.turn(role, on_progress, on_death, details)
            with self._lock:
                self._spending.count(report or {})
                if role == "learn" and not self._schedule.acting:
                    # Another run plays, and this one waits for its games.
                    self._spending.begin_work()
            if worker.is_follower:
                return report
        finally:
            with self._lock:
                if not worker.is_follower:
                    self._reports.end(worker, role, report)
        with self._lock:
            if report is None or not report.keys() <= {"stopped"}:
                self._waiting.note(worker, None)
            if report is not None or role != self._schedule.serving:
                self._begun.add(role)
            if report is not None and not report.keys() <= {"stopped"}:
                seconds = time.monotonic() - start_s
                self._reports.take(worker, role, report, seconds, self._crew.workers)
            elif is_acting:
                self._spending.drop_turn(worker.name)
        if is_acting and report is not None and "fitted" in report:
            self._record(report["fitted"])
        return report

    def _record(self, fitted: dict[str, Any]) -> None:
        """Keeps the size of generations that fits; learning may wait for fewer rows."""
        if record_generation(self._run, fitted):
            with self._lock:
                self._changed |= {"learn", "shuffle"} & {*self._schedule.learning}

    def _note_room(self, worker: Worker, waiting_s: float | None) -> None:
        """Notes how long a process has waited for room; None: it has room.

        Raises:
            RunError: The run needs the process, which has waited for too long.
        """
        with self._lock:
            self._waiting.note(worker, waiting_s)
            if self._is_over.is_set():
                # The loop that reports waiting processes has ended.
                self._tell_who_waits()
            if waiting_s is None:
                return
            if worker.roles == (self._schedule.acting,):
                # Other processes may play its games, because it may never have room.
                self._spending.drop_turn(worker.name)
            is_late = self._spending.is_late()
            if not is_late:
                self._waiting.check(self._crew.workers)
        if is_late:
            # The budget is spent: it need not wait for room.
            self._crew.handle(worker).stop()

    def _tell_who_waits(self) -> None:
        """Shows which processes wait, if that changed; the caller has the lock."""
        if (names := self._waiting.news()) is not None:
            self._journal.waiting(names)
