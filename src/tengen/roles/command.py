"""``tengen selfplay|actor|learn|export|gate RUN``: one role by itself, or one turn."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.errors import RunError
from tengen.observe import EventWriter
from tengen.roles.config import read_config
from tengen.roles.role import RoleContext, make_role
from tengen.run import RunDirectory, available_cores

__all__ = ["add_arguments", "export", "gate", "learn", "selfplay"]

_POLL_S = 0.5
_INTERRUPTED = 130
_NOTHING = {
    "selfplay": "no model is published yet; run tengen learn, export and gate first",
    "learn": "no new experience has arrived; run tengen selfplay first",
    "export": "every checkpoint is exported; run tengen learn first",
    "gate": "there is no candidate; run tengen export first",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that every role has."""
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--once", action="store_true", help="one turn, then end")
    parser.add_argument("--threads", type=int, help="cores to use (all)")


def selfplay(args: argparse.Namespace) -> dict[str, Any]:
    """Plays generations."""
    return _serve("selfplay", args)


def learn(args: argparse.Namespace) -> dict[str, Any]:
    """Learns from what arrives."""
    return _serve("learn", args)


def export(args: argparse.Namespace) -> dict[str, Any]:
    """Exports checkpoints."""
    return _serve("export", args)


def gate(args: argparse.Namespace) -> dict[str, Any]:
    """Accepts or rejects candidates."""
    return _serve("gate", args)


def _serve(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Takes turns until the STOP file, a signal or, with ``--once``, one turn.

    Raises:
        RunError: With ``--once``, there was nothing to do.
    """
    check(
        args.threads is None or args.threads >= 1,
        "threads",
        args.threads,
        "must be at least 1; leave it out for all",
    )
    run = RunDirectory.open(args.run)
    context = RoleContext(num_threads=args.threads or available_cores())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: context.stop.set())
    # Not the role's own name: its incarnations number its folders.
    events = EventWriter(run, f"{name}-command", run.new_incarnation(f"{name}-command"))
    role = make_role(name, read_config(run), run, context)
    num_turns = 0
    last: dict[str, Any] = {}
    try:
        if args.once and run.stop_requested():
            raise RunError(
                f"run ({run.path}) was asked to stop; remove {run.path / 'STOP'} first"
            )
        while not context.stop.is_set() and not run.stop_requested():
            report = role.turn()
            if report is not None:
                num_turns += 1
                last = dict(report)
                events.write("turn", role=name, **last)
                print(_line(name, last), flush=True)
            elif args.once:
                raise RunError(f"role ({name}) found nothing to do; {_NOTHING[name]}")
            else:
                context.stop.wait(_POLL_S)
            if args.once:
                break
    finally:
        role.close()
        events.close()
    interrupted = context.stop.is_set()
    return {
        "role": name,
        "num_turns": num_turns,
        "last": last,
        "exit_code": _INTERRUPTED if interrupted else 0,
    }


def _line(name: str, report: dict[str, Any]) -> str:
    shown = {
        key: f"{value:.4g}" if isinstance(value, float) else value
        for key, value in report.items()
        if isinstance(value, (int, float, str)) and not isinstance(value, bool)
    }
    return f"{name}: " + ", ".join(f"{key} {value}" for key, value in shown.items())
