"""Folders with a server's socket, each locked by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
from pathlib import Path

from tengen.errors import UsageError, os_reason
from tengen.transport.listener import Listener
from tengen.transport.owned import OwnedSocket

LOCK_NAME = "lock"
# Folders locked by this process, which must not be locked again: POSIX locks exclude
# only other processes, and closing any descriptor of a lock file releases the lock.
_claimed: set[Path] = set()
SOCKET_NAME = "socket"
# The maximum length of a socket's path in bytes. Linux allows 107, macOS 103.
_MAX_SOCKET_PATH = 100


class HostFolder:
    """A folder that this process holds exclusively until `leave` or its exit.

    Args:
        service: The name of the service, for error messages.
        directory: The folder; created if missing, accessible only to this user.
        own: Name prefixes of the service's files, except the socket.

    Raises:
        UsageError: A live server holds the folder, it has unrelated files, or another
            user may be able to change it.

    Attributes:
        path: The folder's absolute path.
    """

    def __init__(
        self, service: str, directory: Path, own: tuple[str, ...] = ()
    ) -> None:
        self.path = directory.absolute()
        self._socket_path = self.path / SOCKET_NAME
        if len(os.fsencode(self._socket_path)) > _MAX_SOCKET_PATH:
            raise UsageError(
                f"directory ({directory}) must have at most {_MAX_SOCKET_PATH - 7} "
                f"bytes; choose a shorter one"
            )
        # If the folder cannot be created or read, FolderLock raises the error.
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
            check_own_folder("directory", self.path)
        self._lock = FolderLock(service, "directory", directory, (SOCKET_NAME, *own))

    def listen(self) -> Listener:
        """Creates or replaces the socket in this folder; returns its listener."""
        self._socket_path.unlink(missing_ok=True)
        bound = OwnedSocket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            bound.bind(str(self._socket_path))
            os.chmod(self._socket_path, 0o600)
        except BaseException:
            bound.close()
            raise
        return Listener(bound, str(self.path))

    def remove(self) -> None:
        """Removes the folder. Idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Unlocks the folder and leaves its files for the next server. Idempotent."""
        self._lock.leave()


def check_own_folder(name: str, folder: Path) -> None:
    """Checks that a folder belongs to this user and is not writable by others.

    In ``/dev/shm`` any user can create a folder, but only its owner can replace it.

    Args:
        name: The option that names the folder, for error messages.
        folder: The folder itself, not a link to it.

    Raises:
        UsageError: The path is a link or not a folder, or others own or can write it.
        OSError: The folder does not exist or cannot be examined.
    """
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        found = "a link"
    elif not stat.S_ISDIR(status.st_mode):
        found = "not a folder"
    elif status.st_uid != os.geteuid():
        found = f"of user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"mode {stat.S_IMODE(status.st_mode):03o}"
    else:
        return
    raise UsageError(
        f"{name} ({folder}, {found}) must be a folder of user {os.geteuid()} that only "
        "this user can write; remove it, or choose another"
    )


class FolderLock:
    """An exclusive lock on a service's folder until `leave`, or until the process ends.

    Args:
        service: The name of the service, for error messages.
        name: The option that names the folder, for error messages.
        directory: The folder; created if missing.
        own: Name prefixes of the service's files.

    Raises:
        UsageError: The folder has unrelated files, belongs to a running server, or
            cannot be created.
    """

    def __init__(
        self, service: str, name: str, directory: Path, own: tuple[str, ...]
    ) -> None:
        self._descriptor: int | None = None  # set while the lock is held
        # Resolve links, because ``_claimed`` must have one path per folder.
        self._path = Path(os.path.realpath(directory))
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            names = [path.name for path in self._path.iterdir()]
            if not all(one.startswith((*own, LOCK_NAME)) for one in names):
                raise UsageError(
                    f"{name} ({directory}) must be new, or that of {_a(service)}; "
                    "choose another"
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
            # Not flock, because forked children of a killed server would keep the lock.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise _running(service, name, directory) from None
        _claimed.add(self._path)
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Releases the lock. Idempotent."""
        if self._descriptor is not None:
            # Close the lock only once, because its descriptor may be reused afterwards.
            descriptor, self._descriptor = self._descriptor, None
            _claimed.remove(self._path)
            os.close(descriptor)


def _running(service: str, name: str, directory: Path) -> UsageError:
    return UsageError(
        f"{name} ({directory}) is in use by a running {service}; connect to it, or "
        "choose another"
    )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
