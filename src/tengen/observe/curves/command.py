"""``tengen curves``: a run's learning curve as a CSV file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.observe.curves.table import read_curve, to_csv
from tengen.observe.progress_line import ProgressLine
from tengen.run import RunDirectory, publish_file

__all__ = ["add_arguments", "curves"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen curves``."""
    parser.add_argument(
        "run", metavar="RUN", help="the run directory; a run is one seed"
    )
    parser.add_argument("csv", metavar="CSV", help="the file to write")


def curves(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the curve; returns ``run``, ``csv``, ``num_rows`` and the ``last`` row.

    Raises:
        UsageError: There is no run, it has not learned yet, or the file has no folder.
        RunError: ``run.json`` is damaged, or the disk refuses.
    """
    run, path = RunDirectory.open(args.run), Path(args.csv)
    is_file = bool(path.name) and path.parent.is_dir() and not path.is_dir()
    check(is_file, "csv", args.csv, "must be a file in a folder that is there")
    with ProgressLine("reading the run's events"):
        rows = read_curve(run)
    check(bool(rows), "run", run.path, "has learned nothing yet; train it first")
    publish_file(path, to_csv(rows).encode())
    if not args.json:
        print(f"{path}: {len(rows)} rows, {rows[-1]['seconds']:,.0f} s of training")
    return {
        "run": str(run.path),
        "csv": str(path),
        "num_rows": len(rows),
        "last": rows[-1],
    }
