"""``tengen bench``: measures the speed of one part of tengen on this machine."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from tengen.observe.progress_line import ProgressLine
from tengen.run import machine_line

_BENCHES = {
    "search": (
        "tengen.cli.bench.search",
        "tree search alone: simulations per CPU-second",
    ),
    "inference": (
        "tengen.cli.bench.inference",
        "evaluations per second per net, backend, batch size and number of threads",
    ),
    "selfplay": (
        "tengen.cli.bench.selfplay",
        "self-play, compared with the backend alone",
    ),
    "actors": (
        "tengen.cli.bench.actors",
        "actors with inference, compared with the environments alone",
    ),
    "learner": (
        "tengen.cli.bench.learner",
        "the learner on games: sampling rows, and learner steps",
    ),
    "store": (
        "tengen.cli.bench.store",
        "the experience store: inserts and samples of several processes",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares a subcommand for each benchmark, with its module's arguments."""
    commands = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    for name, (module, text) in _BENCHES.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(parser=command)  # so that errors suggest its options
        importlib.import_module(module).add_arguments(command)
        # Allow both options before and after NAME. SUPPRESS keeps a value before NAME.
        for option in ("--json", "--quiet"):
            command.add_argument(option, action="store_true", default=argparse.SUPPRESS)


def bench(args: argparse.Namespace) -> dict[str, Any]:
    """Runs one benchmark; prints and returns its report."""
    module = importlib.import_module(_BENCHES[args.bench][0])
    with ProgressLine(f"measuring {args.bench}"):
        report: dict[str, Any] = {**module.run(args), "machine": machine_line()}
    if not args.json:
        for name, value in report.items():
            if name == "rows":
                _print_table(value)
            else:
                print(f"{name:24} {_shown(value)}")
    return report


def _print_table(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    print("  ".join(f"{name:>14}" for name in names))
    for row in rows:
        print("  ".join(f"{_shown(row[name]):>14}" for name in names))


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
