"""``tengen store top RUN``: what each table of a run's store holds and waits for."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from tengen.store import Store

__all__ = ["LINK", "StoreWatch", "add_arguments", "lines_of", "store_top"]

LINK = "store"
"""In the run directory: a link to the folder of its store, for `Store.connect`."""

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


class StoreWatch:
    """Makes reports of a store. Not thread-safe.

    Args:
        store: The store, or a client of it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = store.describe()["tables"]
        self._seen_s = time.monotonic()

    def report(self) -> dict[str, Any]:
        """Returns JSON values, rates since the last report.

        Keys: ``tables``, a list of ``name``, ``num_items``, ``num_bytes``,
        ``inserts_per_s``, ``samples_per_s``, ``hit_rate``, ``waits`` and
        ``num_damaged``. ``hit_rate`` is the share of drawn chunks that lay in memory, 0
        to 1, None if none was drawn or there is no disk. ``waits`` is empty if inserts
        need not wait. ``trouble`` says what went wrong, and is empty otherwise;
        ``checkpoints``, ``replicas`` and ``sessions`` as in `Store.describe`.
        """
        described = self._store.describe()
        now = time.monotonic()
        passed_s = max(1e-9, now - self._seen_s)
        rows = []
        trouble = ""
        for name, table in described["tables"].items():
            before = self._seen[name]
            rows.append(
                {
                    "name": name,
                    "num_items": table["num_items"],
                    "num_bytes": table["num_bytes"],
                    **{
                        f"{kind}_per_s": round(
                            (table[f"num_{kind}"] - before[f"num_{kind}"]) / passed_s, 1
                        )
                        for kind in ("inserts", "samples")
                    },
                    "hit_rate": _hit_rate(table, before),
                    "waits": table["insert_waits"],
                    "num_damaged": table["num_damaged"],
                }
            )
            trouble = table.get("trouble", "")  # the store's, which every table tells
        self._seen, self._seen_s = described["tables"], now
        return {
            "tables": rows,
            "trouble": trouble,
            "checkpoints": described["checkpoints"],
            "replicas": described["replicas"],
            "sessions": described["sessions"],
        }


def lines_of(report: dict[str, Any]) -> list[str]:
    """Returns a report as lines: tables, what fails, sessions."""
    width = max(5, *(len(row["name"]) for row in report["tables"]))
    lines = [
        f"{'table':{width}}       items        MB  inserts/s  samples/s    hits  waits"
    ]
    for row in report["tables"]:
        hits = "-" if row["hit_rate"] is None else f"{row['hit_rate']:.1%}"
        lines.append(
            f"{row['name']:{width}}  {row['num_items']:>10,}  "
            f"{row['num_bytes'] / 1e6:>8,.1f}  {row['inserts_per_s']:>9,.1f}  "
            f"{row['samples_per_s']:>9,.1f}  {hits:>6}  {row['waits'] or '-'}"
        )
    if report["trouble"]:
        lines.append(f"trouble: {report['trouble']}")
    lines += [
        f"damaged: {row['num_damaged']:,} items of {row['name']}"
        for row in report["tables"]
        if row["num_damaged"]
    ]
    age_s = report["checkpoints"]["age_s"]
    last = "no checkpoint" if age_s is None else f"a checkpoint {age_s:,.1f} s ago"
    lines.append(f"durability: {report['checkpoints']['durability']}, {last}")
    for replica in report["replicas"]:
        behind_s = replica["behind_s"]
        stands = "has nothing yet" if behind_s is None else f"{behind_s:,.1f} s behind"
        lines.append(f"replica {replica['name']}: {stands}")
    sessions = report["sessions"]
    return [*lines, f"sessions: {len(sessions)}", *(f"  {line}" for line in sessions)]


def _hit_rate(table: dict[str, Any], before: dict[str, Any]) -> float | None:
    names = ("num_chunk_hits", "num_chunk_misses")
    if any(table[name] < before[name] for name in names):
        before = dict.fromkeys(names, 0)  # another process serves the store since then
    hits, misses = (table[name] - before[name] for name in names)
    return round(hits / (hits + misses), 4) if hits + misses else None
