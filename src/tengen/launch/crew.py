"""The role processes of a call, and the threads that send turns to them.

If ``run.json`` changes, the number of acting processes changes during the call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Sequence

from tengen.errors import TengenError
from tengen.experience import TRAIN_WRITER, writer_directory
from tengen.launch.process import Processes, RoleProcess
from tengen.launch.workers import Worker
from tengen.roles import RunConfig, read_config
from tengen.run import RunDirectory, lock_holder

_MOST_GROWTH = 4
"""The maximum number of actors, as a multiple of the number at the start of the call.
Inference has space for eight times that number, including actors that died recently."""
_KILL_S = 10.0


class Crew:
    """The processes of a call. Only ``handles`` and ``kill_soon`` are thread-safe.

    Args:
        processes: Starts processes.
        config: The run's config.
        run: The run.
        workers: The initial processes.

    Attributes:
        workers: The working processes in order, without processes told to leave.
        threads: Threads by process name, including threads of processes that have left.
    """

    def __init__(
        self,
        processes: Processes,
        config: RunConfig,
        run: RunDirectory,
        workers: Sequence[Worker],
    ) -> None:
        self._processes = processes
        self._config = config
        self._run = run
        schedule = config.schedule
        self._acting = schedule.acting
        self._is_served = bool(schedule.serving)
        # Inference and the table are sized for this number of actors; 0 for self-play.
        self._sized = config.launch.of(self._acting).count if schedule.serving else 0
        self._looked: tuple[int, int] = self._stamp()
        self._lock = threading.Lock()
        self._handles: dict[str, RoleProcess] = {}
        self._left: set[str] = set()
        self.workers: list[Worker] = []
        self.threads: dict[str, threading.Thread] = {}
        for worker in workers:
            self._begin(worker)

    def of_role(self, role: str) -> Worker:
        """Returns the first process that hosts ``role``."""
        return next(one for one in self.workers if role in one.roles)

    def handle(self, worker: Worker) -> RoleProcess:
        """Returns the handle of a process, even if the process has left."""
        with self._lock:
            return self._handles[worker.name]

    def handles(self) -> list[RoleProcess]:
        """Returns the handles of all processes, including those that have left."""
        with self._lock:
            return list(self._handles.values())

    def has_left(self, worker: Worker) -> bool:
        """Returns whether a process was told to leave and must take no more turns."""
        with self._lock:
            return worker.name in self._left

    def start_threads(self, serve: Callable[[Worker], None]) -> None:
        """Starts a thread for each process without a thread."""
        for worker in self.workers:
            if worker.name not in self.threads:
                thread = threading.Thread(
                    target=serve, args=(worker,), name=worker.name
                )
                self.threads[worker.name] = thread
                thread.start()

    def follow_config(self) -> tuple[int, list[Worker], str]:
        """Starts or stops acting processes to match the number in ``run.json``.

        Returns:
            The number of acting processes, the processes that are leaving, and why
            there are fewer processes than requested, or "".

        Raises:
            RunError: ``run.json`` is damaged.
        """
        acting = [one for one in self.workers if one.roles == (self._acting,)]
        stamp = self._stamp()
        if not acting or stamp == self._looked:
            return len(acting), [], ""
        self._looked = stamp
        wanted = read_config(self._run).launch.of(self._acting).count
        refused = ""
        known = {one.index for one in acting}
        for index in range(wanted):
            if index in known:
                continue
            if self._sized and index >= _MOST_GROWTH * self._sized:
                refused = (
                    f"launch.roles.{self._acting}.count ({wanted}) must be at most "
                    f"{_MOST_GROWTH * self._sized} in this call, {_MOST_GROWTH} times "
                    f"the initial {self._sized}; restart the command"
                )
                break
            name = f"{self._acting}-{index}"
            leaving_thread = self.threads.get(name)
            if leaving_thread is not None and leaving_thread.is_alive():
                # The old process may still hold the lock of this index, so retry later.
                self._looked = (0, 0)
                continue
            worker = dataclasses.replace(acting[0], name=name, index=index)
            refused = self._held_by(index)
            if refused:
                break
            try:
                self._begin(worker)
            except TengenError as error:
                refused = str(error)
                break
        leaving = [one for one in acting if one.index >= wanted]
        with self._lock:
            self._left |= {one.name for one in leaving}
        self.workers = [one for one in self.workers if one not in leaving]
        for worker in leaving:
            self.handle(worker).stop()
        count = sum(one.roles == (self._acting,) for one in self.workers)
        return count, leaving, refused

    def join(self) -> None:
        """Waits for the remaining threads, after all processes were told to stop.

        These threads serve followers. A follower that does not end in time is killed.
        """
        for worker in self.workers:
            thread = self.threads.get(worker.name)
            if thread is None:
                continue
            thread.join(_KILL_S)
            if thread.is_alive():
                # Kill the follower, which has nothing to save.
                self.handle(worker).kill()
                thread.join()

    def kill_soon(self, workers: Sequence[Worker]) -> None:
        """Kills actors that do not exit in time, for example because of a hang.

        Actors have nothing to save. Does not block.

        Args:
            workers: Processes that were told to end. Only actors are killed.
        """
        for worker in workers:
            if self.is_actor(worker):
                timer = threading.Timer(_KILL_S, self.handle(worker).kill)
                timer.daemon = True
                timer.start()

    def close_actors(self) -> None:
        """Closes all actors. Ignores errors, because actors have nothing to save."""
        for worker in self.workers:
            if self.is_actor(worker):
                with contextlib.suppress(TengenError):
                    self.handle(worker).close()

    def is_actor(self, worker: Worker) -> bool:
        """Returns whether a process steps environments and does nothing else."""
        return self._is_served and worker.roles == (self._acting,)

    def outgrown(self, count: int) -> str:
        """Returns a warning if memory is sized for fewer than ``count`` actors."""
        if not 0 < self._sized < count:
            return ""
        return (
            "inference's batches and a queue's memory are still sized for "
            f"{self._sized}; restart the command to resize them"
        )

    def _held_by(self, index: int) -> str:
        """Returns an error if another process holds writer ``index``, or ""."""
        if self._acting != "selfplay":
            return ""
        folder = writer_directory(self._run, TRAIN_WRITER + index)
        holder = lock_holder(folder / "lock")
        if holder is None:
            return ""
        return f"{folder.name} is in use by process {holder}; stop it first"

    def forget(self, worker: Worker) -> None:
        """Closes a process that has left. Called by the thread that sent its turns."""
        self.handle(worker).close()

    def _begin(self, worker: Worker) -> None:
        handle = self._processes.start(worker)
        with self._lock:
            self._handles[worker.name] = handle
            # An earlier process with this name may have left.
            self._left.discard(worker.name)
        self.threads.pop(worker.name, None)
        self.workers.append(worker)

    def _stamp(self) -> tuple[int, int]:
        """Returns a value that changes if ``run.json`` is rewritten."""
        found = os.stat(self._run.path / "run.json")
        return found.st_ino, found.st_mtime_ns
