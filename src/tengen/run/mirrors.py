"""Which roles on hosts without the run directory work on a run: ``RUN/mirrors/``.

Such a role works in a mirror, a folder with ``mirror.json``, by which every command
recognises it.

Each mirror has a file in ``RUN/mirrors/``, which the run's service writes
(``tengen.remote``). Commands that look at the run, and roles that take a writer, read
these files.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tengen.errors import RunError, UsageError
from tengen.run.layout import RunDirectory
from tengen.run.publish import publish_json, storage_error
from tengen.run.reading import find_files, read_object

__all__ = [
    "MIRROR_FILE",
    "MIRROR_SCHEMA",
    "MirrorRecord",
    "change_mirror",
    "check_no_mirror",
    "evict_mirrors",
    "forget_mirror",
    "has_mirror",
    "read_mirrors",
    "write_mirror",
]

MIRROR_FILE = "mirror.json"
"""The file in a folder that is a mirror of another host's run."""
MIRROR_SCHEMA = 1
"""The schema of ``MIRROR_FILE``."""

_SCHEMA = 1
_LOCK = "mirror-records"
"""The lock for changing or evicting a record, so that an eviction is not
overwritten."""
_TYPES = {
    "mirror": str,
    "role": str,
    "index": int,
    "process": str,
    "incarnation": int,
    "events": int,
    "is_away": bool,
}


@dataclass(frozen=True, kw_only=True)
class MirrorRecord:
    """One mirror of a run, as the run's service knows it."""

    mirror: str
    """The mirror's id: 32 hexadecimal digits, made with its folder."""
    role: str
    """The role that works on it."""
    index: int
    """The index of the self-play writer or actor."""
    process: str
    """``PID on HOST``."""
    incarnation: int
    """The process's incarnation of its role; for self-play the least that it writes as.
    """
    events: int
    """The number of the process's event file."""
    is_away: bool
    """Whether its process has ended, or has been silent for a minute."""


def check_no_mirror(run: RunDirectory) -> None:
    """Makes sure that a folder is a run itself, and not a mirror of one.

    Otherwise what a role makes in a mirror would be taken for the other run's.

    Raises:
        UsageError: The folder is a mirror.
    """
    path = run.path / MIRROR_FILE
    if not path.exists():
        return
    content = read_object(
        path, "mirror", schema=MIRROR_SCHEMA, advice="choose another folder"
    )
    raise UsageError(
        f"run ({run.path}) is a mirror of the run at {content.get('host')}; run this "
        f"there, or work on the mirror by selfplay or actor with --connect"
    )


def read_mirrors(run: RunDirectory) -> list[MirrorRecord]:
    """Returns the mirrors of a run, by role and index.

    Raises:
        RunError: A record is damaged.
    """
    records = []
    for path in find_files(run.path / "mirrors", "*.json"):
        with suppress(FileNotFoundError):
            content = read_object(
                path, "mirror", schema=_SCHEMA, advice="remove the file"
            )
            found = {name: content.get(name) for name in _TYPES}
            if any(type(found[name]) is not kind for name, kind in _TYPES.items()):
                raise RunError(f"mirror ({path}) is damaged; remove the file")
            records.append(MirrorRecord(**found))  # type: ignore[arg-type]
    return sorted(records, key=lambda record: (record.role, record.index))


def has_mirror(run: RunDirectory, mirror: str) -> bool:
    """Returns whether a mirror still has its place."""
    return _path(run, mirror).exists()


def write_mirror(run: RunDirectory, record: MirrorRecord) -> None:
    """Publishes a record.

    Raises:
        RunError: The disk refuses.
    """
    path = _path(run, record.mirror)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise storage_error(path.parent, error) from error
    publish_json(path, {"schema": _SCHEMA, **dataclasses.asdict(record)})


def change_mirror(run: RunDirectory, record: MirrorRecord) -> bool:
    """Publishes a record anew, unless it was evicted.

    Returns:
        Whether the record is still there.

    Raises:
        RunError: The disk refuses.
    """
    with run.lock(_LOCK, wait=True):
        is_there = has_mirror(run, record.mirror)
        if is_there:
            write_mirror(run, record)
        return is_there


def evict_mirrors(run: RunDirectory, role: str, index: int) -> None:
    """Makes a run's service free a mirror's place, for a process with the run.

    If a service holds the lock of the place, the lock is free some seconds later.

    Raises:
        RunError: The disk refuses, or a record is damaged.
    """
    for record in read_mirrors(run):
        if (record.role, record.index) == (role, index):
            with run.lock(_LOCK, wait=True):
                forget_mirror(run, record.mirror)


def forget_mirror(run: RunDirectory, mirror: str) -> None:
    """Removes a record; does nothing if it is not there.

    Raises:
        RunError: The disk refuses.
    """
    path = _path(run, mirror)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _path(run: RunDirectory, mirror: str) -> Path:
    return run.path / "mirrors" / f"{mirror}.json"
