"""The program of a role process, which runs turns of its roles for the runner.

    python -m tengen.launch.child [--task TASK] [--index I] [--at-once]
        [--waits-for-lock] [--identity RUN_ID] [--connect HOST:PORT [--fingerprint F]]
        RUN NUM_THREADS ROLE [ROLE ...]

The process connects back to its runner with the ticket in its environment
(``launch.wire``). TASK is the task that the user typed; no other task's program is
imported. I is the index of this process among the processes with the same roles.
``--at-once`` means that the run's other roles work concurrently, and
``--waits-for-lock`` that an earlier process may still hold a role's lock. If RUN does
not have the identity RUN_ID, the run is on another host. With ``--connect`` the process
then works on a mirror (``tengen.remote``) in a temporary folder. Roles print to
RUN/logs/<first role>.log, to <first role>-<I>.log if I is not 0, or on a mirror to the
file named by ``Mirror.log_name``.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from tengen import _core
from tengen.errors import EnvError, RunError, TengenError, refusal
from tengen.games import add_task_argument
from tengen.launch.launcher import log_name
from tengen.launch.messages import (
    Alive,
    Begun,
    Dying,
    Failed,
    Progress,
    Saved,
    Turn,
)
from tengen.launch.messages import Report as TurnReport
from tengen.launch.wire import Stream, join
from tengen.observe.cpu_time import CpuClock, kill_descendants
from tengen.own_process import mark_own_process
from tengen.remote import Mirror
from tengen.roles import RoleContext
from tengen.roles.doors import TOKEN_VARIABLE, Connect, mirrored
from tengen.roles.host import RoleHost
from tengen.roles.role import Report
from tengen.run import RunDirectory
from tengen.transport import NoAnswer

PLACE_VARIABLE = "TENGEN_PLACE"
"""The environment variable in which a cluster describes where a process runs."""

_PROGRESS_INTERVAL_S = 0.2
_LOOK_S = 1.0
_ALONE_S = 5.0
"""Seconds until this process is killed after its runner has ended. A write in progress
may finish first; see ``_core.Lifeline``."""


def main(argv: list[str]) -> int:
    """Runs turns until the runner closes the connection or sends ``Stop``."""
    args = arguments(argv)
    mark_own_process()
    # A signal reaches the complete process group, but only the runner acts on it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Until the log is open, all output goes to stderr, which the runner's user sees.
    os.dup2(2, 1)
    # Remove the token, so that processes started by an environment do not inherit it.
    token = os.environ.pop(TOKEN_VARIABLE, None)
    place = os.environ.pop(PLACE_VARIABLE, "")
    try:
        stream = join(os.environ, Begun(os.getpid(), platform.node(), place))
    except TengenError as error:
        _say(str(error))
        return error.exit_code
    # The lifeline ends the process even if an extension holds the GIL.
    lifeline = _core.Lifeline(stream.fileno(), _ALONE_S)
    commands = _Commands()
    threading.Thread(target=commands.listen, args=(stream,), daemon=True).start()
    with contextlib.ExitStack() as ending:
        try:
            path, connect = _where(args, token)
            mirror = ending.enter_context(
                mirrored(
                    path,
                    connect,
                    args.roles[0],
                    args.index,
                    commands.stop,
                    _say,
                    is_vouched=True,
                )
            )
            run = RunDirectory.open(path)
            name = log_name(tuple(args.roles), args.index)
            _redirect(run, name if mirror is None else mirror.log_name)
        except _NoRun as error:
            stream.send(Dying(str(error)))
            return 1
        except Exception as error:
            if isinstance(error, NoAnswer) and commands.stop.is_set():
                return 0  # stopped before the run's host was reached
            return _tell(stream, error, args.roles[0])
        return _Child(run, args, stream, commands, lifeline, connect, mirror).serve()


def arguments(argv: list[str]) -> argparse.Namespace:
    """Parses the command-line arguments of a role process."""
    parser = argparse.ArgumentParser(prog="tengen.launch.child")
    parser.add_argument("run")
    parser.add_argument("num_threads", type=int)
    parser.add_argument("roles", nargs="+")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--waits-for-lock", action="store_true")
    parser.add_argument("--connect")
    parser.add_argument("--fingerprint")
    parser.add_argument("--identity")
    add_task_argument(parser)
    return parser.parse_args(argv)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _NoRun(Exception):
    """This host does not have the run, but another host may have it."""


def _where(
    args: argparse.Namespace, token: str | None = None
) -> tuple[Path, Connect | None]:
    """Returns the folder to work in, and the run's address if that is a mirror.

    Raises:
        _NoRun: The run is on another host, and there is no ``--connect``.
    """
    path, connect = Path(args.run), None
    if args.connect is not None:
        connect = Connect(
            address=args.connect, fingerprint=args.fingerprint, token=token
        )
    if args.identity is None:
        return path, connect
    if _is_run(path, args.identity):
        return path, None
    if connect is None:
        raise _NoRun(f"host ({platform.node()}) does not have the run")
    name = f"tengen-{os.getuid()}-{args.identity}-{args.roles[0]}-{args.index}"
    return Path(tempfile.gettempdir()) / name, connect


def _is_run(path: Path, identity: str) -> bool:
    """Returns whether ``path`` is the run with this identity and not a copy of it."""
    try:
        found = [one.read_text().strip() for one in path.glob("endpoints/id-*")]
    except OSError:
        return False
    return identity in found


def _redirect(run: RunDirectory, name: str) -> None:
    log = os.open(run.logs / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    # Writes the Python traceback to the log if C code crashes.
    faulthandler.enable()


class _Commands:
    """Reads the runner's commands in a thread, so that a stop can interrupt a turn.

    Attributes:
        stop: Set when the process must end.
        on_stop: Called by the reading thread after it has set ``stop``.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.on_stop: Callable[[], None] = lambda: None
        self._turns: list[Turn] = []
        self._arrived = threading.Condition()

    def next_turn(self) -> Turn | None:
        """Waits for the next turn. Returns None if the process must end."""
        with self._arrived:
            # Poll, because a failing mirror sets ``stop`` without a notification.
            while not self._turns and not self.stop.is_set():
                self._arrived.wait(_LOOK_S)
            return None if self.stop.is_set() else self._turns.pop(0)

    def listen(self, stream: Stream) -> None:
        """Reads commands until the connection closes. Runs in its own thread."""
        with contextlib.suppress(RunError):  # invalid data ends the process, too
            while (message := stream.receive()) is not None:
                if isinstance(message, Turn):
                    with self._arrived:
                        self._turns.append(message)
                        self._arrived.notify()
                else:
                    self._end()
        self._end()

    def _end(self) -> None:
        self.stop.set()
        with self._arrived:
            self._arrived.notify()
        self.on_stop()


class _Child:
    def __init__(
        self,
        run: RunDirectory,
        args: argparse.Namespace,
        to_runner: Stream,
        commands: _Commands,
        lifeline: _core.Lifeline,
        connect: Connect | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        self._to_runner = to_runner
        self._commands = commands
        self._lifeline = lifeline
        self._mirror = mirror
        # Guards the number of start-up steps in progress. A stop aborts these steps.
        self._starting = threading.RLock()
        self._num_starting = 0
        self._context = RoleContext(
            num_threads=args.num_threads,
            stop=commands.stop,
            is_vouched=True,
            connect=connect,
            mirror=mirror,
            progress=self._progress,
            index=args.index,
            at_once=args.at_once,
            waits_for_lock=args.waits_for_lock,
            die=self._die,
            alive=self._alive,
            write=self._write,
            starting=self._start,
        )
        commands.on_stop = self._leave_if_starting
        self._host = RoleHost(run, self._context, args.task)
        # The role of the current or most recent turn.
        self._name = args.roles[0]
        self._shown_s = 0.0
        self._cpu = CpuClock(time.monotonic)

    def serve(self) -> int:
        """Runs turns until a stop, then saves and closes the roles.

        Returns:
            The exit code.
        """
        code = self._take_turns()
        try:
            self._host.save()
            if self._mirror is not None:
                self._mirror.close()  # first sends the remaining files
            self._say_saved(True)
        except Exception as error:
            traceback.print_exc()
            # Report only the first error to the runner.
            with contextlib.suppress(OSError):
                code = code or _tell(self._to_runner, error, self._name)
            code = code or 1
            self._say_saved(False)
        # Close last, because code of environments may hang or end the process. Their
        # errors are only logged, so an exception here has another cause.
        try:
            self._host.close()
        except Exception:
            traceback.print_exc()
            code = code or 1
        return code

    def _say_saved(self, is_saved: bool) -> None:
        """Notifies the waiting runner that this process has saved all it can."""
        with contextlib.suppress(OSError):  # the runner is gone
            self._to_runner.send(Saved(is_saved))

    def _take_turns(self) -> int:
        try:
            while (command := self._commands.next_turn()) is not None:
                self._name = command.role
                report = self._host.turn(self._name, command.details)
                self._check_mirror()
                told = None if report is None else self._with_cpu(report)
                self._to_runner.send(TurnReport(told, self._host.is_saved))
            self._check_mirror()
        except ConnectionError:
            return 1
        except Exception as error:
            at_once = self._context.at_once
            code = _tell(self._to_runner, error, self._name, at_once=at_once)
            # Ignore a full disk, because the runner has already received the error.
            with contextlib.suppress(OSError):
                traceback.print_exc()
            return code
        return 0

    def _check_mirror(self) -> None:
        if self._mirror is not None:
            self._mirror.check()

    def _write(self, write: Callable[[], object]) -> object:
        self._lifeline.hold()
        try:
            return write()
        finally:
            self._lifeline.release()

    @contextlib.contextmanager
    def _start(self, what: str) -> Iterator[None]:
        """See ``RoleContext.starting``."""
        with contextlib.suppress(ConnectionError):
            self._to_runner.send(Progress({"starting": what}))
        with self._starting:
            self._num_starting += 1
        if self._commands.stop.is_set():
            self._leave_if_starting()
        try:
            yield
        finally:
            with self._starting:
                self._num_starting -= 1

    def _leave_if_starting(self) -> None:
        """Ends the process immediately if it is in a start-up step. Thread-safe."""
        with self._starting:
            if self._num_starting and self._mirror is None and self._host.is_saved:
                self._say_saved(True)
                kill_descendants()  # processes of a partially created environment
                os._exit(0)

    def _progress(self, report: Report) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s >= _PROGRESS_INTERVAL_S:
            self._shown_s = now_s
            self._to_runner.send(Progress(self._with_cpu(report)))

    def _with_cpu(self, report: Report) -> dict[str, Any]:
        """Returns ``report`` with the CPU time since the previous report added."""
        return {**report, "cpu_s": round(self._cpu.since_last(), 6)}

    def _alive(self, within_s: float, otherwise: str) -> None:
        # Ignore a closed connection, because the role's thread will detect it.
        with contextlib.suppress(OSError):
            self._to_runner.send(Alive(within_s, otherwise))

    def _die(self, reason: str) -> NoReturn:
        print(reason, file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            self._to_runner.send(Dying(reason))
        kill_descendants()  # processes of a hanging environment
        os._exit(1)


def _tell(
    to_runner: Stream, error: Exception, role: str, *, at_once: bool = False
) -> int:
    """Reports an error to the runner and returns the exit code.

    If an environment fails in an actor's own process, the runner restarts the actor. A
    process with a learner is not restarted, because it would lose unsaved training.
    """
    if at_once and isinstance(error, EnvError):
        with contextlib.suppress(ConnectionError):
            to_runner.send(Dying(str(error)))
        return error.exit_code
    known: TengenError = refusal(error) or RunError(
        f"role ({role}) failed because of a bug, {type(error).__name__} {error}; "
        "report it with the traceback in the run's logs"
    )
    # Without a runner, this process continues until it has saved its state.
    with contextlib.suppress(ConnectionError):
        to_runner.send(Failed(str(known), known.exit_code))
    return known.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
