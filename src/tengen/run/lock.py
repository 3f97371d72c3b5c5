"""One writer at a time: an advisory lock that dies with its process.

The lock is ``flock`` on a file that holds the owner's process number. The kernel lets
go of it when the process ends, however it ends, so that no lock is ever stale. POSIX
only. Hosts that share a filesystem need one whose locks hold between them, as NFS 4,
Lustre with ``-o flock`` and CephFS have; where they do not, ``check_held`` tells.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from pathlib import Path
from types import TracebackType

from tengen.errors import RunError, UsageError, os_reason
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
        RunError: The file cannot be written, or its filesystem has no locks.
    """

    def __init__(self, path: Path, guarded: Path, *, wait: bool = False) -> None:
        self._path = path
        self._text = f"{os.getpid()} on {_host()} {secrets.token_hex(4)}\n".encode()
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
                f"wait for it, stop it with tengen stop, or name another folder"
            ) from None
        except OSError as error:
            os.close(self._descriptor)
            raise RunError(
                f"lock ({path}) cannot be taken, {os_reason(error)}; use a filesystem "
                f"that has locks, or mount it with them"
            ) from error
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, self._text, 0)
        except OSError as error:
            self.release()
            raise storage_error(path, error) from error

    def check_held(self) -> None:
        """Makes sure that no other process took the lock too.

        Raises:
            RunError: One did: the locks of this filesystem do not hold between hosts.
        """
        try:
            written = self._path.read_bytes()
        except OSError:
            return
        if written != self._text:
            raise RunError(
                f"lock ({self._path}) of this process was taken by "
                f"{_owner_in(written)} too, the filesystem's locks do not hold between "
                f"hosts; mount it with locks, and start this role again"
            )

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
    return _owner_in(os.pread(descriptor, 200, 0))


def _owner_in(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split()[:3]) or "unknown"


def _host() -> str:
    return socket.gethostname()
