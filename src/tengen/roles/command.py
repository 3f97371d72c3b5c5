"""``tengen selfplay|shuffle|learn|export|gate RUN``: one role alone, or one turn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.observe import EventWriter
from tengen.roles.config import RunConfig, read_config
from tengen.roles.devices import with_devices
from tengen.roles.role import Report, Role, RoleContext, make_role
from tengen.roles.stopping import StopListener
from tengen.run import RunDirectory, usable_threads

__all__ = ["add_arguments", "export", "gate", "learn", "selfplay", "shuffle"]

_POLL_S = 0.5
_INTERRUPTED = 130
_NOTHING = {
    "selfplay": "no model is published yet; run tengen learn, export and gate first",
    "shuffle": "no new experience has arrived, or the learner has enough; run tengen "
    "selfplay or learn",
    "learn": "no new experience has arrived; run tengen selfplay, or "
    "tengen train where environments are played",
    "export": "every checkpoint is exported; run tengen learn first",
    "gate": "there is no candidate; run tengen export first",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that every role has."""
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--once", action="store_true", help="one turn, then end")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument("--devices", help="cpu, cuda:0 or cuda:0,cuda:1 (the run's)")


def selfplay(args: argparse.Namespace) -> dict[str, Any]:
    """Plays generations."""
    return _serve("selfplay", args)


def shuffle(args: argparse.Namespace) -> dict[str, Any]:
    """Draws batches for the learner into files."""
    return _serve("shuffle", args)


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
    num_threads = usable_threads(args.threads)
    run = RunDirectory.open(args.run)
    if run.stop_requested():
        raise RunError(
            f"run ({run.path}) was asked to stop; remove {run.path / 'STOP'} first"
        )
    # Not the role's own name: its incarnations number its folders.
    events = EventWriter(run, f"{name}-command", run.new_incarnation(f"{name}-command"))
    num_turns = 0
    last: dict[str, Any] = {}

    def tell(report: Report) -> None:
        if "gate" in report:
            events.write("gate", **report["gate"])

    with StopListener(run) as listener:
        context = RoleContext(
            num_threads=num_threads, stop=listener.event, progress=tell
        )
        worker = _Worker(name, run, context, args.devices)
        try:
            while not listener.event.is_set():
                report = worker.turn()
                if report is not None:
                    num_turns += 1
                    last = dict(report)
                    events.write("turn", role=name, **last)
                    print(_line(name, last), flush=True)
                elif args.once and not listener.event.is_set():
                    raise RunError(
                        f"role ({name}) found nothing to do; {_NOTHING[name]}"
                    )
                else:
                    listener.event.wait(_POLL_S)
                if args.once:
                    break
        finally:
            worker.close()
            events.close()
    return {
        "role": name,
        "num_turns": num_turns,
        "last": last,
        "exit_code": _INTERRUPTED if listener.reason == "interrupted" else 0,
    }


class _Worker:
    """A role that is made anew whenever ``run.json`` says something else."""

    def __init__(
        self, name: str, run: RunDirectory, context: RoleContext, devices: str | None
    ) -> None:
        self._devices = devices
        self._name = name
        self._run = run
        self._context = context
        self._made: tuple[RunConfig, Role] | None = None

    def turn(self) -> Report | None:
        config = with_devices(read_config(self._run), self._devices)
        if self._made is None or self._made[0] != config:
            self.close()
            role = make_role(self._name, config, self._run, self._context)
            self._made = config, role
        return self._made[1].turn()

    def close(self) -> None:
        if self._made is not None:
            self._made[1].close()
            self._made = None


def _line(name: str, report: dict[str, Any]) -> str:
    shown = {
        key: f"{value:.4g}" if isinstance(value, float) else value
        for key, value in report.items()
        if isinstance(value, (int, float, str)) and not isinstance(value, bool)
    }
    return f"{name}: " + ", ".join(f"{key} {value}" for key, value in shown.items())
