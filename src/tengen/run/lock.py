"""Advisory file locks, which give one process at a time the right to write.

The lock is ``flock`` on a file that contains the owner's process ID. The kernel
releases it when the process ends for any reason, so locks are never stale. Processes
that the owner forks, for example for environments, do not inherit the lock. POSIX only.
If hosts share a filesystem, its locks must hold between hosts, as with NFS 4, Lustre
with ``-o flock`` and CephFS; ``check_held`` detects if they do not.

``own_files`` keeps forks from inheriting pipes. A forked copy would hide the end of
this process from the process at the other end of the pipe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import secrets
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol

from tengen.errors import RunError, UsageError, os_reason
from tengen.run.publish import storage_error

_RETRY_S = 0.01


class WriterLock:
    """A file lock that is held until ``release``, the end of ``with`` or process exit.

    Args:
        path: The lock file, created if absent.
        guarded: The folder that only the lock's holder may change, for the message.
        wait: Whether to wait until the holder releases the lock.

    Raises:
        UsageError: Another process holds the lock; the message names the process.
        RunError: The lock file cannot be written, or its filesystem has no locks.
    """

    def __init__(self, path: Path, guarded: Path, *, wait: bool = False) -> None:
        self._path = path
        self._text = (
            f"{os.getpid()} on {socket.gethostname()} {secrets.token_hex(4)}\n".encode()
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Import the core here, so that commands that only read locks start fast.
            from tengen import _core

            # Open and own the file in one step, so that no fork between inherits it.
            self._descriptor = _core.open_owned(
                os.fsencode(path), os.O_RDWR | os.O_CREAT, 0o644
            )
            if self._descriptor < 0:
                raise OSError(-self._descriptor, os.strerror(-self._descriptor))
        except OSError as error:
            raise storage_error(path, error) from error
        try:
            _take(self._descriptor, wait)
        except BlockingIOError:
            owner = _owner(self._descriptor)
            self.release()
            raise UsageError(
                f"folder ({guarded}) is in use by process {owner}; wait for it, stop "
                "it with tengen stop, or choose another folder"
            ) from None
        except OSError as error:
            self.release()
            raise RunError(
                f"lock ({path}) cannot be taken, {os_reason(error)}; use a filesystem "
                "with locks, or mount it with them enabled"
            ) from error
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, self._text, 0)
        except OSError as error:
            self.release()
            raise storage_error(path, error) from error

    def check_held(self) -> None:
        """Checks that this process is the only holder of the lock.

        Raises:
            RunError: Another process has taken the lock, because the filesystem's locks
                do not hold between hosts.
        """
        try:
            written = self._path.read_bytes()
        except OSError:
            return
        if written != self._text:
            raise RunError(
                f"lock ({self._path}) of this process was also taken by "
                f"{_owner_in(written)}, so the filesystem's locks do not work between "
                "hosts; mount it with locks enabled, and restart this role"
            )

    def release(self) -> None:
        """Releases the lock. A second call does nothing."""
        if self._descriptor >= 0:
            from tengen import _core

            # Unlock first, so that a process forked before the close inherits no lock.
            # Do not close with _core, which would block forks during a slow close.
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            _core.disown_descriptor(self._descriptor)
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
    """Acquires the lock; retries while ``lock_holder`` of another process shares it.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            # Succeeds if only ``lock_holder`` shares the lock; otherwise raises.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            time.sleep(_RETRY_S * (1.0 + random.random()))
        else:
            return


def lock_holder(path: Path) -> str | None:
    """Returns the holder of the lock file, ``PID on HOST``, or None if it is free."""
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
    """Returns the last holder that wrote the lock file, ``PID on HOST``."""
    return _owner_in(os.pread(descriptor, 200, 0))


def _owner_in(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split()[:3]) or "unknown"


class _Open(Protocol):
    def fileno(self) -> int: ...

    def close(self) -> None: ...


def own_files(*files: _Open) -> None:
    """Prevents future forks, including forks by C code, from inheriting open files.

    A forked copy of a pipe would keep the peer waiting after this process is killed.
    Close each file with ``close_owned``.
    """
    from tengen import _core

    for file in files:
        _core.own_descriptor(file.fileno())


def close_owned(file: _Open) -> None:
    """Closes a file passed to ``own_files``. Idempotent."""
    from tengen import _core

    try:
        descriptor = file.fileno()
    except (OSError, ValueError):
        return
    # Replace the open file before the descriptor is disowned, so that no fork in
    # between inherits the file.
    with contextlib.suppress(OSError):  # too many files are open
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
    _core.disown_descriptor(descriptor)
    file.close()
