"""``tengen mllog``: the log of a benchmark run, in MLPerf's form."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.observe.mlperf.benchmark import read_benchmark
from tengen.observe.mlperf.events import open_because
from tengen.observe.mlperf.log import check_package, write_mllog
from tengen.observe.progress_line import ProgressLine
from tengen.run import RunDirectory

__all__ = ["add_arguments", "mllog"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen mllog``."""
    parser.add_argument("run", metavar="RUN", help="a run directory of the benchmark")
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write (RUN/eval/result_0.txt)"
    )


def mllog(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the log and says what it tells.

    Returns:
        ``run``, ``log``, ``division``, ``open_because``, ``status`` (``success``,
        ``aborted``, or ``unfinished`` while models are to be evaluated), ``passed`` (a
        model's number) and ``passed_after_s``, both None where none has passed.

    Raises:
        UsageError: The package mlperf_logging is not installed, there is no run of the
            benchmark, or the file has no folder.
        RunError: A file of the run is damaged, or the disk refuses.
    """
    check_package()
    run = RunDirectory.open(args.run)
    with ProgressLine("reading the run"):
        path = write_mllog(run, None if args.out is None else Path(args.out))
    found = read_benchmark(run)
    reasons, result = open_because(found), found.result
    division = "open" if reasons else "closed"
    status, words = "unfinished", "models are to be evaluated"
    if result is not None and result.passed_after_s is None:
        status, words = "aborted", "no model passed"
    elif result is not None:
        status = "success"
        words = f"model {result.passed} passed after {result.passed_after_s:,.1f} s"
    if not args.json:
        print(f"{path}: {division} division, {words}")
    return {
        "run": str(run.path),
        "log": str(path),
        "division": division,
        "open_because": list(reasons),
        "status": status,
        "passed": None if result is None else result.passed,
        "passed_after_s": None if result is None else result.passed_after_s,
    }
