"""A replica: a folder that is always a little behind a store of another host."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.store.closable import Closable
from tengen.store.folders.disk_folder import OWN_NAMES
from tengen.store.folders.saved_config import read_config, save_config
from tengen.store.messages import STORE
from tengen.transport import Client, FolderLock, NetAddress

__all__ = ["Replica"]

_RETRY_S = 1.0
# The store reads files before it opens a replica's session.
_OPEN_S = 60.0
# Else it answers at once; a replica that closes waits no longer for one that does not.
_ANSWER_S = 10.0


class Replica(Closable):
    """Follows a store by a thread, until `close`.

    ::

        with Replica("tcp://10.0.0.5:7070", "/data/replica") as replica:
            replica.wait()

    Where the store's host is lost, close the replica and make the store with its
    folder: ``Store([...], disk_directory="/data/replica", durability="async", ...)``.
    Whatever instant this process is killed at, the folder has a whole checkpoint once
    it had one; the next replica of the folder goes on with it. While the store does not
    answer, or this disk has no room, it tries again each second.

    Args:
        address: ``tcp://HOST:PORT`` of a store that has ``durability``.
        folder: On a disk of this host; made when absent.
        name: For the store's `describe`; None: this host's name.
        token: What the store wants to be told; None: that of the environment's
            ``TENGEN_STORE_TOKEN``, if it is set.
        ca_file: PEM of who vouches for the store's certificate.
        fingerprint: SHA-256 of its certificate in hex, instead.
        tell: Gets a line when the replica has to wait for something.

    Raises:
        UsageError: The folder is a running store's, holds other things, or is damaged.
    """

    def __init__(
        self,
        address: str,
        folder: str | os.PathLike[str],
        *,
        name: str | None = None,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        fingerprint: str | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._folder = Path(folder).absolute()
        self._name = socket.gethostname() if name is None else name
        self._tell = tell
        self._client = Client(
            STORE,
            str(NetAddress.parse(address)),
            patience_s=_OPEN_S,
            token=token,
            ca_file=None if ca_file is None else Path(ca_file),
            fingerprint=fingerprint,
        )
        self._lock = FolderLock("store", "folder", self._folder, OWN_NAMES)
        try:
            self._core = _core.ReplayReplica(str(self._folder))
        except _core.CoreError as error:
            self._lock.leave()
            raise UsageError(str(error)) from error
        self._ending = threading.Event()
        self._stream: socket.socket | None = None
        self._stream_lock = threading.Lock()
        self._failure: Exception | None = None
        self._trouble = ""
        self._told: object = None
        self._thread = threading.Thread(
            target=self._run, name="store-replica", daemon=True
        )
        self._thread.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Blocks until the replica has ended; whether it has.

        Args:
            timeout_s: At most so long; None: for ever.

        Raises:
            UsageError: The store refuses the replica, or the folder is another's.
        """
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def describe(self) -> dict[str, Any]:
        """Returns JSON values.

        Keys: ``age_s``, how many seconds ago the checkpoint that the folder has began,
        None where it has none; ``trouble``, what the replica waits for, empty where it
        follows the store.
        """
        return {"age_s": self._core.age_s(), "trouble": self._trouble}

    def close(self) -> None:
        """Ends the thread; the folder stays. Idempotent."""
        self._ending.set()
        with self._stream_lock:
            _shut_down(self._stream)
        self._thread.join()
        self._lock.leave()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._follow()
                trouble = "store (gone) has ended the replica's session; start it again"
            except (RunError, _core.CoreError) as error:
                # What passes: the store is away, or it or this disk has no room.
                trouble = str(error)
            except Exception as error:
                self._failure = error
                return
            self._trouble = trouble
            # Once, until there is another checkpoint.
            told = (trouble, self._core.begun_us())
            if not self._ending.is_set() and told != self._told:
                self._tell(trouble)
                self._told = told
            self._ending.wait(_RETRY_S)

    def _follow(self) -> None:
        """Follows the store until it or the connection ends."""
        self._client.ask({"ask": "tables"}, _ANSWER_S)
        stream, made_with = self._client.open({"ask": "replica", "name": self._name})
        with stream:
            self._adopt(made_with, is_empty=self._core.begun_us() is None)
            with self._stream_lock:
                self._stream = stream
                if self._ending.is_set():
                    return
            self._trouble = ""
            try:
                self._core.follow(os.dup(stream.fileno()))
            finally:
                with self._stream_lock:
                    self._stream = None

    def _adopt(self, made_with: dict[str, Any], is_empty: bool) -> None:
        """Notes whose replica the folder is, for the store that is made with it."""
        own = read_config(self._folder)
        if not is_empty and own.get("id") != made_with.get("id"):
            raise UsageError(
                f"folder ({self._folder}) must be new, or this store's; it has a "
                f"checkpoint of another store, choose another"
            )
        wanted = {**made_with, "disk_directory": str(self._folder)}
        if own != wanted:
            save_config(self._folder, wanted)


def _shut_down(stream: socket.socket | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)
