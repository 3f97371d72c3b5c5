"""``tengen report``: a run's web page as one HTML file."""

from __future__ import annotations

import argparse
import shlex
import warnings
from typing import Any

from tengen.errors import RunError, TengenWarning
from tengen.games import add_task_argument
from tengen.observe.progress_line import ProgressLine
from tengen.report.write import REPORT_FILE, write_report

__all__ = ["add_arguments", "report"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen report``."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    parser.add_argument(
        "--out", metavar="FILE", help=f"the page to write, RUN/{REPORT_FILE} by default"
    )
    add_task_argument(parser)


def report(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the page; returns ``run``, ``html``, ``num_bytes`` and ``missing``.

    ``missing`` has a line for each part whose files are damaged, which the page has
    too; the exit code is then 1.

    Raises:
        UsageError: There is no run, or the file has no folder.
        RunError: The disk refuses.
    """
    words = ["tengen", "report", args.run]
    words += ["--out", args.out] if args.out is not None else []
    words += ["--task", args.task] if args.task is not None else []
    made_by = shlex.join(words)
    with ProgressLine("reading the run"):
        made = write_report(args.run, args.out, task=args.task, made_by=made_by)
    if not args.json:
        print(f"{made.path}: {made.num_bytes / 1000:,.0f} kB")
    for line in made.missing:
        warnings.warn(f"report lacks {line}", TengenWarning, stacklevel=2)
    return {
        "exit_code": RunError.exit_code if made.missing else 0,
        "run": args.run,
        "html": str(made.path),
        "num_bytes": made.num_bytes,
        "missing": list(made.missing),
    }
