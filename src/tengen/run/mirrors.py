"""Records of a run's mirrors, in ``RUN/mirrors/``.

A role on a host without the run directory works in a mirror: a local folder that
contains ``mirror.json``, so that every command recognises it.

Each mirror has a record in ``RUN/mirrors/``, which the run's service writes
(``tengen.remote``). Commands that inspect the run, and roles that claim a writer, read
the records.
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

MIRROR_FILE = "mirror.json"
"""Name of the file that marks a folder as a mirror of another host's run."""
MIRROR_SCHEMA = 1
"""Schema version of ``MIRROR_FILE``."""

_SCHEMA = 1
_LOCK = "mirror-records"
"""Name of the lock for changing or removing records. Without the lock, a change could
restore an evicted record."""
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
    """The run service's record of one mirror."""

    mirror: str
    """The mirror's ID: 32 hexadecimal digits, created with the mirror's folder."""
    role: str
    """The role that works in the mirror."""
    index: int
    """The index of the self-play writer or actor."""
    process: str
    """The process that works in the mirror, ``PID on HOST``."""
    incarnation: int
    """The process's incarnation of its role; for self-play the lowest that it uses."""
    events: int
    """The number of the process's event file."""
    is_away: bool
    """Whether the mirror's process has ended, or has been silent for a minute."""


def check_no_mirror(run: RunDirectory) -> None:
    """Checks that ``run`` is a run directory, and not a mirror of one.

    In a mirror, a role's files would be mistaken for files of the run.

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
        "there; on the mirror, use only selfplay or actor with --connect"
    )


def read_mirrors(run: RunDirectory) -> list[MirrorRecord]:
    """Returns the records of a run's mirrors, ordered by role and index.

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
    """Returns whether the mirror with the ID ``mirror`` still has a record."""
    return _path(run, mirror).exists()


def write_mirror(run: RunDirectory, record: MirrorRecord) -> None:
    """Publishes the record of a mirror.

    Raises:
        RunError: The record cannot be written.
    """
    path = _path(run, record.mirror)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise storage_error(path.parent, error) from error
    publish_json(path, {"schema": _SCHEMA, **dataclasses.asdict(record)})


def change_mirror(run: RunDirectory, record: MirrorRecord) -> bool:
    """Replaces a mirror's record, unless the mirror was evicted.

    Returns:
        Whether the mirror still has a record.

    Raises:
        RunError: The record cannot be written.
    """
    with run.lock(_LOCK, wait=True):
        is_there = has_mirror(run, record.mirror)
        if is_there:
            write_mirror(run, record)
        return is_there


def evict_mirrors(run: RunDirectory, role: str, index: int) -> None:
    """Evicts mirrors of ``role`` and ``index``, to free the index for a local process.

    The run's service, if it holds the lock of the index, releases the lock in seconds.

    Raises:
        RunError: A record is damaged or cannot be removed.
    """
    for record in read_mirrors(run):
        if (record.role, record.index) == (role, index):
            with run.lock(_LOCK, wait=True):
                forget_mirror(run, record.mirror)


def forget_mirror(run: RunDirectory, mirror: str) -> None:
    """Removes a mirror's record. Does nothing if there is none.

    Raises:
        RunError: The record cannot be removed.
    """
    path = _path(run, mirror)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _path(run: RunDirectory, mirror: str) -> Path:
    return run.path / "mirrors" / f"{mirror}.json"
