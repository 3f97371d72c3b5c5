"""The launchers ``inline`` and ``local``, which start processes on this machine.

With ``inline``, roles take turns. With ``local``, all roles work concurrently, which
suits machines where roles do not compete for hardware, for example if a GPU evaluates
for self-play while CPU cores learn. On a machine without a GPU, ``inline`` also keeps
all cores busy, and a seed reproduces the run.

If there are several actors, they are forks of one process, so they start within
milliseconds and share memory (``launch.fork_server``). Other roles are ordinary
processes because they import torch, which starts threads that would not survive a fork.
"""

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
from collections.abc import Iterator

from tengen.errors import RunError, TengenWarning
from tengen.launch.fork_server import MOST_BYTES, STATUS
from tengen.launch.launcher import (
    Command,
    Handle,
    Launcher,
    Placed,
    Poll,
    TrainingCall,
)
from tengen.launch.wire import Hub
from tengen.roles import RunConfig
from tengen.run import RunDirectory
from tengen.transport import OwnedSocket

_FORKED_ROLES = ("actor",)
_DEVICES = "CUDA_VISIBLE_DEVICES"


class LocalLauncher(Launcher):
    """A launcher that starts processes on this machine, which work concurrently.

    Args:
        forks_for: The run whose actors are forked; None to start ordinary processes.
        own_session: Whether each process gets its own session, so that the process can
            save its state even if the process group of its parent is killed.
    """

    def __init__(
        self, forks_for: RunDirectory | None = None, *, own_session: bool = False
    ) -> None:
        self._own_session = own_session
        self._server: ForkServer | None = None
        # The fork server needs process descriptors, which only Linux has.
        if forks_for is not None and hasattr(os, "pidfd_open"):
            self._server = ForkServer(forks_for)

    @classmethod
    @contextlib.contextmanager
    def open(cls, call: TrainingCall) -> Iterator[tuple[Launcher, Hub]]:
        """See ``Launcher.open``."""
        has_actors = bool(call.config.schedule.serving)
        forks = has_actors and call.config.launch.of("actor").count > 1
        with (
            contextlib.closing(Hub.on_this_host(call.run)) as hub,
            contextlib.closing(
                cls(call.run if forks and not cls.takes_turns else None)
            ) as launcher,
        ):
            yield launcher, hub

    def start(self, command: Command, placed: Placed) -> Handle:
        """See ``Launcher.start``."""
        if self._server is not None and placed.worker.roles == _FORKED_ROLES:
            forked = self._server.start(command)
            if forked is not None:
                return forked
        environment = {**os.environ, **command.environment}
        if placed.devices is not None:
            environment[_DEVICES] = ",".join(placed.devices)
        return _Started(
            subprocess.Popen(
                [sys.executable, *command.words],
                stdin=subprocess.DEVNULL,
                start_new_session=self._own_session,
                env=environment,
            )
        )

    def close(self) -> None:
        """Ends the fork server. Each fork ends when its own connection closes."""
        if self._server is not None:
            self._server.close()


class InlineLauncher(LocalLauncher):
    """A launcher that starts processes on this machine, whose roles take turns."""

    takes_turns = True

    @classmethod
    def check_doors(cls, config: RunConfig) -> None:
        """Warns if ``launch.listen`` is set, as no other machine can join the run."""
        if config.launch.listen:
            text = (
                f"launch.listen ({config.launch.listen}) has no effect where roles "
                f"take turns; use --launch local to let others in"
            )
            warnings.warn(text, TengenWarning, stacklevel=2)


def ended_by(code: int) -> str:
    """Returns a description of a process's return code, such as ``signal 9``."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


class _Started:
    """The ``Handle`` of a child process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def poll(self) -> Poll:
        code = self._process.poll()
        return Poll() if code is None else Poll(end=ended_by(code))

    def kill(self) -> None:
        self._process.kill()


class ForkServer:
    """Starts the fork server and sends it requests. Thread-safe.

    Args:
        run: The run.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._lock = threading.Lock()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = ["-P", "-m", "tengen.launch.fork_server", str(run.path.absolute())]
        # Disable OpenBLAS threads, which would not survive a fork. Actors need none.
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

    def start(self, command: Command) -> Handle | None:
        """Forks a process. Returns None, after one warning, if the server has ended.

        Blocks until the server's imports are complete, within a second of CPU time.

        Raises:
            RunError: The system allows no further process.
        """
        with self._lock:
            if self._control is None:
                return None
            try:
                return _fork(self._control, command)
            except OSError as error:
                self._control.close()
                self._control = None
                warnings.warn(
                    f"fork server ({self._process.pid}) ended ({error}); actors now "
                    "start as separate processes, which need more memory",
                    TengenWarning,
                    stacklevel=2,
                )
                return None

    def close(self) -> None:
        """Ends the fork server. A second call does nothing."""
        with self._lock:
            if self._control is not None:
                self._control.close()
                self._control = None
        self._process.wait()


def _fork(control: socket.socket, command: Command) -> _Forked:
    words = command.words[3:]  # without "-P -m MODULE"
    our_status, their_status = os.pipe()
    try:
        request = json.dumps([words, command.environment]).encode()
        socket.send_fds(control, [request], [their_status])
        answer, passed, _, _ = socket.recv_fds(control, MOST_BYTES, 1)
        if not answer:
            raise ConnectionResetError("it closed its socket")
        told = json.loads(answer)
        if "error" in told:
            raise RunError(
                f"process ({' '.join(words)}) cannot start, {told['error']}; end other "
                "processes, or raise the limits of this user or container"
            )
    except BaseException:
        os.close(our_status)
        raise
    finally:
        os.close(their_status)
    return _Forked(passed[0], our_status)


class _Forked:
    """The ``Handle`` of a process that the fork server forked.

    Args:
        process: The process descriptor of the fork.
        status: The read end of the pipe for the exit status.
    """

    def __init__(self, process: int, status: int) -> None:
        self._process = process
        self._status = status
        # Guards the process descriptor, whose number may be reused after it is closed.
        self._lock = threading.Lock()
        self._end = ""

    def poll(self) -> Poll:
        with self._lock:
            if self._end:
                return Poll(end=self._end)
            waiter = select.poll()
            waiter.register(self._process, select.POLLIN)
            if not waiter.poll(0):
                return Poll()
            # The pipe has no exit status if the fork server was killed, too.
            told = os.read(self._status, STATUS.size)
            os.close(self._process)
            os.close(self._status)
            self._end = (
                ended_by(*STATUS.unpack(told))
                if told
                else "an unobserved end, because its fork server has ended"
            )
            return Poll(end=self._end)

    def kill(self) -> None:
        with self._lock:
            if not self._end:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._process, signal.SIGKILL)
