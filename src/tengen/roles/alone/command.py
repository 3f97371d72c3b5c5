"""``tengen selfplay|actor|inference|learn|... RUN``: runs one role of a run."""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from pathlib import Path
from typing import Any

from tengen.config import check_range
from tengen.errors import DiskFullError, RunError
from tengen.games import add_task_argument, check_typed
from tengen.roles.alone.role_log import FullDiskPause, RoleLog
from tengen.roles.config import read_config
from tengen.roles.doors import (
    Connect,
    add_connect_arguments,
    connect_of,
    mirrored,
)
from tengen.roles.host import RoleHost
from tengen.roles.role import Report, RoleContext
from tengen.roles.stopping import StopListener
from tengen.run import (
    RunDirectory,
    check_no_mirror,
    usable_threads,
)

_POLL_S = 0.5
_INTERRUPTED = 130
_LEAST_ROOM_BYTES = 1 << 20
_MAX_GAMES = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command-line arguments common to all standalone roles."""
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--once", action="store_true", help="do one turn, then end")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices", help="cpu, cuda:0 or cuda:0,cuda:1 (the run's devices)"
    )
    add_task_argument(parser)


def _add_index(parser: argparse.ArgumentParser, what: str) -> None:
    add_arguments(parser)
    parser.add_argument("--index", type=int, default=0, help=f"{what} (0)")


def actor_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen actor``."""
    _add_index(
        parser, "which of the run's actors this is, from 0; see tengen train --actors"
    )
    add_connect_arguments(parser)


def actor(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen actor RUN``: steps environments to generate experience.

    Raises:
        UsageError: ``--index`` is not below the run's number of actors, or
            ``--connect`` is not an address.
        RunError: See ``serve``.
    """
    connect = connect_of(args)
    return serve("actor", args, index=args.index, connect=connect)


def selfplay_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen selfplay``."""
    add_arguments(parser)
    add_connect_arguments(parser)
    parser.add_argument(
        "--games",
        type=int,
        help="end when this call has played this many games and completed the last "
        "generation",
    )


def selfplay(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen selfplay RUN``: plays generations of games.

    Raises:
        UsageError: ``--games`` is out of its range, or ``--connect`` is not an address.
        RunError: See ``serve``.
    """
    if args.games is not None:
        check_range("games", args.games, 1, _MAX_GAMES, "leave it out")
    return serve("selfplay", args, args.games, connect=connect_of(args))


def inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen inference``."""
    _add_index(parser, "which of the run's inference servers this is, from 0")


def inference(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen inference RUN``: evaluates the network for the actors of a run.

    Raises:
        UsageError: ``--index`` is not below the run's number of servers.
        RunError: See ``serve``.
    """
    _check_index(args, "inference")
    return serve("inference", args, index=args.index)


def learn_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen learn``."""
    _add_index(parser, "which of the run's learners this is; 0 leads, others follow")


def learn(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen learn RUN``: trains the network on new experience.

    Raises:
        UsageError: ``--index`` is not below the run's number of learners.
        RunError: See ``serve``.
    """
    _check_index(args, "learn")
    return serve("follow" if args.index else "learn", args, index=args.index)


def _check_index(args: argparse.Namespace, role: str) -> None:
    """Checks ``--index`` and ``--threads``, and that the run is not a mirror."""
    usable_threads(args.threads)  # checked first, as in all roles
    run = RunDirectory.open(args.run)
    check_no_mirror(run)  # a mirror's run.json belongs to another host
    count = read_config(run).launch.of(role).count
    check_range("index", args.index, 0, count - 1, f"raise launch.roles.{role}.count")


def shuffle(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen shuffle RUN``: samples batches for the learner in advance."""
    return serve("shuffle", args)


def export(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen export RUN``: exports checkpoints as candidates."""
    return serve("export", args)


def gate(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen gate RUN``: accepts or rejects candidates."""
    return serve("gate", args)


def serve(
    name: str,
    args: argparse.Namespace,
    num_games: int | None = None,
    index: int = 0,
    connect: Connect | None = None,
) -> dict[str, Any]:
    """Runs a role until a STOP file or a signal; with ``--once``, only for one turn.

    Args:
        name: The role.
        args: The arguments declared by ``add_arguments``.
        num_games: Number of played games after which the role ends; None: no limit.
        index: Index of this actor, learner or inference server, from 0.
        connect: The run's address, for a role that works on a mirror; None: the run is
            the folder given on the command line.

    Raises:
        UsageError: The task is a program, and the command line does not name it; the
            command line names a different task; the role rejects its config or files;
            or the folder is a mirror and ``connect`` is None.
        TengenError: The mirror failed, so the run receives no more output.
        RunError: The run was asked to stop, the role failed, or with ``--once`` there
            was nothing to do; the message says what was missing.
    """
    num_threads = usable_threads(args.threads)
    if connect is None:
        check_no_mirror(RunDirectory(args.run))
    stop = threading.Event()
    # Standalone self-play may use any free writer.
    place = None if name == "selfplay" else index
    report: dict[str, Any] = {"role": name, "num_turns": 0, "last": {}}
    reason = "failed"
    with contextlib.ExitStack() as ending:
        mirror = ending.enter_context(
            mirrored(
                args.run,
                connect,
                name,
                place,
                stop,
                lambda text: print(f"{name}: {text}", flush=True),
            )
        )
        run = RunDirectory.open(args.run)
        if run.stop_requested():
            raise RunError(
                f"run ({run.path}) has a stop request; remove {run.path / 'STOP'} first"
            )
        check_typed(read_config(run).task, args.task, run.path)
        number = None if mirror is None else mirror.place.events
        actor_index = index if name == "actor" else None
        log = RoleLog(name, run, num_threads, number, actor_index)
        listener = ending.enter_context(StopListener(run, stop))
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
                    # The role's state may be inconsistent, so create the role again.
                    host.drop(name)
                    pause.wait(refusal, max(_room_bytes(run), refusal.needed_bytes))
                    continue
                if last is not None and last.keys() <= {"stopped"}:
                    continue  # the turn was stopped before it did anything
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


def _num_played(report: Report) -> int:
    return int(report.get("num_games", 0)) - int(report.get("num_recovered", 0))


def _room_bytes(run: RunDirectory) -> int:
    """Returns the number of free bytes that a new checkpoint or model may need."""
    newest = run.checkpoints.latest()
    folder = run.checkpoints.entry(newest or 0)
    files = [path for path in folder.glob("*") if path.is_file()]
    return max(_LEAST_ROOM_BYTES, 2 * sum(path.stat().st_size for path in files))
