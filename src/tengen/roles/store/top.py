"""``tengen store top RUN``: what each table of a run's store holds and waits for."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from tengen.roles.store.command import LINK
from tengen.roles.store.report import StoreWatch, lines_of
from tengen.store import Store

__all__ = ["add_arguments", "store_top"]

_LOOK_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store top``."""
    parser.add_argument("run", type=Path, help="a run directory that a store serves")
    parser.add_argument(
        "--once",
        action="store_true",
        help="show the state once, as with --json, then end",
    )


def store_top(args: argparse.Namespace) -> dict[str, Any]:
    """Prints a report every second until Ctrl-C; returns the last report.

    Raises:
        RunError: No store answers there.
    """
    with Store.connect(args.run / LINK) as store:
        watch = StoreWatch(store)
        while True:
            time.sleep(_LOOK_S)
            report = watch.report()
            if not args.json:
                print("\n".join(lines_of(report)), flush=True)
            if args.once or args.json:
                return {"run": str(args.run), **report}
            print(flush=True)
