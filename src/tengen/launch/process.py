"""Supervised role processes, which run turns and are restarted when they die."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from tengen.errors import RunError, TengenError, UsageError
from tengen.launch.joined import Child
from tengen.launch.launcher import Command, Launcher, Placed, log_name, role_command
from tengen.launch.messages import (
    Dying,
    Failed,
    Progress,
    Report,
    Saved,
    Stop,
    Turn,
)
from tengen.launch.wire import Hub
from tengen.launch.workers import Worker
from tengen.remote import MIRROR_ROLES
from tengen.roles.doors import TOKEN_VARIABLE
from tengen.run import RunDirectory, run_token

OnProgress = Callable[[dict[str, Any]], None]
"""Called with a role's progress report during a turn."""
OnDeath = Callable[[str, str], None]
"""Called with a role and the way its process died, before the process is restarted."""

_MAX_DEATHS = 5
"""Deaths in a row that end the run; see ``RoleProcess``."""
_KILLED = ("signal 9", "its actor's ")
"""Prefixes of ``Poll.end`` if a process was ended externally, by SIGKILL or by the
death of its Ray actor, for example because the host was lost."""
_EXITED = "exit code"
"""Prefix of ``Poll.end`` if the process exited by itself."""
_FAIL_S = 30.0
"""Maximum seconds that a failed process has to exit, for example to upload the rest of
its files, before it is killed and restarted."""

_processes: weakref.WeakSet[RoleProcess] = weakref.WeakSet()


def kill_stopping() -> None:
    """Kills all role processes that this process told to stop. Thread-safe."""
    for process in list(_processes):
        if process.is_stopping:
            process.kill()


class RoleProcess:
    """A process that hosts roles and is restarted when it dies.

    A child that dies is restarted after a growing pause, and its turn is repeated,
    which is safe for all roles. After five consecutive deaths the run ends with an
    error that names the role. The count restarts at a death if the process finished a
    turn a minute or more after its start, or if it finished any turn and was then ended
    externally, by SIGKILL or with its host. So a process that fails soon after each
    start ends the run, even if it finishes turns in between. A role may send heartbeats
    (``messages.Alive``). If the heartbeats stop, the process is killed, and the reason
    in the last heartbeat is reported.

    ``close`` waits without a deadline until the process has saved, and then some
    seconds until it exits. After it has saved, its exit status is ignored.

    Args:
        roles: What it hosts.
        start: Starts a child. Returns soon.
        logs: Text that says where to read why it died.

    Attributes:
        first_backoff_s: The pause before the second start, in seconds; each later one
            is twice as long.
        healthy_s: Seconds after which a process that finished a turn ends the row;
            longer than any pause.
        leave_s: Seconds for a process to end once it has saved: what it still does,
            such as closing an environment, may hang and loses nothing.
    """

    first_backoff_s = 0.5
    healthy_s = 60.0
    leave_s = 5.0

    def __init__(
        self, roles: tuple[str, ...], start: Callable[[], Child], logs: str
    ) -> None:
        self.roles = roles
        self._start = start
        self._logs = logs
        # Ensures that ``stop`` either reaches the child or prevents its start.
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_stopping = threading.Event()
        self._deaths = 0
        # Whether the child has no unsaved training, and how the last child ended.
        self._is_saved = True
        self._how = ""
        _processes.add(self)
        # The start time of the current child, and the end time of its last turn.
        self._started_s = 0.0
        self._finished_s: float | None = None

    def turn(
        self,
        role: str,
        on_progress: OnProgress,
        on_death: OnDeath,
        details: Mapping[str, Any],
    ) -> dict[str, Any] | None:
        """Runs one turn to completion. Blocks. Not thread-safe.

        Args:
            role: One of ``roles``.
            on_progress: Called with the role's progress reports.
            on_death: Called for each death of the process.
            details: See ``RoleHost.turn``. A repeated turn gets the same details.

        Returns:
            The turn's report, or None if there was nothing to do.

        Raises:
            RunError: The role failed or died repeatedly.
            UsageError: The role rejected its config or files.
        """
        if self._child is None:
            on_progress({"starting": f"process {role}"})
        while (child := self._living()) is not None:
            # Only the role learn has training that a kill would lose.
            self._is_saved = self._is_saved and role != "learn"
            child.send(Turn(role, details))
            while isinstance(message := child.receive(), Progress):
                on_progress(message.report)
            # A child sends nothing after ``Report``, ``Failed`` or ``Dying``.
            if isinstance(message, Report):
                self._finished_s = time.monotonic()
                self._is_saved = message.is_saved
                return message.report
            if isinstance(message, Failed):
                self._last_words(child)  # it still saves what it can
                self._ended(child, self.leave_s)
                _raise(message)
            is_saved = isinstance(message, Saved) and message.is_saved
            # A process that never joined had no turn, so it has nothing to save.
            self._is_saved = self._is_saved or is_saved or not child.has_joined
            self._ended(child, _FAIL_S)
            how = child.silence or self._how
            if isinstance(message, Dying):
                how = message.reason
            if how.startswith(_EXITED) and not child.has_joined:
                how = f"no connection to its runner, {how}"
            if not self._is_stopping.is_set():
                self._count_death(role, how)
                on_death(role, how)
                self._is_stopping.wait(self.first_backoff_s * 2 ** (self._deaths - 1))
        return {"stopped": True}

    @property
    def is_stopping(self) -> bool:
        """Whether the process was told to stop."""
        return self._is_stopping.is_set()

    def stop(self) -> None:
        """Tells the process to end its turn and exit. Thread-safe; does not block.

        After that, ``turn`` returns ``{"stopped": True}`` unless the process sends
        another report.
        """
        with self._lock:
            self._is_stopping.set()
            child = self._child
        if child is not None:
            child.send(Stop())

    def kill(self) -> None:
        """Kills the process if it is running. Thread-safe; does not block."""
        with self._lock:
            child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """Stops the process, waits until it has saved, and kills it if it hangs.

        Raises:
            RunError: A role could not save, or the process ended before it had saved.
        """
        self.stop()
        with self._lock:
            child = self._child
        if child is not None:
            error = self._last_words(child)
            self._ended(child, self.leave_s)
            if error is not None:
                _raise(error)
        self._check_saved()

    def _ended(self, child: Child, timeout_s: float) -> None:
        """Waits for a child to end, and records how. Until then ``kill`` works."""
        self._how = child.end(timeout_s)
        with self._lock:
            self._child = None

    def _check_saved(self) -> None:
        if not self._is_saved:
            self._is_saved = True  # raise the error only once
            raise RunError(
                f"role (learn) ended with {self._how} before it had saved; the "
                f"learning since its last checkpoint is lost, see {self._logs}"
            )

    def _last_words(self, child: Child) -> Failed | None:
        """Waits until a child has saved or has failed to; returns its first error.

        Blocks without a deadline, so that a slow disk or a busy machine loses nothing.
        """
        error: Failed | None = None
        while (message := child.receive()) is not None:
            if isinstance(message, Failed):
                error = error or message
            elif isinstance(message, Saved):
                self._is_saved = self._is_saved or message.is_saved
                break
        return error

    def _living(self) -> Child | None:
        """Returns the child, after starting it if needed; None if told to stop."""
        with self._lock:
            if self._is_stopping.is_set():
                return None
            if self._child is None:
                self._child = self._start()
                self._is_saved = True
                self._started_s, self._finished_s = time.monotonic(), None
            return self._child

    def _count_death(self, role: str, how: str) -> None:
        if self._finished_s is not None:
            is_healthy = self._finished_s - self._started_s >= self.healthy_s
            if is_healthy or how.startswith(_KILLED):
                self._deaths = 0
        self._deaths += 1
        if self._deaths >= _MAX_DEATHS:
            # A failing role sends an error, so other code caused an exit without one.
            whose = (
                ", in code of its task or of a library"
                if how.startswith(_EXITED)
                else ""
            )
            raise RunError(
                f"role ({role}) died {self._deaths} times in a row, last with {how}"
                f"{whose}; see {self._logs}"
            )


class Processes:
    """The supervised processes of a run, started by a launcher.

    Args:
        launcher: Starts the processes.
        hub: The hub that the processes join.
        run: The run.
        task: The run's task if the user typed it; None rejects a game in Python.
        at_once: Whether the roles of different processes work concurrently.
    """

    def __init__(
        self,
        launcher: Launcher,
        hub: Hub,
        run: RunDirectory,
        task: str | None,
        *,
        at_once: bool = True,
    ) -> None:
        self._launcher = launcher
        self._hub = hub
        self._run = run
        self._task = task
        self._at_once = at_once

    def start(self, worker: Worker) -> RoleProcess:
        """Returns a new supervised process, which starts with its first turn.

        Args:
            worker: The process; its placement decides its number of threads.

        Raises:
            TengenError: The launcher has no placement for the process.
        """
        return self.start_at(self._launcher.placed(worker))

    def start_at(self, placed: Placed) -> RoleProcess:
        """Returns a new supervised process with the given placement."""
        launcher, worker = self._launcher, placed.worker
        connect = launcher.connect if worker.roles[0] in MIRROR_ROLES else None
        waits_for_lock = launcher.waits_for_lock

        def start() -> Child:
            nonlocal waits_for_lock
            ticket = self._hub.ticket()
            environment = dict(ticket.environment)
            if connect is not None:
                environment[TOKEN_VARIABLE] = run_token(self._run)
            words = role_command(
                self._run,
                worker,
                self._task,
                at_once=self._at_once,
                waits_for_lock=waits_for_lock,
                connect=connect,
            )
            handle = launcher.start(
                Command(words=words, environment=environment), placed
            )
            waits_for_lock = True  # in the next start, after a death
            return Child(ticket, handle, lambda begun: launcher.begun(worker, begun))

        logs = f"{self._run.logs / log_name(worker.roles, worker.index)}{launcher.logs}"
        return RoleProcess(worker.roles, start, logs)


def close_all(handles: Iterable[RoleProcess]) -> None:
    """Closes all processes, even if closing some of them raises errors.

    Raises:
        RunError: The first error, unless the caller is already raising one.
    """
    is_failing = sys.exc_info()[1] is not None
    errors = []
    for handle in handles:
        try:
            handle.close()
        except TengenError as error:
            errors.append(error)
    if errors and not is_failing:
        raise errors[0]


def _raise(message: Failed) -> NoReturn:
    kind: type[TengenError] = UsageError if message.exit_code == 2 else RunError
    raise kind(message.error)
