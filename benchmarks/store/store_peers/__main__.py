"""Compares tengen's store with other stores on the same workloads.

    python benchmarks/store/store_peers setup --dir DIR --python python3.11
    python benchmarks/store/store_peers run --dir DIR --out rows.jsonl
    python benchmarks/store/store_peers learn --dir DIR --out learn.jsonl
    python benchmarks/store/store_peers table rows.jsonl

``setup`` creates a virtual environment per peer, separate from tengen's. ``run``
measures sampling and inserting, ``learn`` the steps of a learner that samples from a
store. Each store has its own process, and the stores take turns. ``table`` prints the
medians. Results count the CPU-seconds of the client and of all processes of the store.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from environments import FEEDS, STORES, python_of, setup
from tables import print_tables
from workloads import WORKLOADS

_HERE = Path(__file__).resolve().parent
_LONGEST_S = 900


def run(args: argparse.Namespace) -> None:
    with args.out.open("a") as out:
        for repeat in range(args.repeats):
            for workload in args.workloads:
                for store in args.stores:
                    environment, name = STORES[store]
                    words = ["child.py", name, workload]
                    words += ["--cpu-seconds", str(args.cpu_seconds)]
                    for row in child(args.dir, environment, words):
                        about = {"store": store, "workload": workload}
                        print(json.dumps({**about, "repeat": repeat, **row}), file=out)
                        out.flush()


def learn(args: argparse.Namespace) -> None:
    with args.out.open("a") as out:
        for repeat in range(args.repeats):
            for store in args.stores:
                environment, name = STORES[store]
                words = ["learner.py", name, "--steps", str(args.steps)]
                words += ["--accelerator-ms", str(args.accelerator_ms)]
                for row in child(args.dir, environment, words):
                    print(
                        json.dumps({"store": store, "repeat": repeat, **row}), file=out
                    )
                    out.flush()


def child(
    directory: Path, environment: str, words: list[str]
) -> Iterator[dict[str, Any]]:
    """Yields a child's result rows, or one row with the reason for a failure."""
    python = python_of(directory, environment)
    if python is None:
        yield {"error": "not installed"}
        return
    print(" ".join(words), file=sys.stderr, flush=True)
    process = subprocess.Popen(
        [python, str(_HERE / words[0]), *words[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines, errors = process.communicate(timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        lines, errors = process.communicate()
        errors += f"took longer than {_LONGEST_S} s"
    for line in lines.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
    if process.returncode:
        yield {"error": (errors.strip().splitlines() or ["killed"])[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("setup")
    making.add_argument("--dir", type=Path, required=True)
    making.add_argument("--python", default="python3.11", help="3.10 or 3.11")
    making.set_defaults(call=lambda args: setup(args.dir, args.python))
    running = commands.add_parser("run")
    running.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    running.add_argument("--stores", nargs="+", default=list(STORES), choices=STORES)
    running.add_argument("--cpu-seconds", type=float, default=2.0)
    running.set_defaults(call=run)
    learning = commands.add_parser("learn")
    learning.add_argument("--stores", nargs="+", default=list(FEEDS), choices=FEEDS)
    learning.add_argument("--steps", type=int, default=300)
    learning.add_argument("--accelerator-ms", type=float, default=0.0)
    learning.set_defaults(call=learn)
    for command in (running, learning):
        command.add_argument("--dir", type=Path, required=True)
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--repeats", type=int, default=3)
    printing = commands.add_parser("table")
    printing.add_argument("rows", type=Path)
    printing.set_defaults(call=lambda args: print_tables(args.rows))
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
