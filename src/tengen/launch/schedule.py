"""The schedule of a call, which decides when each role takes a turn.

::

    concurrently:                         in turns:
      in one thread per process:            while budget is left:
        while the call runs:                  learn, export, gate
          run a turn of each role;            act: one generation
          if no role had work, wait           rate, occasionally
      then:
        stop acting; learn from the
        last games, export, gate

If the run already has its final model, a call does nothing.

If roles work concurrently, a run of a board game has one process per role, and several
``selfplay`` processes if ``launch.roles`` says so. A run of environments has one
process for learning, one for inference and one per actor; actors have no network (see
``roles.actor``). Self-play switches to newly published models in the middle of a game.
A seed does not reproduce the run, because results depend on the speeds of processes. A
process that dies is restarted and its turn is repeated. If it dies repeatedly, the run
ends with an error that names the process's role.

If roles take turns, each turn continues from published files, so the same loop resumes
a run after any interruption. In environments, actor and learner share a process and the
network in memory. A checkpoint and a model are written every few seconds and at the
end. On a CPU each turn uses all cores, so self-play and learning do not compete for
caches, and a seed reproduces the run.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.experience.games.files import experience_files
from tengen.launch.budget import Spending
from tengen.launch.crew import Crew
from tengen.launch.launcher import TrainingCall
from tengen.launch.process import Processes, close_all
from tengen.launch.taking import TurnTaker
from tengen.launch.workers import Worker, workers_at_once, workers_in_turns
from tengen.roles import read_config
from tengen.roles.inputs import with_games
from tengen.roles.spent import read_spent, record_spent
from tengen.run import remove_services

_POLL_S = 0.5
_IDLE_S = 0.05
_PLAYING_SHARE = 0.5


def run_schedule(
    processes: Processes, call: TrainingCall, *, takes_turns: bool = False
) -> None:
    """Trains a run until the budget is spent or the call is stopped. Blocks.

    Args:
        processes: Starts the processes.
        call: The call. ``workers_at_once`` divides its cores.
        takes_turns: Whether roles take turns, each with all cores; otherwise all roles
            work concurrently.

    Raises:
        UsageError: A role rejected its config or files.
        RunError: A role failed or died repeatedly.
    """
    config, run = call.config, call.run
    if takes_turns:
        # Killed processes of a concurrent call may have left experience in shared
        # memory, which must not be mixed with newer experience.
        remove_services(run)
    workers_of = workers_in_turns if takes_turns else workers_at_once
    # Read the files first, so that a damaged file raises before a process starts.
    spending = Spending(
        call.budget, read_spent(run), call.num_threads, run.models.latest
    )
    call.journal.begin(spending)
    crew = Crew(processes, config, run, workers_of(config, call.num_threads))
    loop = (_InTurns if takes_turns else _AtOnce)(call, spending, crew)

    def end() -> None:
        if isinstance(loop, _AtOnce):
            loop.end()
        for handle in crew.handles():
            handle.stop()
        crew.kill_soon(crew.workers)

    call.stop.tell(end)
    try:
        loop.run()
    finally:
        end()
        # Record early, too, because a second interrupt may end this process in a save.
        record_spent(run, spending.core_minutes)
        crew.join()
        try:
            crew.close_actors()
            close_all(crew.handles())
        finally:
            remove_services(run)
            record_spent(run, spending.core_minutes)


class _AtOnce(TurnTaker):
    """The schedule of roles that work concurrently, with one thread per process."""

    def __init__(self, call: TrainingCall, spending: Spending, crew: Crew) -> None:
        super().__init__(call, spending, crew, at_once=True)
        self._is_over = threading.Event()
        # Set when the leading learner has finished; until then, followers take turns.
        self._is_learned = threading.Event()
        self._error: Exception | None = None
        self._is_chosen = False

    def run(self) -> None:
        """Runs turns until the budget is spent, the run is stopped, or a role fails."""
        # Learning would add a model to a run that already has its final model.
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
        """Learns from the last games if time is left, and publishes a final model.

        Raises:
            UsageError: A role rejected its config or files.
            RunError: A required role failed, or waits for cluster resources.
        """
        if not self._spending.is_trained():
            with self._lock:
                self._waiting.check_end(self._crew.workers)
        for role in self._schedule.learning:
            worker = self._crew.of_role(role)
            # The remaining games are not learned from after the final model.
            while not self._spending.is_trained():
                report = self._turn(worker, role)
                is_late = self._spending.is_late(self._publishing_s)
                if report is None or report.get("stopped"):
                    break
                if role == "learn" and is_late:
                    break

    def end(self) -> None:
        """Prevents further turns of all roles. Thread-safe; does not block."""
        self._is_over.set()
        self._is_learned.set()

    def _is_ending(self, worker: Worker) -> bool:
        """Returns whether a process must exit when the budget is spent.

        If the minutes are spent, the learner must exit, too. Its last model contains
        all training except an incomplete pass (``store.kind=generations``).
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
                    # Only log the error, because the actor's services may have ended
                    # first, and an actor has nothing to save.
                    self._journal.ended_late(worker.name, str(error))
                else:
                    self._error = self._error or error
                    # Stop followers, too, so that no process waits for another process.
                    self._is_learned.set()
            self._is_over.set()

    def _scale(self) -> None:
        """Adapts the number of acting processes to ``run.json`` (``tengen scale``)."""
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
        """Returns whether a role may take a turn now; records begun acting turns."""
        if role in self._schedule.learning and self._spending.is_trained():
            return False  # the turn would add a model after the final model
        if role in ("shuffle", "learn", "export", "follow"):
            return True
        # Other roles wait for export to replace the config's "auto" values.
        if not self._is_chosen and read_config(self._run).inference.has_auto:
            return False
        self._is_chosen = True
        with self._lock:
            if role == self._schedule.acting:
                serving = self._schedule.serving
                if serving and not {"learn", serving} <= self._begun:
                    return False  # services for actors have not started yet
                # Check the budget here, too, because the loop may check it too late.
                if self._spending.is_over(self._publishing_s):
                    self._is_over.set()
                if self._is_over.is_set() or self._spending.is_taken():
                    return False
                # Count these games now, so that no other process claims them.
                num_games = self._schedule.games_per_turn
                self._spending.begin_turn(worker.name, num_games)
                return True
            if role != self._schedule.rating:
                return True
            share = self._schedule.rating_share
            return self._rated_s < share * self._spending.elapsed_s


class _InTurns(TurnTaker):
    """The schedule of roles that take turns. Not thread-safe."""

    def __init__(self, call: TrainingCall, spending: Spending, crew: Crew) -> None:
        super().__init__(call, spending, crew, at_once=False)
        self._learning_s = 0.0
        self._playing_s = 0.0
        self._has_begun = False
        # A checkpoint that left the other roles nothing to export or to judge.
        self._published: int | None = None
        self._games_seen: set[Path] = set()

    def run(self) -> None:
        """Runs the roles in turns until the budget is spent or the run is stopped."""
        if self._run.checkpoints.latest() is None:
            # Publish the first model; the next turns may learn from imported games.
            self._learn()
        while not self._stop.event.is_set():
            self._learn()
            self._journal.end_generation()
            self._rate()
            if self._is_over():
                if self._schedule.is_shared:
                    # Publish a model with the unsaved training of the last turns.
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
        checkpoint = report = None
        for role in self._schedule.learning:
            report = self._take(role, saves=saves)
            if role == "learn":
                self._count_frames(report)
                report = self._learn_rest(report)
                checkpoint = None if report is None else report.get("checkpoint")
                if checkpoint is not None and checkpoint == self._published:
                    break
            while saves and role == "gate" and report and not report.get("stopped"):
                # An earlier call may have left a candidate.
                report = self._take(role, saves=saves)
        else:
            # A learner that acts with its own network writes checkpoints every few
            # seconds, so after most of its turns, the other roles have nothing to do.
            is_idle = self._schedule.is_shared and report is None
            self._published = checkpoint if is_idle else None
        # Ignore the time of a call's first turns, which include process start-up.
        if self._has_begun:
            self._learning_s = time.monotonic() - start_s

    def _count_frames(self, report: dict[str, Any] | None) -> None:
        """Sets the frame count from the table, which excludes lost frames."""
        table = {} if report is None else report.get("table", {})
        if self._schedule.counts_frames and "num_rows" in table:
            self._spending.count_frames(table["num_rows"])

    def _learn_rest(self, report: dict[str, Any] | None) -> dict[str, Any] | None:
        """Repeats the learner's turn until it has learned from all of a generation.

        Stops after a turn that includes new games, because it might never end if other
        processes kept adding games.

        Returns:
            The last report.
        """
        while report is not None and report.get("steps_left"):
            report = self._take("learn")
            if report is not None and report.get("num_new"):
                break
        return report

    def _is_over(self) -> bool:
        # Do not start a generation unless there is time to play and learn from it.
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
        """Waits until the run ``agent.learn_from`` has new games, or this run ends."""
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
        """Rates the newest model, unless rating has used up its share of the time."""
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
        """Returns the time limit for playing a generation, in seconds, or None."""
        whole_s = self._spending.generation_s
        total_s = self._playing_s + self._learning_s
        # Until both times are known, assume that playing takes half of the total.
        is_known = self._playing_s > 0.0 and self._learning_s > 0.0
        share = self._playing_s / total_s if is_known else _PLAYING_SHARE
        return None if whole_s is None else whole_s * share
