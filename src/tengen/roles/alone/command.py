"""``tengen selfplay|actor|inference|learn|... RUN``: one role alone, or one turn."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.config import check_range
from tengen.errors import DiskFullError, RunError
from tengen.games import add_task_argument, check_typed
from tengen.remote import Mirror
from tengen.roles.alone.role_log import RoleLog
from tengen.roles.config import read_config
from tengen.roles.doors import Connect
from tengen.roles.doors.connecting import mirrored
from tengen.roles.host import RoleHost
from tengen.roles.role import Report, RoleContext
from tengen.roles.stopping import StopListener
from tengen.run import (
    RunDirectory,
    check_no_mirror,
    storage_error,
    usable_threads,
)

__all__ = [
    "FullDiskPause",
    "add_arguments",
    "add_index",
    "check_index",
    "export",
    "gate",
    "serve",
    "shuffle",
]

_POLL_S = 0.5
_RETRY_S = 2.0
_SAY_AGAIN_S = 60.0
_INTERRUPTED = 130
_LEAST_ROOM_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that every role has."""
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--once", action="store_true", help="make one turn, then end")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices", help="cpu, cuda:0 or cuda:0,cuda:1 (the run's devices)"
    )
    add_task_argument(parser)


def add_index(parser: argparse.ArgumentParser, what: str) -> None:
    """Declares ``--index``, for a role with several processes.

    Args:
        parser: The command's.
        what: A phrase that says what the index counts.
    """
    parser.add_argument("--index", type=int, default=0, help=f"{what} (0)")


def check_index(args: argparse.Namespace, role: str) -> None:
    """Makes sure that a run has a process with this index.

    Args:
        args: As ``add_arguments`` and ``add_index`` declare them.
        role: The role in ``launch.roles`` whose number of processes counts.

    Raises:
        UsageError: It has no such process, ``--threads`` is out of its range, or the
            folder is a mirror.
    """
    usable_threads(args.threads)  # checked by every role before it looks at the run
    run = RunDirectory.open(args.run)
    check_no_mirror(run)  # a mirror's run.json belongs to another host
    count = read_config(run).launch.of(role).count
    check_range("index", args.index, 0, count - 1, f"raise launch.roles.{role}.count")


def shuffle(args: argparse.Namespace) -> dict[str, Any]:
    """Draws batches for the learner, and writes them to files."""
    return serve("shuffle", args)


def export(args: argparse.Namespace) -> dict[str, Any]:
    """Exports checkpoints."""
    return serve("export", args)


def gate(args: argparse.Namespace) -> dict[str, Any]:
    """Accepts or rejects candidates."""
    return serve("gate", args)


def serve(
    name: str,
    args: argparse.Namespace,
    num_games: int | None = None,
    index: int = 0,
    connect: Connect | None = None,
) -> dict[str, Any]:
    """Takes turns until the STOP file, a signal or, with ``--once``, one turn.

    Args:
        name: The role.
        args: As ``add_arguments`` declares them.
        num_games: Ends after the turn in which the number of games reaches this.
        index: Which of several actors, learners or inference servers this is, from 0.
        connect: Where the run is, for a role that works on a mirror; None: in the
            folder that was typed.

    Raises:
        UsageError: The run's task is a program that was not typed, or another task was
            typed; the role is refused; or the folder is a mirror, and ``connect`` is
            None.
        TengenError: The mirror has failed, so that the run no longer gets what the role
            makes.
        RunError: The run is asked to stop, the role failed, or with ``--once`` there
            was nothing to do; the message says what was missing.
    """
    num_threads = usable_threads(args.threads)
    if connect is None:
        check_no_mirror(RunDirectory(args.run))
    stop = threading.Event()
    # Self-play by itself takes any free writer.
    place = None if name == "selfplay" else index
    with mirrored(args.run, connect, name, place, stop, _print_of(name)) as mirror:
        return _serve(name, args, num_threads, num_games, index, connect, mirror, stop)


def _serve(
    name: str,
    args: argparse.Namespace,
    num_threads: int,
    num_games: int | None,
    index: int,
    connect: Connect | None,
    mirror: Mirror | None,
    stop: threading.Event,
) -> dict[str, Any]:
    run = RunDirectory.open(args.run)
    if run.stop_requested():
        raise RunError(
            f"run ({run.path}) was asked to stop; remove {run.path / 'STOP'} first"
        )
    check_typed(read_config(run).task, args.task, run.path)
    number = None if mirror is None else mirror.place.events
    place = index if name == "actor" else None
    log = RoleLog(name, run, num_threads, number, place)
    report: dict[str, Any] = {"role": name, "num_turns": 0, "last": {}}
    reason = "failed"
    with StopListener(run, stop) as listener:
        pause = FullDiskPause(run.path, listener.event, log.say)
        context = RoleContext(
            num_threads=num_threads,
            stop=listener.event,
            progress=log.busy,
            say=log.say,
            write=pause,
            index=index,
            connect=connect,
            mirror=mirror,
            at_once=True,
        )
        host = RoleHost(run, context, args.task, devices=args.devices, is_alone=True)
        details = {"follow_models": not args.once}
        num_played = 0
        try:
            while not listener.event.is_set():
                start_s = time.monotonic()
                try:
                    last = host.turn(name, details)
                except DiskFullError as refusal:
                    # The role's memory may be half changed, so it is made anew.
                    host.drop(name)
                    pause.wait(refusal, max(_room_bytes(run), refusal.needed_bytes))
                    continue
                if last is not None and last.keys() <= {"stopped"}:
                    continue  # the stop came before there was anything to report
                if last is not None and not host.waits_for(name):
                    report["num_turns"] += 1
                    report["last"] = dict(last)
                    log.turn(last, time.monotonic() - start_s)
                    num_played += _num_played(last)
                elif args.once and not listener.event.is_set():
                    raise RunError(host.waits_for(name))
                else:
                    log.idle(host.waits_for(name))
                    listener.event.wait(_POLL_S)
                if args.once or (num_games is not None and num_played >= num_games):
                    break
            if mirror is not None:
                mirror.check()
            reason = listener.reason or "done"
        finally:
            host.drop(name)
            log.close(reason)
    if num_games is not None:
        report["num_games"] = num_played
    return report | {"exit_code": _INTERRUPTED if reason == "interrupted" else 0}


def _print_of(name: str) -> Callable[[str], None]:
    """Returns a function that prints a mirror's lines with the role's name."""

    def say(text: str) -> None:
        print(f"{name}: {text}", flush=True)

    return say


def _num_played(report: Report) -> int:
    return int(report.get("num_games", 0)) - int(report.get("num_recovered", 0))


def _room_bytes(run: RunDirectory) -> int:
    """Returns the free bytes to wait for: enough for a checkpoint or a model."""
    newest = run.checkpoints.latest()
    folder = run.checkpoints.entry(newest or 0)
    files = [path for path in folder.glob("*") if path.is_file()]
    return max(_LEAST_ROOM_BYTES, 2 * sum(path.stat().st_size for path in files))


class FullDiskPause:
    """Repeats a write to the disk until there is room.

    Used by one thread.

    Args:
        path: The run, whose free disk space is reported.
        stop: Ends the waiting; then the disk's error is raised.
        say: Called with a line for people.
    """

    def __init__(
        self, path: Path, stop: threading.Event, say: Callable[[str], None]
    ) -> None:
        self._path = path
        self._stop = stop
        self._say = say
        self._said_s = -math.inf

    def __call__(self, write: Callable[[], object]) -> None:
        """Calls ``write``, again whenever the disk was full. Blocks until it succeeds.

        Raises:
            DiskFullError: ``stop`` was set before there was room.
        """
        while True:
            try:
                write()
            except DiskFullError as refusal:
                self._tell(refusal)
                if self._stop.wait(_RETRY_S):
                    raise
            else:
                break
        if self._said_s > -math.inf:
            self._said_s = -math.inf
            self._say("goes on, the disk has room again")

    def wait(self, refusal: DiskFullError, num_bytes: int) -> None:
        """Blocks until so many bytes are free on the run's disk.

        Args:
            refusal: The error of a turn, which as a whole cannot just be repeated.
            num_bytes: About how many bytes the turn will need.

        Raises:
            DiskFullError: As ``__call__``.
        """
        self._tell(refusal)
        self(lambda: _reserve(self._path, num_bytes))

    def _tell(self, refusal: RunError) -> None:
        if time.monotonic() - self._said_s < _SAY_AGAIN_S:
            return
        self._said_s = time.monotonic()
        free_mb = shutil.disk_usage(self._path).free / 1e6
        self._say(
            f"waits, the disk of {self._path} is full ({free_mb:,.1f} MB free); free "
            "some space, then the role goes on by itself and nothing durable is lost "
            f"({refusal})"
        )


def _reserve(path: Path, num_bytes: int) -> None:
    """Reserves so many bytes on the disk and frees them again."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError as error:
        raise storage_error(path, error) from error
