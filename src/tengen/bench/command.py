"""``tengen bench``: search, inference or self-play, measured on this machine."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from tengen.observe.progress_line import ProgressLine
from tengen.run import machine_line

__all__ = ["add_arguments", "bench"]

_BENCHES = {
    "search": ("tengen.bench.search", "simulations of the tree alone"),
    "inference": ("tengen.bench.inference", "the backends by net, batch and threads"),
    "selfplay": ("tengen.bench.selfplay", "games against the backend's best rate"),
    "actors": ("tengen.bench.actors", "environments and inference against the former"),
    "learner": ("tengen.bench.learner", "steps on games, and drawing their rows"),
    "store": ("tengen.bench.store", "the experience store between processes"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares a subcommand a benchmark; each module declares its own arguments."""
    commands = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    for name, (module, text) in _BENCHES.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(parser=command)  # whose options are told
        importlib.import_module(module).add_arguments(command)
        # Given before or after NAME; SUPPRESS keeps the outer value when absent.
        for option in ("--json", "--quiet"):
            command.add_argument(option, action="store_true", default=argparse.SUPPRESS)


def bench(args: argparse.Namespace) -> dict[str, Any]:
    """Runs one benchmark, prints it and returns its report."""
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
