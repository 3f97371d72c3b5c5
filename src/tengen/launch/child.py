"""A role process: hosts roles of one run and takes turns when the runner says so.

    python -m tengen.launch.child [--task TASK] [--index I] [--at-once]
        [--connect HOST:PORT [--fingerprint F]] RUN NUM_THREADS ROLE [ROLE ...]

TASK is the task that the user typed to the runner; no other program is imported. I is
the index of this process among those with these roles. ``--at-once`` says that the
run's other roles work at the same time. With ``--connect`` the run is on another host,
and RUN is a folder for a mirror of it (``tengen.remote``). What roles print goes to
RUN/logs/<first role>.log, to <first role>-<I>.log if I is not 0, or to the file of
``Mirror.log_name``; stdout belongs to the protocol.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from tengen import _core
from tengen.errors import EnvError, RunError, TengenError, refusal
from tengen.games import add_task_argument
from tengen.launch.protocol import log_name, read_message, write_message
from tengen.observe.cpu_time import CpuClock, kill_descendants
from tengen.own_process import mark_own_process
from tengen.remote import Mirror
from tengen.roles import (
    Connect,
    Report,
    RoleContext,
    RoleHost,
    mirrored,
)
from tengen.run import RunDirectory, own_files
from tengen.transport import NoAnswer

__all__ = ["arguments", "main"]

_PROGRESS_INTERVAL_S = 0.2
_LOOK_S = 1.0
_ALONE_S = 5.0
"""Seconds to end once the runner is gone; see ``_core.Lifeline`` for what counts. A
write that is under way is let finish."""


def main(argv: list[str]) -> int:
    """Serves turns until stdin closes or ``stop`` arrives."""
    args = arguments(argv)
    mark_own_process()
    stream, to_runner = _take_pipes()
    # It ends the process even while foreign code keeps the interpreter's lock.
    lifeline = _core.Lifeline(stream.fileno(), _ALONE_S)
    # Signals reach the whole process group, but only the runner decides what they mean.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    commands = _Commands()
    threading.Thread(target=commands.listen, args=(stream,), daemon=True).start()
    connect = None
    if args.connect is not None:
        connect = Connect(address=args.connect, fingerprint=args.fingerprint)
    with contextlib.ExitStack() as ending:
        try:
            mirror = ending.enter_context(
                mirrored(
                    Path(args.run),
                    connect,
                    args.roles[0],
                    args.index,
                    commands.stop,
                    _say,
                    is_vouched=True,
                )
            )
            run = RunDirectory.open(args.run)
            name = log_name(tuple(args.roles), args.index)
            _redirect(run, name if mirror is None else mirror.log_name)
        except Exception as error:
            if isinstance(error, NoAnswer) and commands.stop.is_set():
                return 0  # it waited for the run's host: nothing to save
            return _tell(to_runner, error, args.roles[0])
        return _Child(run, args, to_runner, commands, lifeline, connect, mirror).serve()


def arguments(argv: list[str]) -> argparse.Namespace:
    """Returns the words of the command line by name."""
    parser = argparse.ArgumentParser(prog="tengen.launch.child")
    parser.add_argument("run")
    parser.add_argument("num_threads", type=int)
    parser.add_argument("roles", nargs="+")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--connect")
    parser.add_argument("--fingerprint")
    add_task_argument(parser)
    return parser.parse_args(argv)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _take_pipes() -> tuple[io.FileIO, IO[bytes]]:
    """Returns the pipes from and to the runner, which no other process shares.

    A process that an environment forks or starts would keep them open: the runner has
    to notice the end of this process.
    """
    # Unbuffered: a buffer could not be released while the thread waits in it.
    stream = io.FileIO(os.dup(0))
    to_runner = os.fdopen(os.dup(1), "wb")
    own_files(stream, to_runner)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Until there is a log, what is printed is for the runner's user.
    os.dup2(2, 1)
    return stream, to_runner


def _redirect(run: RunDirectory, name: str) -> None:
    log = os.open(run.logs / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    # If C code crashes, the log then shows the Python line that called it.
    faulthandler.enable()


class _Commands:
    """Commands of the runner, read by a thread, so that waits and turns can be stopped.

    Attributes:
        stop: Set once the process is to end.
        on_stop: Called by the thread when it has set ``stop``.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.on_stop: Callable[[], None] = lambda: None
        self._turns: list[dict[str, Any]] = []
        self._arrived = threading.Condition()

    def next_turn(self) -> dict[str, Any] | None:
        """Waits for the next turn; returns None if the process is to end."""
        with self._arrived:
            # A failing mirror also sets the event, without notifying this condition.
            while not self._turns and not self.stop.is_set():
                self._arrived.wait(_LOOK_S)
            return None if self.stop.is_set() else self._turns.pop(0)

    def listen(self, stream: io.RawIOBase) -> None:
        """Reads commands, in a thread of its own."""
        while (message := read_message(stream)) is not None:
            with self._arrived:
                if "turn" in message:
                    self._turns.append(message)
                    self._arrived.notify()
            if "turn" not in message:
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
        to_runner: IO[bytes],
        commands: _Commands,
        lifeline: _core.Lifeline,
        connect: Connect | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        self._to_runner = to_runner
        self._commands = commands
        self._lifeline = lifeline
        self._mirror = mirror
        # What goes on that looks at no stop and has nothing to lose; guarded.
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
            die=self._die,
            alive=self._alive,
            write=self._write,
            starting=self._start,
        )
        commands.on_stop = self._leave_if_starting
        self._host = RoleHost(run, self._context, args.task)
        # The role of the present turn, or of the last one.
        self._name = args.roles[0]
        self._shown_s = 0.0
        self._cpu = CpuClock()

    def serve(self) -> int:
        """Takes turns until stopped, saves, and closes the roles, environments last.

        Returns:
            The exit code.
        """
        code = self._take_turns()
        try:
            self._host.save()
            if self._mirror is not None:
                self._mirror.close()  # sends what is left, for some seconds
            self._say_saved(True)
        except Exception as error:
            traceback.print_exc()
            # The runner is told only the first error.
            with contextlib.suppress(OSError):
                code = code or _tell(self._to_runner, error, self._name)
            code = code or 1
            self._say_saved(False)
        # Last, as it closes environments, whose code may hang or end the process. What
        # this raises is not theirs.
        try:
            self._host.close()
        except Exception:
            traceback.print_exc()
            code = code or 1
        return code

    def _say_saved(self, is_saved: bool) -> None:
        """Says that nothing more will be saved, which the runner waits for."""
        with contextlib.suppress(OSError):  # the runner is gone
            write_message(self._to_runner, {"saved": is_saved})

    def _take_turns(self) -> int:
        try:
            while (command := self._commands.next_turn()) is not None:
                self._name = command["turn"]
                report = self._host.turn(self._name, command)
                self._check_mirror()
                write_message(
                    self._to_runner,
                    {
                        "report": None if report is None else self._with_cpu(report),
                        "saved": self._host.is_saved,
                    },
                )
            self._check_mirror()
        except BrokenPipeError:
            return 1
        except Exception as error:
            at_once = self._context.at_once
            code = _tell(self._to_runner, error, self._name, at_once=at_once)
            # The log's disk may be full; then the error is about that, and the runner
            # knows it.
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
        with contextlib.suppress(BrokenPipeError):
            write_message(self._to_runner, {"progress": {"starting": what}})
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
        """Ends the process at once if it only starts; a thread reads the stop."""
        with self._starting:
            if self._num_starting and self._mirror is None and self._host.is_saved:
                self._say_saved(True)
                kill_descendants()  # of an environment that is half made
                os._exit(0)

    def _progress(self, report: Report) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s >= _PROGRESS_INTERVAL_S:
            self._shown_s = now_s
            write_message(self._to_runner, {"progress": self._with_cpu(report)})

    def _with_cpu(self, report: Report) -> dict[str, Any]:
        """Returns a report with the CPU time since the one before."""
        return {**report, "cpu_s": round(self._cpu.since_last(), 6)}

    def _alive(self, within_s: float, otherwise: str) -> None:
        # The runner's end may be closed, which the role's own thread will notice.
        with contextlib.suppress(OSError):
            write_message(
                self._to_runner,
                {"alive": {"within_s": within_s, "otherwise": otherwise}},
            )

    def _die(self, reason: str) -> NoReturn:
        print(reason, file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):
            write_message(self._to_runner, {"dying": reason})
        kill_descendants()  # of an environment that hangs
        os._exit(1)


def _tell(
    to_runner: IO[bytes], error: Exception, role: str, *, at_once: bool = False
) -> int:
    """Tells the runner why this process ends; returns the exit code.

    If an environment fails, its actor is started again, if the actor is a process of
    its own. In the learner's process a new start would lose what was learned.
    """
    if at_once and isinstance(error, EnvError):
        write_message(to_runner, {"dying": str(error)})
        return error.exit_code
    known: TengenError = refusal(error) or RunError(
        f"role ({role}) failed by a bug, {type(error).__name__} {error}; "
        f"report it with the traceback in the run's logs"
    )
    write_message(to_runner, {"error": str(known), "exit_code": known.exit_code})
    return known.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
