"""One writer at a time: an advisory lock that dies with its process.

The lock is ``flock`` on a file that holds the owner's process number. The kernel lets
go of it when the process ends, however it ends, so that no lock is ever stale. POSIX
only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from types import TracebackType

from tengen.errors import UsageError
from tengen.run.publish import storage_error

__all__ = ["WriterLock", "lock_holder"]

_LOOK_S = 0.2
"""Far longer than a look at a lock takes."""


class WriterLock:
    """Holds a lock file until ``release``, the end of ``with`` or of the process.

    Args:
        path: The lock file, made when absent.
        guarded: What only its holder may change, for the message.
        wait: Whether to wait for whoever holds it.

    Raises:
        UsageError: Another process holds it; the message names the process.
        RunError: The file cannot be written.
    """

    def __init__(self, path: Path, guarded: Path, *, wait: bool = False) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            _take(self._descriptor, wait)
        except BlockingIOError:
            owner = _owner(self._descriptor)
            os.close(self._descriptor)
            raise UsageError(
                f"folder ({guarded}) is in use by process {owner}; "
                f"wait for it, stop it with tengen stop, or choose another --out"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()} on {_host()}\n".encode(), 0)

    def release(self) -> None:
        """Lets the next writer in. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> WriterLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _take(descriptor: int, wait: bool) -> None:
    """Takes the lock; who only looks at it, in ``lock_holder``, holds it no longer."""
    end_s = time.monotonic() + _LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            if time.monotonic() > end_s:
                raise
            time.sleep(_LOOK_S / 20)
        else:
            return


def lock_holder(path: Path) -> str | None:
    """Returns who holds the lock file, ``PID on HOST``, or None when it is free."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(descriptor)
    finally:
        os.close(descriptor)
    return None


def _owner(descriptor: int) -> str:
    """Returns who wrote the lock file last, ``PID on HOST``."""
    text = os.pread(descriptor, 200, 0).decode(errors="replace")
    return " ".join(text.split()) or "unknown"


def _host() -> str:
    return socket.gethostname()
