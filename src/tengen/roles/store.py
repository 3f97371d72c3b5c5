"""Standalone stores: ``tengen store RUN``, ``store top`` and ``store replicate``."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tengen.config import check, to_dict
from tengen.errors import RunError, UsageError
from tengen.observe import EventWriter
from tengen.overrides import override
from tengen.roles.stopping import StopListener
from tengen.run import (
    RunDirectory,
    check_no_mirror,
    service_folder,
    storage_error,
)
from tengen.store import Replica, Store, StoreConfig

LINK = "store"
"""Name of the run directory's link to the store's folder, for `Store.connect`."""

ROWS = "rows"
"""Name of the run directory's folder for steps that do not fit into memory."""

_REPORT_S = 10.0
_TOP_S = 1.0
_REPLICA_S = 0.5
_INTERRUPTED = 130


def store_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store``."""
    parser.add_argument("run", type=Path, help="a run directory, created if missing")
    parser.add_argument(
        "--config",
        type=Path,
        help="a .toml or .json file with the store's tables and budgets (those of "
        "run.json)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="a.b=v",
        help="change a field, such as tables.replay.max_items=1000; may be repeated",
    )


def store(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen store RUN``: serves a store until a STOP file or a signal ends it.

    Raises:
        UsageError: The config is invalid, or another process serves the run's store.
        RunError: The run was asked to stop, or writing failed.
    """
    given = None if args.config is None else StoreConfig.read(args.config)
    check_no_mirror(RunDirectory(args.run))
    run = RunDirectory.create_or_resume(args.run)
    if run.stop_requested():
        raise RunError(
            f"run ({run.path}) has a stop request; remove {run.path / 'STOP'} first"
        )
    with run.lock("store"):
        config = _resolve(run, given, args.set)
        events = EventWriter(run, "store", run.new_incarnation("store"))
        with (
            contextlib.closing(events),
            StopListener(run) as listener,
            _served(run, config) as served,
        ):
            where = " and ".join(filter(None, (str(run.path / LINK), served.address)))
            print(f"{where}: serves {', '.join(config.tables)}", flush=True)
            for line in served.differences:
                print(f"{run.path / LINK}: {line}", flush=True)
            watch = StoreWatch(served)
            while not listener.event.wait(_REPORT_S):
                events.write("store", **watch.report())
            report = watch.report()
            events.write("store", **report)
    return {
        "run": str(run.path),
        **report,
        "exit_code": _INTERRUPTED if listener.reason == "interrupted" else 0,
    }


def _resolve(
    run: RunDirectory, given: StoreConfig | None, settings: list[str]
) -> StoreConfig:
    """Returns ``given``, or the run's config if it is None, with ``--set`` applied."""
    recorded = {} if run.is_new else run.read_run()["config"]
    if "task" in recorded:
        raise UsageError(
            f"run ({run.path}) trains {recorded['task']}, and its learner serves its "
            "table; choose another folder"
        )
    if given is None:
        given = StoreConfig.from_json(recorded, str(run.path / "run.json"))
    config = override(given, settings)
    if not config.tables:
        raise UsageError("tables (none) must be at least one; give --config FILE")
    for name in ("directory", "disk_directory"):
        check(
            getattr(config, name) is None,
            name,
            getattr(config, name),
            "must be left out, because the run directory contains the store; remove it",
        )
    return config


def _record(run: RunDirectory, config: StoreConfig) -> None:
    """Writes the config into ``run.json`` if it has changed."""
    plain = to_dict(config)
    if run.is_new or run.read_run()["config"] != plain:
        run.write_run({"config": plain})


@contextlib.contextmanager
def _served(run: RunDirectory, config: StoreConfig) -> Iterator[Store]:
    """Serves a run's store for the context, at ``LINK`` in the run directory."""
    # Named by the run, so that a restarted store finds what a killed one left there.
    folder = service_folder(run, LINK)
    rows = str(run.path / ROWS) if config.disk_bytes else None
    served = Store(replace(config, directory=str(folder), disk_directory=rows))
    link = run.path / LINK
    try:
        _link(link, folder)
        _record(run, config)
    except BaseException:
        served.abandon()
        raise
    try:
        with served:
            yield served
    finally:
        link.unlink(missing_ok=True)


def _link(link: Path, folder: Path) -> None:
    """Creates or replaces ``link``, a symbolic link to ``folder``."""
    try:
        link.unlink(missing_ok=True)  # left behind by a killed store
        link.symlink_to(folder)
    except OSError as error:
        raise storage_error(link, error) from error


def store_top_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store top``."""
    parser.add_argument("run", type=Path, help="a run directory that a store serves")
    parser.add_argument(
        "--once",
        action="store_true",
        help="show the state once, then end; implied by --json",
    )


def store_top(args: argparse.Namespace) -> dict[str, Any]:
    """Prints a store report every second; returns one with ``--once`` or ``--json``.

    Raises:
        RunError: No store answers at the run's link.
    """
    with Store.connect(args.run / LINK) as store:
        watch = StoreWatch(store)
        while True:
            time.sleep(_TOP_S)
            report = watch.report()
            if not args.json:
                print("\n".join(lines_of(report)), flush=True)
            if args.once or args.json:
                return {"run": str(args.run), **report}
            print(flush=True)


class StoreWatch:
    """Reports a store's contents and rates. Not thread-safe.

    Args:
        store: The store, or a client of the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = store.describe()["tables"]
        self._seen_s = time.monotonic()

    def report(self) -> dict[str, Any]:
        """Returns a report of JSON values, with rates since the previous report.

        ``tables`` is a list with the keys ``name``, ``num_items``, ``num_bytes``,
        ``inserts_per_s``, ``samples_per_s``, ``hit_rate``, ``waits`` and
        ``num_damaged``. ``hit_rate`` is the share of sampled chunks found in memory, 0
        to 1; None if no chunk was sampled or the store has no disk. ``waits`` is empty
        if inserts need not wait. ``trouble`` is an error message, or empty.
        ``checkpoints``, ``replicas`` and ``sessions`` are as in `Store.describe`.
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
            trouble = table.get("trouble", "")  # the same in all tables
        self._seen, self._seen_s = described["tables"], now
        return {
            "tables": rows,
            "trouble": trouble,
            "checkpoints": described["checkpoints"],
            "replicas": described["replicas"],
            "sessions": described["sessions"],
        }


def lines_of(report: dict[str, Any]) -> list[str]:
    """Returns the lines of text that display a report of ``StoreWatch``."""
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
        before = dict.fromkeys(names, 0)  # the store was restarted since ``before``
    hits, misses = (table[name] - before[name] for name in names)
    return round(hits / (hits + misses), 4) if hits + misses else None


def store_replicate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store replicate``."""
    parser.add_argument("address", help="tcp://HOST:PORT of a store with durability")
    parser.add_argument(
        "folder", type=Path, help="folder for the copy, on a disk; created if missing"
    )
    parser.add_argument(
        "--name", help="name of this copy in the store's report (the host name)"
    )
    parser.add_argument(
        "--ca-file",
        type=Path,
        help="PEM file of the authority that signed the store's certificate",
    )
    parser.add_argument(
        "--fingerprint",
        help="SHA-256 of the store's certificate in hex, instead of --ca-file",
    )


def store_replicate(args: argparse.Namespace) -> dict[str, Any]:
    """``tengen store replicate``: replicates another host's store until Ctrl-C.

    Raises:
        UsageError: The store refuses the replica, or the folder is unsuitable.
    """
    with Replica(
        args.address,
        args.folder,
        name=args.name,
        ca_file=args.ca_file,
        fingerprint=args.fingerprint,
        tell=lambda line: print(f"tengen: {line}", flush=True),
    ) as replica:
        while not replica.wait(_REPLICA_S):
            pass
        return replica.describe()
