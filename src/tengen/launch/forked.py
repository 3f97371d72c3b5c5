"""Starts actors as forks of one process: the runner's side of ``fork_server``."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import warnings
from typing import Any

from tengen.errors import RunError, TengenWarning
from tengen.launch.fork_server import MOST_BYTES, STATUS
from tengen.launch.process import (
    Child,
    ProcessLauncher,
    RoleProcess,
    child_arguments,
    start_process,
)
from tengen.launch.protocol import log_name, read_message, write_message
from tengen.roles import RoleResources
from tengen.run import RunDirectory, close_owned, own_files
from tengen.transport import OwnedSocket

__all__ = ["ForkServer", "ForkingLauncher", "can_fork"]

_FORKED_ROLES = ("actor",)


def can_fork() -> bool:
    """Returns whether this system has descriptors of processes, as Linux has."""
    return hasattr(os, "pidfd_open") and os.path.exists("/proc/self/task")


class ForkingLauncher(ProcessLauncher):
    """Starts processes of this machine, actors as forks of one; see ``Launcher``.

    For runs with several actors, which have no network and so can share their imports.
    Other roles import torch, which starts threads, so they are ordinary processes.

    Args:
        run: The run.
        task: As ``ProcessLauncher``.
    """

    def __init__(self, run: RunDirectory, task: str | None) -> None:
        super().__init__(run, task, at_once=True)
        self._server = ForkServer(run)

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> RoleProcess:
        """See ``Launcher.start``; the process begins with its first turn."""
        if roles != _FORKED_ROLES:
            return super().start(roles, num_threads, resources, index)
        words = child_arguments(
            self._run, roles, num_threads, self._task, index, at_once=True
        )
        log = self._run.logs / log_name(roles, index)
        return RoleProcess(roles, lambda: self._server.start(words), str(log))

    def close(self) -> None:
        """Ends the process that forks; its forks end with their own pipes."""
        self._server.close()


class ForkServer:
    """The process that forks. It begins at once; any thread may call.

    Args:
        run: The run.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._lock = threading.Lock()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = ["-P", "-m", "tengen.launch.fork_server", str(run.path.absolute())]
        # A fork would not have OpenBLAS's threads; an actor needs only one.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *words, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
            )
        self._control: socket.socket | None = OwnedSocket.of(mine)

    def start(self, words: list[str]) -> Child:
        """Starts a process like ``python`` with these arguments.

        If the server has ended, this process and all later ones are started as ordinary
        processes; a warning says so once. Blocks until the server has done its imports,
        under a second of a core.

        Args:
            words: ``-P -m tengen.launch.child`` and that module's own.

        Raises:
            RunError: The system allows no further process.
        """
        with self._lock:
            if self._control is not None:
                try:
                    return _fork(self._control, words[3:])
                except OSError as error:
                    self._control.close()
                    self._control = None
                    warnings.warn(
                        f"fork server ({self._process.pid}) ended ({error}); actors "
                        f"begin as processes of their own, which takes more memory",
                        TengenWarning,
                        stacklevel=2,
                    )
        return start_process([sys.executable, *words])

    def close(self) -> None:
        """Ends the server. A second call does nothing."""
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
        self._process.wait()


def _fork(control: socket.socket, words: list[str]) -> _Forked:
    child_in, our_in = os.pipe()
    our_out, child_out = os.pipe()
    our_status, child_status = os.pipe()
    theirs = [child_in, child_out, child_status]
    ours = [our_in, our_out, our_status]
    try:
        socket.send_fds(control, [json.dumps(words).encode()], theirs)
        answer, passed, _, _ = socket.recv_fds(control, MOST_BYTES, 1)
        if not answer:
            raise ConnectionResetError("it closed its socket")
        told = json.loads(answer)
        if "error" in told:
            raise RunError(
                f"process ({' '.join(words)}) cannot begin, {told['error']}; end other "
                f"processes, or raise the limits of this user or container"
            )
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    return _Forked(passed[0], *ours)


class _Forked:
    """A ``Child`` that another process forked.

    Args:
        process: The process's descriptor.
        to_child: Its standard input.
        from_child: Its standard output.
        status: The pipe that gets its exit status.
    """

    def __init__(
        self, process: int, to_child: int, from_child: int, status: int
    ) -> None:
        self._process = process
        self._status = status
        self._stdin = os.fdopen(to_child, "wb")
        self._stdout = os.fdopen(from_child, "rb")
        own_files(self._stdin, self._stdout)
        # A closed descriptor may belong to another process by now.
        self._lock = threading.Lock()
        self._is_ended = False

    def send(self, message: dict[str, Any]) -> None:
        # Gone already, or its pipe closed by another thread.
        with contextlib.suppress(BrokenPipeError, ValueError):
            write_message(self._stdin, message)

    def receive(self) -> dict[str, Any] | None:
        return read_message(self._stdout)

    def kill(self) -> None:
        with self._lock:
            if not self._is_ended:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def end(self, timeout_s: float) -> str:
        # The process may not have read all, or another thread is sending.
        with contextlib.suppress(BrokenPipeError, ValueError):
            close_owned(self._stdin)
        waiter = select.poll()
        waiter.register(self._process, select.POLLIN)
        if not waiter.poll(1000 * timeout_s):
            self.kill()
            waiter.poll()
        # Nothing arrives if the server was killed too.
        told = os.read(self._status, STATUS.size)
        with self._lock:
            self._is_ended = True
            os.close(self._process)
        os.close(self._status)
        close_owned(self._stdout)
        if not told:
            return "an end that nobody saw, as its fork server is gone"
        (code,) = STATUS.unpack(told)
        return f"signal {-code}" if code < 0 else f"exit code {code}"
