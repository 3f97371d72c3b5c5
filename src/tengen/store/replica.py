"""A replica: a folder with a continuously updated copy of a store on another host."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.closable import Closable
from tengen.errors import RunError, UsageError
from tengen.store.folders import OWN_NAMES, read_config, save_config
from tengen.store.messages import STORE
from tengen.transport import Client, FolderLock, NetAddress

_RETRY_S = 1.0
# Timeout for opening a session, for which the store first reads its files.
_OPEN_S = 60.0
# Timeout of other requests. It is short, so that `close` returns soon.
_ANSWER_S = 10.0


class Replica(Closable):
    """Copies a store's checkpoints in a background thread until `close`.

    ::

        with Replica("tcp://10.0.0.5:7070", "/data/replica") as replica:
            replica.wait()

    If the store's host is lost, close the replica and create the store again with the
    replica's folder as the ``disk_directory`` of its config.
    The folder is crash-safe: after the first complete checkpoint, it always has a
    complete checkpoint, from which the next replica in the folder resumes. If the store
    does not respond or the disk is full, the replica retries every second.

    Args:
        address: ``tcp://HOST:PORT`` of a store that has ``durability``.
        folder: A folder on a disk of this host, created if absent.
        name: The replica's name in `Store.describe`; None for this host's name.
        token: The store's token; None: the value of ``TENGEN_STORE_TOKEN`` in the
            environment, if it is set.
        ca_file: PEM file of the authority that signed the store's certificate.
        fingerprint: SHA-256 of the store's certificate in hex, instead of ``ca_file``.
        tell: Called with one line of text that says why the replica waits.

    Raises:
        UsageError: The folder is in use by a store, has unrelated files, or is damaged.
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
        """Blocks until the replica has ended. Returns false if the timeout expires.

        Args:
            timeout_s: Maximum wait in seconds; None for no limit.

        Raises:
            UsageError: The store rejects the replica, or the folder is another store's.
        """
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def describe(self) -> dict[str, Any]:
        """Returns the replica's state as JSON values.

        Keys: ``age_s``, the age of the folder's checkpoint in seconds, None without a
            checkpoint; ``trouble``, the reason why the replica waits, empty while it
            follows the store.
        """
        return {"age_s": self._core.age_s(), "trouble": self._trouble}

    def close(self) -> None:
        """Ends the replication thread. The folder remains. Idempotent."""
        self._ending.set()
        with self._stream_lock:
            _shut_down(self._stream)
        self._thread.join()
        self._lock.leave()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._follow()
                trouble = "store (gone) has ended the replica's session; restart it"
            except (RunError, _core.CoreError) as error:
                # Temporary failures: the store does not respond, or a disk is full.
                trouble = str(error)
            except Exception as error:
                self._failure = error
                return
            self._trouble = trouble
            # Report the same failure only once per checkpoint.
            told = (trouble, self._core.begun_us())
            if not self._ending.is_set() and told != self._told:
                self._tell(trouble)
                self._told = told
            self._ending.wait(_RETRY_S)

    def _follow(self) -> None:
        """Copies checkpoints until the store, the connection or this replica ends."""
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
                self._core.follow(stream.dup().detach())
            finally:
                with self._stream_lock:
                    self._stream = None

    def _adopt(self, made_with: dict[str, Any], is_empty: bool) -> None:
        """Records the store's settings for a store that resumes from this folder."""
        own = read_config(self._folder)
        if not is_empty and own.get("id") != made_with.get("id"):
            raise UsageError(
                f"folder ({self._folder}) must be new or belong to this store, and has "
                "a checkpoint of another store; choose another folder"
            )
        wanted = {**made_with, "disk_directory": str(self._folder)}
        if own != wanted:
            # A RunError of this call is temporary: the disk may have space again later.
            save_config(self._folder, wanted)


def _shut_down(stream: socket.socket | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.shutdown(socket.SHUT_RDWR)
