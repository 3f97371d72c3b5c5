"""A folder that one process at a time has, until its end or death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tengen.errors import UsageError, os_reason

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = "lock"
# Folders that this process has. The lock keeps other processes out, but not a second
# holder in this one; and the first holder that closed the file would let all in.
_claimed: set[Path] = set()


class FolderLock:
    """Has a folder of a service for this process until `leave`, or the process's end.

    Args:
        service: Name of the service, for errors.
        name: The option that names the folder, for errors.
        directory: The folder; made when absent.
        own: What names of the service's files begin with.

    Raises:
        UsageError: It holds other things, is a running server's, or cannot be made.
    """

    def __init__(
        self, service: str, name: str, directory: Path, own: tuple[str, ...]
    ) -> None:
        self._descriptor: int | None = None  # while the folder is this one's
        # Whatever links lead there, a folder is one.
        self._path = Path(os.path.realpath(directory))
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            names = [path.name for path in self._path.iterdir()]
            if not all(one.startswith((*own, LOCK_NAME)) for one in names):
                raise UsageError(
                    f"{name} ({directory}) must be new, or {_a(service)}'s; choose "
                    f"another"
                )
            if self._path in _claimed:
                raise _running(service, name, directory)
            descriptor = os.open(self._path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"{name} ({directory}) cannot be made: {os_reason(error)}; choose "
                f"another"
            ) from error
        try:
            # Not flock: children that a killed server forked would hold it on.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise _running(service, name, directory) from None
        _claimed.add(self._path)
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Lets the next holder have the folder. Idempotent."""
        if self._descriptor is not None:
            # Once: the path, and the number, may be another's from then on.
            descriptor, self._descriptor = self._descriptor, None
            _claimed.remove(self._path)
            os.close(descriptor)


def _running(service: str, name: str, directory: Path) -> UsageError:
    return UsageError(
        f"{name} ({directory}) is a running {service}'s; connect to it, or choose "
        f"another"
    )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
