"""A store of experience with tables for any number of writers and samplers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tengen.closable import Closable
from tengen.config import check
from tengen.errors import RunError
from tengen.store.backend import StoreBackend, TableEntry, find_table
from tengen.store.client import RemoteBackend
from tengen.store.configs.store_config import StoreConfig
from tengen.store.configs.table_config import check_kind
from tengen.store.folders import DiskFolder
from tengen.store.lending import Lending
from tengen.store.local_backend import LocalBackend
from tengen.store.messages import STORE
from tengen.store.server import HostServer, NetServer
from tengen.store.step_writer import StepWriter, open_writer
from tengen.store.table import Table
from tengen.store.waiting import StoreTimeout, timeout_of
from tengen.transport import NetDoor

# Maximum wait of one request in seconds; Python handles signals between requests.
_SLICE_S = 0.2


class Store(Closable):
    """Tables that share one memory budget, for clients in any process or host.

    ::

        table = TableConfig(name="replay", columns={...})
        store = Store(StoreConfig.of([table], memory_bytes=1 << 30))
        replay = store.table("replay")
        replay.insert("actor-0", 0, {"observation": observation, "reward": 1.0})
        batch = replay.sample(32)
        batch.ack()

    With a ``directory`` in the config, other processes of the host can use the store
    with `Store.connect`; with ``listen``, processes on other hosts can too. `close`
    ends the store. If the process is killed, the next process that creates a store with
    the same directory and columns restores all contents, including batches on loan, and
    clients on this host reconnect automatically.

    Args:
        config: The store's config.
        token: The token that clients of ``config.listen`` must send; None: the value of
            ``TENGEN_STORE_TOKEN`` in the environment, if it is set. Required, with a
            certificate, if other hosts can reach the address.

    Raises:
        UsageError: A table is invalid, memory or disk is too small, a folder belongs to
            another store, or the address cannot be used or requires a token and a
            certificate.

    Attributes:
        differences: One line for each setting that differs from the ended store from
            which this store resumes. The new setting applies.
    """

    _address: str | None

    def __init__(self, config: StoreConfig, *, token: str | None = None) -> None:
        check_kind("config", config, StoreConfig)
        config.check_ready()
        if config.disk_directory is not None:
            disk = os.path.abspath(config.disk_directory)
            config = replace(config, disk_directory=disk)
        self._servers: list[HostServer | NetServer] = []
        self._disk: DiskFolder | None = None
        self.differences: list[str] = []
        # Check `listen` before a folder is locked and its data is restored.
        listener = None
        if config.listen is not None:
            door = NetDoor(
                listen=config.listen,
                token=token,
                certificate_file=_path(config.certificate_file),
                key_file=_path(config.key_file),
            )
            listener = door.open(STORE)
        try:
            backend = self._make(config)
            self._start(backend)
            if listener is not None:
                self._servers.append(NetServer(backend, listener))
                self._address = listener.address
        except BaseException:
            if listener is not None:
                listener.close()
            self._end_servers(is_kept=True)
            raise

    @classmethod
    def connect(
        cls,
        address: str | os.PathLike[str],
        *,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        fingerprint: str | None = None,
        patience_s: float = 30.0,
    ) -> Store:
        """Connects to the store of another process.

        Args:
            address: The folder of a store on this host, or ``tcp://HOST:PORT`` of a
                store on any host. See `docs/reference/store_net.md`.
            token: For ``tcp``, the store's token; None: the value of
                ``TENGEN_STORE_TOKEN`` in the environment, if it is set.
            ca_file: For ``tcp``, PEM file of the authority that signed the store's
                certificate.
            fingerprint: For ``tcp``, SHA-256 of the store's certificate in hex, instead
                of ``ca_file``.
            patience_s: For a folder, the time for which all calls, including this one,
                wait for the next server of a killed store before they raise. Calls wait
                as long, but at least 2 s, for the reply of a server that hangs, or for
                their ``timeout_s`` if that is shorter. Over ``tcp``, calls wait 10 s.

        Raises:
            RunError: No server responds at ``address``, or its certificate is not
                trusted.
            UsageError: The store's protocol version differs, or it rejects the token.
        """
        check(
            isinstance(address, str | os.PathLike),
            "address",
            repr(address),
            "must be one store's folder or tcp://HOST:PORT; pass one at a time",
        )
        store = cls.__new__(cls)
        store._servers = []
        store._disk = None
        store.differences = []
        store._start(
            RemoteBackend(address, patience_s, token, _path(ca_file), fingerprint)
        )
        return store

    def _make(self, config: StoreConfig) -> LocalBackend:
        """Creates the store, and its server for this host if it has a directory."""
        if config.directory is not None:
            server = HostServer(config)
            self._servers.append(server)
            self.differences = server.differences
            return server.backend
        changed: list[int] = []
        if config.disk_bytes:
            self._disk = DiskFolder(config, goes_on=False)
            self.differences, changed = self._disk.differences
        backend = LocalBackend(config)
        backend.keep(False, changed)
        if self._disk is not None:
            self._disk.begin()
        self.differences += backend.differences
        return backend

    def _start(self, backend: StoreBackend) -> None:
        self._backend = backend
        self._process = os.getpid()
        self._address = None
        self._entries = {entry.config.name: entry for entry in backend.tables()}
        self._senders = Lending(partial(_open_sender, backend, self._entries))
        self._tables = {
            name: Table(backend, entry, self._senders)
            for name, entry in self._entries.items()
        }

    @property
    def address(self) -> str | None:
        """``tcp://HOST:PORT`` of a store created with ``listen``, otherwise None."""
        return self._address

    def table(self, name: str) -> Table:
        """Returns the table called ``name``.

        Raises:
            UsageError: There is no table with this name.
        """
        return find_table(self._tables, name)

    def writer(
        self, name: str, table: str, *, max_item_steps: int | None = None
    ) -> StepWriter:
        """Returns a writer of steps, for one thread.

        Args:
            name: The writer's name, at most 256 bytes. Only one client at a time may
                use the name. Sequence numbers continue those of the last writer with
                this name, if it is among the 65,536 most recently closed names.
            table: Name of a table with the columns of the steps. The writer may insert
                into every table with the same columns.
            max_item_steps: The maximum number of steps appended before the last insert
                that an item may contain, in addition to all later steps. None for the
                largest ``num_steps`` of these tables.

        Raises:
            UsageError: Another client uses the name.
        """
        return open_writer(self._backend, self._entries, name, table, max_item_steps)

    def describe(self) -> dict[str, Any]:
        """Returns the state of the store as JSON values.

        Keys: ``tables``, the results of `Table.describe` by table name; ``sessions``,
            one line for each writer and sampler of another process, with its state;
            ``checkpoints``, with the ``durability``, and ``age_s``, the seconds since
            the last checkpoint began, None before the first checkpoint;
            ``room``, with the budgets ``memory_bytes`` and ``disk_bytes``, and the
            bytes that steps use, ``memory_used_bytes`` and ``disk_used_bytes``;
            ``replicas``, with the ``name`` of each replica and ``behind_s``, the
            seconds of changes that the loss of this host would lose, None for a replica
            without data.
        """
        checkpoints = self._backend.command("checkpoints", {})
        tables = {name: table.describe() for name, table in self._tables.items()}
        sessions = self._backend.command("sessions", {})
        return {
            "tables": tables,
            "sessions": sessions,
            "checkpoints": checkpoints,
            "room": self._backend.command("room", {}),
            "replicas": self._backend.command("replicas", {}),
        }

    def flush(self, timeout_s: float | None = None) -> None:
        """Blocks until every `Table.insert` of this client has taken effect.

        Args:
            timeout_s: Maximum wait in seconds per sender; None for no limit.

        Raises:
            UsageError: An insert was rejected.
            StoreTimeout: A rate limiter still makes an insert wait.
        """
        timeout_s = timeout_of(timeout_s)
        self._senders.for_each(lambda sender: sender.flush(timeout_s), timeout_s)

    def checkpoint(self, timeout_s: float | None = None) -> None:
        """Writes a checkpoint, so that the current contents survive loss of the host.

        Blocks until the checkpoint is durable; other calls are not blocked. Data in the
        last checkpoint is not written again. Unflushed inserts may be missing.

        Args:
            timeout_s: Maximum wait in seconds; None for no limit.

        Raises:
            UsageError: The store was created without ``durability``.
            StoreTimeout: The checkpoint is not complete yet. The store still writes it.
            RunError: A write to the disk failed, or the store has ended.
        """
        timeout_s = timeout_of(timeout_s)
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        number = self._backend.command("begin_checkpoint", {}, timeout_s)
        while True:
            left_s = max(0.0, end - time.monotonic())
            arguments = {"number": number, "timeout_s": min(left_s, _SLICE_S)}
            answer_s = None if timeout_s is None else left_s
            is_made = self._backend.command("wait_checkpoint", arguments, answer_s)
            if is_made:
                return
            if left_s == 0.0:
                raise StoreTimeout(f"checkpoint was not done within {timeout_s:g} s")
            if is_made is None:
                # The store was restarted, so its checkpoint numbers start again.
                number = self._backend.command("begin_checkpoint", {}, answer_s)

    def close(self) -> None:
        """Closes this client, and the store if this object created it. Idempotent.

        Waiting calls of other threads raise UsageError. Does nothing in a process that
        was forked after the store was created or connected.

        With ``durability``, the store rejects further inserts and writes a last
        checkpoint. If the checkpoint fails, the folders remain; free some space, and
        call `close` again.

        Raises:
            RunError: The last checkpoint could not be written.
        """
        self._end(is_kept=False)

    def abandon(self) -> None:
        """Closes the store after a failed startup.

        Unlike `close`, keeps a killed store's data in the directory for the next store.
        """
        self._end(is_kept=True)

    def _end(self, is_kept: bool) -> None:
        # In a forked process, all files and sessions still belong to the parent.
        if self._process != os.getpid():
            return
        self._senders.close()
        for table in self._tables.values():
            table.close()
        try:
            self._backend.close()
        except RunError:
            if is_kept:
                self._end_servers(is_kept)
            raise
        self._end_servers(is_kept)

    def _end_servers(self, is_kept: bool) -> None:
        while self._servers:
            server = self._servers.pop()
            if is_kept and isinstance(server, HostServer):
                server.abandon()
            else:
                server.close()
        if self._disk is not None:
            self._disk.end()
            self._disk = None


def _open_sender(
    backend: StoreBackend,
    entries: Mapping[str, TableEntry],
    key: tuple[str, str],
    timeout_s: float | None,
) -> StepWriter:
    """Opens a writer for a sender and a table. Keeps no reference to the `Store`."""
    sender, table = key
    return open_writer(
        backend, entries, f"{sender}@{table}", table, timeout_s=timeout_s
    )


def _path(name: str | os.PathLike[str] | None) -> Path | None:
    return None if name is None else Path(name)
