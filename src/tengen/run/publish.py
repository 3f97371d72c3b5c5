"""Atomic publishing: write a temporary sibling, fsync, rename, fsync the directory.

Crash-safe: whenever the writer is killed, a reader sees the old or the new content,
never a partial write. A temporary file's name contains its host and process, so that
the next writer can detect abandoned files.

For fault injection, code that makes files durable calls ``reach("publish.renamed",
path)`` and the like between its steps. If the environment variable ``TENGEN_FAULT`` is
``POINT:COUNT`` or ``POINT:COUNT:PART`` when this module is imported, the process kills
itself with SIGKILL at the COUNT-th call for POINT with PART in the path. Otherwise the
calls do nothing. Every path of a run has one writer, so PART selects the process:
``checkpoints/`` kills the learner, and ``run.json`` the runner. Only tests set the
variable, for child processes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.errors import (
    DiskFullError,
    RunError,
    TengenError,
    UsageError,
    os_reason,
)

_PREFIX = ".tmp-"
_DENIED = (errno.EACCES, errno.EPERM)
# Distinguishes this process from earlier ones with the same ID (1 in containers).
_TOKEN = secrets.token_hex(4)


def publish_file(
    path: Path, data: bytes, mode: int = 0o666, *, is_durable: bool = True
) -> None:
    """Replaces the content of a file with ``data``. Blocks until it is durable.

    Args:
        path: The file; its folder must exist.
        data: The complete content.
        mode: The file's permissions, before the umask.
        is_durable: Whether the content must survive a power failure. If false, the call
            does not wait for the disk, and after a power failure the file may be empty.

    Raises:
        RunError: The disk is full or the folder cannot be written; the old content
            remains.
    """
    temporary = _temporary(path)
    with _storage(path, temporary):
        with open(
            temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)
        ) as file:
            reach("publish.created", path)
            file.write(data[: len(data) // 2])
            file.flush()
            reach("publish.half_written", path)
            file.write(data[len(data) // 2 :])
            file.flush()
            reach("publish.written", path)
            if is_durable:
                os.fsync(file.fileno())
        reach("publish.synced", path)
        os.replace(temporary, path)
        reach("publish.renamed", path)
        if is_durable:
            _sync(path.parent)
        reach("publish.done", path)


def publish_json(path: Path, value: Any) -> None:
    """Replaces the content of a file with indented JSON. Blocks until it is durable.

    Raises:
        RunError: See ``publish_file``.
    """
    publish_file(path, (json.dumps(value, indent=2) + "\n").encode())


def publish_directory(final: Path, write: Callable[[Path], None]) -> None:
    """Creates the folder ``final`` from a temporary folder that ``write`` fills.

    Blocks until every file is durable. A published folder is immutable.

    Args:
        final: The folder to create. Its parent must exist.
        write: Called once with an empty folder to fill.

    Raises:
        RunError: ``final`` exists or cannot be written, or the disk is full. ``final``
            is neither created nor changed.
    """
    temporary = _temporary(final)
    with _storage(final, temporary):
        _refuse_existing(final)
        temporary.mkdir()
        reach("publish.created", final)
        write(temporary)
        reach("publish.written", final)
        for folder, _, names in os.walk(temporary):
            for name in names:
                _sync(Path(folder) / name)
            _sync(Path(folder))
        reach("publish.synced", final)
        os.rename(temporary, final)
        reach("publish.renamed", final)
        _sync(final.parent)
        reach("publish.done", final)


def move_directory(source: Path, final: Path) -> None:
    """Renames a published folder within a filesystem. Blocks until it is durable.

    Raises:
        RunError: ``source`` does not exist, or ``final`` exists or cannot be written.
    """
    with _storage(final, None):
        _refuse_existing(final)
        os.rename(source, final)
        reach("publish.renamed", final)
        _sync(final.parent)
        _sync(source.parent)
        reach("publish.done", final)


def remove_directory(final: Path) -> None:
    """Removes a published folder: renames it atomically, then removes its files.

    After an incomplete removal, a temporary folder remains for ``remove_leftovers``.
    """
    temporary = _temporary(final)
    with suppress(OSError):
        os.rename(final, temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path, *, of_other_hosts: bool = False) -> int:
    """Removes temporary entries in ``folder`` whose writers on this host are dead.

    Args:
        folder: A folder of the run.
        of_other_hosts: Whether to also remove the entries of other hosts. Requires a
            lock that excludes other writers, because only a writer's own host can tell
            whether the writer is dead.

    Returns:
        The number of removed entries.

    Raises:
        RunError: A temporary entry cannot be removed.
    """
    num_removed = 0
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        if _is_abandoned(path.name, of_other_hosts):
            with _storage(path, None):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            num_removed += 1
    return num_removed


def make_directory(path: Path) -> None:
    """Creates a directory and its parents if they do not exist.

    Raises:
        RunError: The directory cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def check_new_file(name: str, path: Path) -> None:
    """Checks that a user's path can name a file in an existing folder.

    Args:
        name: The argument's name, for the message.
        path: The file.

    Raises:
        UsageError: The file's folder does not exist, or the path is a folder.
    """
    is_file = bool(path.name) and path.parent.is_dir() and not path.is_dir()
    rule = "must be a file in an existing folder; choose one"
    check(is_file, name, path, rule)


def storage_error(path: Path, error: OSError) -> RunError:
    """Returns the RunError that explains why ``path`` could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            f"path ({path}) cannot be written, the disk is full; free some space, and "
            "run the same command again; nothing published is lost"
        )
    if error.errno == errno.EROFS:
        return RunError(
            f"path ({path}) cannot be written, it is mounted read-only; mount it for "
            "writing, or choose another folder"
        )
    if error.errno in _DENIED:
        return RunError(
            f"path ({path}) cannot be written, access is denied; change its "
            "permissions, or choose another folder"
        )
    return RunError(
        f"path ({path}) cannot be written, {os_reason(error)}; check the folder, and "
        "run the same command again"
    )


def first_error(path: Path, error: OSError) -> TengenError:
    """Returns the error for a command's first write, based on ``storage_error``.

    If this process lacks write access, the error is a UsageError, because the command
    has not begun any work.
    """
    told = storage_error(path, error)
    if error.errno in (*_DENIED, errno.EROFS):
        return UsageError(str(told))
    return told


def check_writable(path: Path) -> None:
    """Checks that this process may write or create a folder. Changes nothing.

    Raises:
        UsageError: This process lacks write access, the disk is mounted read-only, or
            the path is not UTF-8, which safetensors and OpenVINO require.
    """
    try:
        folder = path.absolute()
        str(folder).encode()
        while not folder.exists():
            folder = folder.parent
        # Uses an unnamed file if the filesystem supports it, so that none is left over.
        tempfile.TemporaryFile(dir=folder).close()
    except UnicodeEncodeError:
        raise UsageError(
            f"path ({folder}) must be UTF-8; rename its folder, or choose another"
        ) from None
    except OSError as error:
        refused = first_error(path, error)
        if isinstance(refused, UsageError):
            raise refused from error
        # The actual write reports other errors, such as a full disk.


@contextmanager
def _storage(path: Path, temporary: Path | None) -> Iterator[None]:
    """Converts OSError to RunError, and removes ``temporary`` after any failure."""
    try:
        yield
    except BaseException as error:
        if temporary is not None and temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        elif temporary is not None:
            # The removal may fail for the same reason as the write.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error(path, error) from error
        raise


def _temporary(path: Path) -> Path:
    owner = f"{_host()}-{os.getpid()}-{_TOKEN}"
    return path.with_name(f"{_PREFIX}{owner}-{secrets.token_hex(2)}-{path.name}")


def _host() -> str:
    return socket.gethostname().replace("-", "_")


def _is_abandoned(name: str, of_other_hosts: bool) -> bool:
    owner = re.match(rf"{_PREFIX}([^-]+)-(\d+)-(\w+)-", name)
    if owner is None:
        return False
    if owner[1] != _host():
        return of_other_hosts
    pid = int(owner[2])
    if pid == os.getpid():
        return owner[3] != _TOKEN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _refuse_existing(final: Path) -> None:
    if final.exists():
        raise RunError(
            f"path ({final}) exists already and is immutable; use the next number"
        )


def sync_directory(path: Path) -> None:
    """Makes the entries of a folder durable. Blocks.

    Raises:
        OSError: The folder cannot be opened or synced.
    """
    _sync(path)


def _sync(path: Path) -> None:
    """Makes the content of a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _armed(setting: str) -> tuple[str, int, str]:
    point, count, part = (*setting.split(":", 2), "", "")[:3]
    return point, int(count or 1), part


_point, _remaining, _part = _armed(os.environ.get("TENGEN_FAULT", ""))


def reach(point: str, path: Path) -> None:
    """Kills the process if a test armed ``point`` for ``path``; else does nothing.

    Args:
        point: Name of the step that was just completed.
        path: The final path of the file or folder that is being published.
    """
    global _remaining
    if point != _point or _part not in str(path):
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
