"""``tengen scale RUN ROLE=N``: changes the number of acting processes of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.errors import UsageError, did_you_mean
from tengen.roles import change_config, read_config, write_config
from tengen.roles.config.run_file import RUN_LOCK
from tengen.run import RunDirectory, check_no_mirror

_WORDS = {"actors": "actor"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen scale``."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run directory")
    parser.add_argument(
        "count",
        metavar="ROLE=N",
        help="the role and its number of processes: actors=32, or for games selfplay=4",
    )


def scale(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen scale``: writes the number of acting processes to ``run.json``.

    A running call with launcher ``local`` or ``ray`` adapts within seconds. Otherwise
    the number takes effect in the next call.

    Raises:
        UsageError: The run does not exist, the role does not act in the run, or the
            number is out of range.
        RunError: ``run.json`` cannot be written.
    """
    word, equals, number = args.count.partition("=")
    if not equals or not number.isdecimal():
        raise UsageError(f"count ({args.count}) must be ROLE=N; for example actors=32")
    run = RunDirectory.open(args.run)
    check_no_mirror(run)
    with run.lock(RUN_LOCK, wait=True):
        config = read_config(run)
        acting = config.schedule.acting
        role = _WORDS.get(word, word)
        if role != acting or not acting:
            raise UsageError(
                f"role ({word}) is not the acting role of this run; "
                f"{did_you_mean(word, [acting] if acting else [])}"
            )
        before = config.launch.of(role).count
        changed = change_config(config, [f"launch.roles.{role}.count={number}"])
        write_config(run, changed)
    is_running = run.lock_holder("train") is not None
    if not args.json:
        when = "when the run resumes"
        if is_running:
            when = "within seconds with local and ray, otherwise when the run resumes"
        print(f"{run.path}: {before} -> {number} of role {role}, {when}")
    return {
        "run": str(run.path),
        "role": role,
        "before": before,
        "count": int(number),
        "running": is_running,
    }
