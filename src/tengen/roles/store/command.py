"""``tengen store RUN``: serves a store to processes of this host and of others."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tengen.config import check, to_dict
from tengen.errors import RunError, UsageError
from tengen.observe import EventWriter
from tengen.overrides import override
from tengen.roles.stopping import StopListener
from tengen.roles.store.top import LINK, StoreWatch
from tengen.run import RunDirectory, check_no_mirror, storage_error
from tengen.store import Store, StoreConfig

__all__ = ["ROWS", "add_arguments", "store"]

ROWS = "rows"
"""In the run directory: the steps that memory does not hold."""

_SHARED = Path("/dev/shm")
_REPORT_S = 10.0
_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store``."""
    parser.add_argument("run", type=Path, help="a run directory, made when absent")
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
    """Serves until the STOP file or a signal.

    Raises:
        UsageError: The config is refused, or a store of the run is served already.
        RunError: The run was asked to stop, or the disk refuses.
    """
    given = None if args.config is None else StoreConfig.read(args.config)
    check_no_mirror(RunDirectory(args.run))
    run = RunDirectory.create_or_resume(args.run)
    if run.stop_requested():
        raise RunError(
            f"run ({run.path}) was asked to stop; remove {run.path / 'STOP'} first"
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
    """Returns the config of the file, else of the run, with ``--set`` applied."""
    recorded = {} if run.is_new else run.read_run()["config"]
    if "task" in recorded:
        raise UsageError(
            f"run ({run.path}) trains {recorded['task']}, and its learner keeps its "
            f"tables; choose another folder"
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
            "must be left out, as the run directory has the store; remove it",
        )
    return config


def _record(run: RunDirectory, config: StoreConfig) -> None:
    """Writes the config into ``run.json``, if it differs."""
    plain = to_dict(config)
    if run.is_new or run.read_run()["config"] != plain:
        run.write_run({"config": plain})


def _folder_of(run: RunDirectory) -> Path:
    """Returns the store's folder: in memory, with a name short enough for a socket.

    The name is the same each time, so that what a killed store left is found even
    without the run's link. Another user could take the name first, which is detected
    (`tengen.transport.folder`).
    """
    parent = _SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())
    name = hashlib.sha256(os.fsencode(run.path.resolve())).hexdigest()[:16]
    return parent / f"tengen-{os.getuid()}-{name}"


@contextlib.contextmanager
def _served(run: RunDirectory, config: StoreConfig) -> Iterator[Store]:
    """Serves the store, published by the run's link, which is removed at the end."""
    folder = _folder_of(run)
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
    """Makes the run's link point to the folder."""
    try:
        link.unlink(missing_ok=True)  # a link that a killed store left
        link.symlink_to(folder)
    except OSError as error:
        raise storage_error(link, error) from error
