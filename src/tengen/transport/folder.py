"""Folders that one process at a time holds, and by which clients find its server."""

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

__all__ = ["LOCK_NAME", "SOCKET_NAME", "FolderLock", "HostFolder", "check_own_folder"]

LOCK_NAME = "lock"
# Folders that this process has. The lock keeps other processes out, but not a second
# holder in this one; and the first holder that closed the file would let all in.
_claimed: set[Path] = set()
SOCKET_NAME = "socket"
# What a socket's address holds on Linux and, with a few bytes less, on macOS.
_MAX_SOCKET_PATH = 100


class HostFolder:
    """Holds a folder for this process until `leave`, or the process's end.

    Args:
        service: Name of the service, for errors.
        directory: The folder; made when absent, for this user alone.
        own: What names of the service's files begin with, beside the socket's.

    Raises:
        UsageError: The folder is a live server's, holds other things, or may be another
            user's.

    Attributes:
        path: Its absolute path.
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
        # A folder that cannot be made or looked at is refused by the lock.
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
            check_own_folder("directory", self.path)
        self._lock = FolderLock(service, "directory", directory, (SOCKET_NAME, *own))

    def listen(self) -> Listener:
        """Returns a socket in the folder, in the place of one that is there."""
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
        """Lets the next server have what lies in the folder. Idempotent."""
        self._lock.leave()


def check_own_folder(name: str, folder: Path) -> None:
    """Refuses a folder that another user may have made, or may change.

    A name below ``/dev/shm`` is anybody's to take; a folder that is this user's there
    can be removed or replaced by nobody else.

    Args:
        name: The option that names the folder, for errors.
        folder: The folder itself; no link to it.

    Raises:
        UsageError: It is a link, no folder, or not this user's alone.
        OSError: It is not there, or cannot be looked at.
    """
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        found = "a link"
    elif not stat.S_ISDIR(status.st_mode):
        found = "no folder"
    elif status.st_uid != os.geteuid():
        found = f"of user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"mode {stat.S_IMODE(status.st_mode):03o}"
    else:
        return
    raise UsageError(
        f"{name} ({folder}, {found}) must be a folder of user {os.geteuid()} that "
        f"nobody else can write; remove it, or choose another"
    )


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
