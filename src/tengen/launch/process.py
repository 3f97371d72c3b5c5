"""A supervised role process, which gets turns and is started again when it dies."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from tengen.errors import RunError, TengenError, UsageError
from tengen.launch.launcher import OnDeath, OnProgress
from tengen.launch.protocol import log_name, read_message, write_message
from tengen.launch.silence import Silence
from tengen.roles import Connect, RoleResources
from tengen.run import RunDirectory, close_owned, own_files

__all__ = [
    "Child",
    "ProcessLauncher",
    "RoleProcess",
    "child_arguments",
    "ended",
    "kill_stopping",
    "start_process",
]

_MAX_DEATHS = 5
"""Deaths in a row that end the run; see ``RoleProcess``."""
_HEALTHY_S = 60.0
"""Seconds after which a process that finished a turn ends the row; longer than any
pause."""
_KILLED = ("signal 9", "its actor's ")
"""The beginning of ``Child.end``'s words if the process was ended from outside: by
SIGKILL, or with its actor on a cluster, for example because the host was lost."""
_EXITED = "exit code"
"""The beginning of those words if the process ended by itself."""
_FIRST_BACKOFF_S = 0.5
_FAIL_S = 30.0
"""Seconds for a process to end that failed, after which it is started again. It has
nothing to save, and sends what it has from a mirror."""
_LEAVE_S = 5.0
"""Seconds for a process to end once it has saved: what it still does, such as closing
an environment, may hang and loses nothing."""


_processes: weakref.WeakSet[RoleProcess] = weakref.WeakSet()


def kill_stopping() -> None:
    """Kills the processes of this program's runs that were told to stop. Any thread."""
    for process in list(_processes):
        if process.is_stopping:
            process.kill()


class Child(Protocol):
    """One process with some roles, and the pipe to it; see ``launch.protocol``."""

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message; does nothing if the process is gone. Any thread."""

    def receive(self) -> dict[str, Any] | None:
        """Returns the next message, or None when the process is gone. Blocks."""

    def kill(self) -> None:
        """Kills the process at once. Does not block; any thread."""

    def end(self, timeout_s: float) -> str:
        """Waits for the end of the process, and says how it ended, in words. Blocks.

        Args:
            timeout_s: Seconds after which the process is killed.
        """


class RoleProcess:
    """A process with some roles, a ``Handle``.

    A child that dies is started again with growing pauses and its turn is redone, which
    is safe for a role. After five deaths in a row the run ends and names the role. Two
    kinds of death begin a new row: that of a process that finished a turn a minute or
    more after its start, and that of a process that had finished a turn and was then
    ended from outside, by SIGKILL or with its host. So a process that fails by itself
    soon after each start ends the run, even if it finishes turns in between. A role may
    ask to be watched (``alive`` of ``launch.protocol``): if it is then silent for too
    long it is killed, and the reason that the role gave is reported.

    A process that ends is waited for until it says that it has saved, however slow the
    machine is, and then for some seconds. How it ends after that is no error.

    Args:
        roles: What it hosts.
        start: Starts a child. Returns soon.
        logs: Text that says where to read why it died.
    """

    def __init__(
        self, roles: tuple[str, ...], start: Callable[[], Child], logs: str
    ) -> None:
        self.roles = roles
        self._start = start
        self._logs = logs
        # So that a child either exists when the stop comes and is told, or never
        # starts.
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_stopping = threading.Event()
        self._deaths = 0
        # Whether all that the child learned is on the disk, and how the last one ended.
        self._is_saved = True
        self._how = ""
        _processes.add(self)
        # The living child's start, and the end of its last finished turn.
        self._started_s = 0.0
        self._finished_s: float | None = None

    def turn(
        self,
        role: str,
        on_progress: OnProgress,
        on_death: OnDeath,
        details: Mapping[str, Any],
    ) -> dict[str, Any] | None:
        """See ``Handle.turn``."""
        if self._child is None:
            on_progress({"starting": f"process {role}"})
        while (child := self._living()) is not None:
            # A role that does not learn has nothing to lose.
            self._is_saved = self._is_saved and role != "learn"
            child.send({"turn": role, **details})
            silence = Silence(self.kill)
            try:
                message = _last_message(child, on_progress, silence)
            finally:
                why = silence.end()
            if "report" in message:
                self._finished_s = time.monotonic()
                self._is_saved = bool(message.get("saved", True))
                report: dict[str, Any] | None = message["report"]
                return report
            with self._lock:
                self._child = None
            if "error" in message:
                self._last_words(child)  # it still saves what it can
            self._is_saved = self._is_saved or bool(message.get("saved"))
            self._how = child.end(_LEAVE_S if "error" in message else _FAIL_S)
            if "error" in message:
                _raise(message)
            how = message.get("dying") or why or self._how
            if not self._is_stopping.is_set():
                self._count_death(role, how)
                on_death(role, how)
                self._is_stopping.wait(_FIRST_BACKOFF_S * 2 ** (self._deaths - 1))
        return {"stopped": True}

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._is_stopping.is_set()

    def stop(self) -> None:
        """See ``Handle.stop``."""
        with self._lock:
            self._is_stopping.set()
            child = self._child
        if child is not None:
            child.send({"stop": True})

    def kill(self) -> None:
        """See ``Handle.kill``."""
        with self._lock:
            child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """See ``Handle.close``."""
        self.stop()
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            self._check_saved()
            return
        message = self._last_words(child)
        self._how = child.end(_LEAVE_S)
        if message:
            _raise(message)
        self._check_saved()

    def _check_saved(self) -> None:
        if not self._is_saved:
            self._is_saved = True  # told once
            raise RunError(
                f"role (learn) ended before it had saved, with {self._how}; what it "
                f"learned since its last checkpoint is lost, see {self._logs}"
            )

    def _last_words(self, child: Child) -> dict[str, Any]:
        """Waits until a process has saved or cannot; returns its error, {} if none.

        Blocks without a deadline: a slow disk or a busy machine loses nothing.
        """
        error: dict[str, Any] = {}
        while (message := child.receive()) is not None:
            if "error" in message:
                error = error or message
            elif "saved" in message and "report" not in message:
                self._is_saved = self._is_saved or bool(message["saved"])
                break
        return error

    def _living(self) -> Child | None:
        """Returns the child, started if needed; None once the role is to stop."""
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
            is_healthy = self._finished_s - self._started_s >= _HEALTHY_S
            if is_healthy or how.startswith(_KILLED):
                self._deaths = 0
        self._deaths += 1
        if self._deaths >= _MAX_DEATHS:
            # A role sends its error before it ends; other code ends a process silently.
            whose = (
                ", by code of its task or of a library"
                if how.startswith(_EXITED)
                else ""
            )
            raise RunError(
                f"role ({role}) died {self._deaths} times in a row, last with {how}"
                f"{whose}; see {self._logs}"
            )


class ProcessLauncher:
    """Starts processes of this machine; see ``Launcher``.

    Args:
        run: The run.
        task: The run's task, if the user typed it; None refuses a game in Python.
        at_once: Whether the roles of different processes work at the same time.
    """

    def __init__(
        self,
        run: RunDirectory,
        task: str | None,
        *,
        at_once: bool = False,
    ) -> None:
        self._run = run
        self._task = task
        self._at_once = at_once

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> RoleProcess:
        """See ``Launcher.start``; the process begins with its first turn."""
        command = self.command(roles, num_threads, index)
        log = self._run.logs / log_name(roles, index)

        def start() -> Child:
            return start_process(command)

        return RoleProcess(roles, start, str(log))

    def command(
        self, roles: tuple[str, ...], num_threads: int, index: int = 0
    ) -> list[str]:
        """Returns the command line of a process with some roles."""
        arguments = child_arguments(
            self._run, roles, num_threads, self._task, index, at_once=self._at_once
        )
        return [sys.executable, *arguments]


def child_arguments(
    run: RunDirectory,
    roles: tuple[str, ...],
    num_threads: int,
    task: str | None,
    index: int = 0,
    *,
    at_once: bool = False,
    connect: Connect | None = None,
    folder: str | None = None,
) -> list[str]:
    """Returns Python's arguments for a process with some roles.

    Args:
        run: The run.
        roles: What it hosts.
        num_threads: Threads that each of its roles may use.
        task: The run's task, if the user typed it; else None.
        index: Which of several with these roles, from 0.
        at_once: Whether the run's other roles work at the same time.
        connect: Where the run is, for a process on a host without its directory.
        folder: The folder that such a process works in.
    """
    # -P: modules of the working directory are imported only for a typed task.
    words = ["-P", "-m", "tengen.launch.child", f"--index={index}"]
    if at_once:
        words.append("--at-once")
    if task is not None:
        words.append(f"--task={task}")
    if connect is not None:
        words.append(f"--connect={connect.address}")
        if connect.fingerprint is not None:
            words.append(f"--fingerprint={connect.fingerprint}")
    where = folder or str(run.path.absolute())
    return [*words, "--", where, str(num_threads), *roles]


def start_process(
    command: list[str],
    *,
    own_session: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Starts a process of this machine.

    Args:
        command: Its command line, as ``ProcessLauncher.command`` makes it.
        own_session: Whether it is in a process group of its own, so that it can still
            save if this process's group is killed.
        environment: None for this process's own.
    """
    return _Subprocess(command, own_session=own_session, environment=environment)


def ended(process: subprocess.Popen[bytes], timeout_s: float | None) -> str:
    """Closes a process's input and waits for its end; says how it ended, in words.

    Blocks.

    Args:
        process: A process that ends by itself once its input, which is owned, is
            closed.
        timeout_s: Seconds after which the process is killed; None: it never is.
    """
    assert process.stdin is not None
    # What a dead one did not read, or another thread is sending.
    with contextlib.suppress(BrokenPipeError, ValueError):
        close_owned(process.stdin)
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return f"signal {-code}" if code < 0 else f"exit code {code}"


class _Subprocess:
    """A ``Child`` of this process."""

    def __init__(
        self,
        command: list[str],
        *,
        own_session: bool,
        environment: Mapping[str, str] | None,
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=own_session,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        own_files(self._process.stdin, self._process.stdout)

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # Gone already, or its pipe closed by another thread.
        with contextlib.suppress(BrokenPipeError, ValueError):
            write_message(self._process.stdin, message)

    def receive(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        return read_message(self._process.stdout)

    def kill(self) -> None:
        self._process.kill()

    def end(self, timeout_s: float) -> str:
        assert self._process.stdout is not None
        how = ended(self._process, timeout_s)
        close_owned(self._process.stdout)
        return how


def _last_message(
    child: Child, on_progress: OnProgress, silence: Silence
) -> dict[str, Any]:
    """Returns the message that ends a turn; {} if the process is gone without one."""
    while (message := child.receive()) is not None:
        if "alive" in message:
            silence.heard(**message["alive"])
        elif "progress" in message:
            on_progress(message["progress"])
        else:
            # Return at "dying": a worker that the process forked may keep the pipe
            # open.
            return message
    return {}


def _raise(message: dict[str, Any]) -> NoReturn:
    kind: type[TengenError] = UsageError if message["exit_code"] == 2 else RunError
    raise kind(message["error"])
