"""A folder that one process at a time has, until its end or death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tengen.errors import UsageError, os_reason

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = "lock"
# Those of this process. The lock keeps other processes out, and no second one of its
# own; and the first that closed the file would let all in.
_claimed: set[Path] = set()


class FolderLock:
    """Has a folder of a store for this process until `leave`, or the process's end.

    Args:
        name: The option that names the folder, for errors.
        directory: The folder; made when absent.
        own: What names of a store's files begin with.

    Raises:
        UsageError: It holds other things, is another store's, or cannot be made.
    """

    def __init__(self, name: str, directory: Path, own: tuple[str, ...]) -> None:
        # Whatever links lead there, a folder is one.
        self._path = Path(os.path.realpath(directory))
        self._descriptor: int | None = None  # while the folder is this one's
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            names = [path.name for path in self._path.iterdir()]
            if not all(one.startswith((*own, LOCK_NAME)) for one in names):
                raise UsageError(
                    f"{name} ({directory}) must be new, or a store's; choose another"
                )
            if self._path in _claimed:
                raise _running(name, directory)
            descriptor = os.open(self._path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(
                f"{name} ({directory}) cannot be made: {os_reason(error)}; choose "
                f"another"
            ) from error
        try:
            # Not flock: children that a killed store forked would hold it on.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise _running(name, directory) from None
        _claimed.add(self._path)
        self._descriptor = descriptor

    def leave(self) -> None:
        """Lets the next store have the folder. Idempotent."""
        if self._descriptor is not None:
            # Once: the path, and the number, may be another's from then on.
            descriptor, self._descriptor = self._descriptor, None
            _claimed.remove(self._path)
            os.close(descriptor)


def _running(name: str, directory: Path) -> UsageError:
    return UsageError(
        f"{name} ({directory}) is a running store's; connect to it, or choose another"
    )
