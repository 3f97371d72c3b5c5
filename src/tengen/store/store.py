"""A store of experience: tables that any number of writers and samplers share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tengen.config import check, check_whole
from tengen.store.backend import StoreBackend, TableEntry, find_table
from tengen.store.checkpoint import make_checkpoint
from tengen.store.client import RemoteBackend
from tengen.store.closable import Closable
from tengen.store.configs.disk_config import DiskConfig
from tengen.store.configs.table_config import TableConfig, check_kind
from tengen.store.folders.disk_folder import DiskFolder
from tengen.store.lending import Lending
from tengen.store.local_backend import LocalBackend
from tengen.store.messages import STORE
from tengen.store.server import HostServer, NetServer
from tengen.store.shards import Shards
from tengen.store.step_writer import StepWriter, open_writer
from tengen.store.table import Table
from tengen.store.waiting import timeout_of
from tengen.transport import listen_on

__all__ = ["Store"]


class Store(Closable):
    """Tables within one budget of memory, for this process, this host or others.

    ::

        store = Store([TableConfig(name="replay", columns={...})], memory_bytes=1 << 30)
        replay = store.table("replay")
        replay.insert("actor-0", 0, {"observation": observation, "reward": 1.0})
        batch = replay.sample(32)
        batch.ack()

    With a ``directory`` other processes of the host join in by ``Store.connect``, with
    ``listen`` those of other hosts too. The store ends with ``close``. Where its
    process is killed, the next one that makes it with the same directory and columns
    goes on with what it held, down to the batches on loan, and its clients of the host
    come back by themselves.

    Args:
        tables: What it holds.
        memory_bytes: For all steps of all tables.
        seed: Of the draws.
        directory: A new folder in a memory file system, such as
            ``/dev/shm/experience``; None: no other process maps the steps.
        listen: ``HOST:PORT`` to listen on, port 0 for a free one; None: on none.
        token: What clients by ``listen`` must know; None: that of the environment's
            ``TENGEN_STORE_TOKEN``, if it is set. Needed, with a certificate, where
            others than this host reach the address.
        certificate_file: PEM, with which such clients are spoken to by TLS.
        key_file: PEM, its key.
        disk_bytes: For steps that memory does not hold; 0: it holds all.
        disk_directory: A folder on a disk for them; removed by ``close``, unless there
            is ``durability``.
        on_damage: Where a row of it cannot be read: ``skip`` removes the items that
            have it and draws others, ``refuse`` raises in whoever draws them.
        durability: What the next store with that folder goes on with when the host was
            lost, or the store was closed: ``none``, nothing; ``checkpoint``, what was
            there when `checkpoint` was last called; ``async``, what was there
            ``durability_ms`` before, about; ``sync``, that, and all that a writer's
            ``flush`` has returned for.
        durability_ms: Milliseconds, above 0.

    Raises:
        UsageError: A table is refused, a budget is too small, a folder is another
            store's, or the address cannot be used or is not safe.

    Attributes:
        differences: A line for each setting that is not what it was when the store
            ended that this one goes on with; the new one holds.
    """

    _address: str | None

    def __init__(
        self,
        tables: Sequence[TableConfig],
        *,
        memory_bytes: int = 1 << 30,
        seed: int = 0,
        directory: str | os.PathLike[str] | None = None,
        listen: str | None = None,
        token: str | None = None,
        certificate_file: str | os.PathLike[str] | None = None,
        key_file: str | os.PathLike[str] | None = None,
        disk_bytes: int = 0,
        disk_directory: str | os.PathLike[str] | None = None,
        on_damage: str = "skip",
        durability: str = "none",
        durability_ms: float = 100.0,
    ) -> None:
        check(
            not isinstance(tables, TableConfig) and len(tables) > 0,
            "tables",
            tables,
            "must be a list of at least one; list what the store holds",
        )
        for table in tables:
            check_kind("tables", table, TableConfig)
        check_whole("memory_bytes", memory_bytes, 1, 2**62)
        check_whole("disk_bytes", disk_bytes, 0, 2**62)
        check_whole("seed", seed, 0, 2**64 - 1)
        self._servers: list[HostServer | NetServer] = []
        self._disk: DiskFolder | None = None
        self.differences: list[str] = []
        disk = DiskConfig.of(
            disk_bytes, disk_directory, on_damage, durability, durability_ms
        )
        # What can be refused is, before a folder is taken and gone on with.
        listener = None
        if listen is not None:
            listener = listen_on(
                STORE, listen, token, _path(certificate_file), _path(key_file)
            )
        try:
            backend = self._make(tables, memory_bytes, seed, directory, disk)
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
        address: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        token: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        fingerprint: str | None = None,
        patience_s: float = 30.0,
    ) -> Store:
        """Joins the store of another process.

        Args:
            address: The folder of a store of this host, ``tcp://HOST:PORT`` of any,
                or a list of them: the shards of one store, in the same order for
                every client. See `docs/reference/store_net.md`.
            token: For ``tcp``, what the store wants to be told; None: that of the
                environment's ``TENGEN_STORE_TOKEN``, if it is set.
            ca_file: For ``tcp``, PEM of who vouches for the store's certificate.
            fingerprint: For ``tcp``, SHA-256 of its certificate in hex, instead.
            patience_s: For a folder, how long calls, this one too, wait for another
                server of a store that was killed; then they raise. So long, and 2 s at
                least, they wait for the answer of one that stands still, but those
                that have a ``timeout_s`` for no longer than that; over ``tcp`` 10 s.

        Raises:
            RunError: Nobody answers there, or it is not the store that is trusted.
            UsageError: It is of another version, or refuses the token.
        """

        def backend_of(one: str | os.PathLike[str]) -> StoreBackend:
            return RemoteBackend(one, patience_s, token, _path(ca_file), fingerprint)

        store = cls.__new__(cls)
        store._servers = []
        store._disk = None
        store.differences = []
        if isinstance(address, str | os.PathLike):
            store._start(backend_of(address))
        else:
            store._start(
                Shards([(os.fspath(one), partial(backend_of, one)) for one in address])
            )
        return store

    def _make(
        self,
        tables: Sequence[TableConfig],
        memory_bytes: int,
        seed: int,
        directory: str | os.PathLike[str] | None,
        disk: DiskConfig | None,
    ) -> LocalBackend:
        """Makes the store of this process, and what lets this host's others in."""
        if directory is not None:
            server = HostServer(list(tables), memory_bytes, seed, Path(directory), disk)
            self._servers.append(server)
            self.differences = server.differences
            return server.backend
        changed: list[int] = []
        if disk is not None:
            self._disk = DiskFolder(disk, tables, memory_bytes, goes_on=False)
            self.differences, changed = self._disk.differences
        backend = LocalBackend(list(tables), memory_bytes, seed, disk=disk)
        backend.keep(False, changed)
        if self._disk is not None:
            self._disk.begin()
        self.differences += backend.differences
        return backend

    def _start(self, backend: StoreBackend) -> None:
        self._backend = backend
        self._address = None
        self._entries = {entry.config.name: entry for entry in backend.tables()}
        self._senders = Lending(partial(_open_sender, backend, self._entries))
        self._tables = {
            name: Table(backend, entry, self._senders)
            for name, entry in self._entries.items()
        }

    @property
    def address(self) -> str | None:
        """Where a store that was made with ``listen`` is: ``tcp://HOST:PORT``."""
        return self._address

    @property
    def missing(self) -> dict[str, float]:
        """The shards that do not answer, each with its share of the items, 0 to 1."""
        return self._backend.missing() if isinstance(self._backend, Shards) else {}

    def table(self, name: str) -> Table:
        """Returns a table.

        Raises:
            UsageError: There is none of that name.
        """
        return find_table(self._tables, name)

    def writer(
        self, name: str, table: str, *, max_item_steps: int | None = None
    ) -> StepWriter:
        """Returns a writer of steps, for one thread.

        Args:
            name: The writer's, one client at a time; numbers of items go on where the
                last of that name ended.
            table: Whose columns the steps have; items may go to every table with the
                same columns.
            max_item_steps: Steps before the last insert that items may still have;
                None: the largest ``num_steps`` of those tables.

        Raises:
            UsageError: Another client has the name.
        """
        return open_writer(self._backend, self._entries, name, table, max_item_steps)

    def describe(self) -> dict[str, Any]:
        """Returns what the store holds and who waits, as JSON values.

        Keys: ``tables``, by name what `Table.describe` returns; ``sessions``, a line
        for each writer and sampler of another process: what it is, and what it waits
        for; ``checkpoints``, the ``durability``, and ``age_s``, how long ago the last
        one began, None where there was none; of shards a list of them;
        ``replicas``, of each its ``name`` and ``behind_s``, how many seconds of what
        happened are lost where this host is lost now, None where it has nothing yet.
        """
        checkpoints = self._backend.command("checkpoints", {})
        tables = {name: table.describe() for name, table in self._tables.items()}
        sessions = self._backend.command("sessions", {})
        return {
            "tables": tables,
            "sessions": sessions,
            "checkpoints": checkpoints,
            "replicas": self._backend.command("replicas", {}),
        }

    def flush(self, timeout_s: float | None = None) -> None:
        """Blocks until every `Table.insert` of this client has taken effect.

        Args:
            timeout_s: At most so long for each sender; None: as long as it takes.

        Raises:
            UsageError: One of them was refused.
            StoreTimeout: A table still waits for samples.
        """
        timeout_s = timeout_of(timeout_s)
        self._senders.for_each(lambda sender: sender.flush(timeout_s), timeout_s)

    def checkpoint(self, timeout_s: float | None = None) -> None:
        """Sees to it that what the store holds now outlives its host.

        Blocks until it is on the disk; everybody else goes on meanwhile. What was there
        at the last checkpoint is not written again. Inserts that were not flushed may
        still be on their way, and missing.

        Args:
            timeout_s: At most so long; None: as long as it takes.

        Raises:
            UsageError: The store is made without ``durability``.
            StoreTimeout: It is not done yet; it goes on.
            RunError: The disk has failed, or the store is gone.
        """
        make_checkpoint(self._backend, timeout_of(timeout_s))

    def close(self) -> None:
        """Ends this client, and with it a store that this process made. Idempotent.

        Calls of other threads that wait for the store end by a UsageError.

        With ``durability`` a store takes nothing any more and makes a last checkpoint.

        Raises:
            RunError: It could not be made.
        """
        self._end(is_kept=False)

    def abandon(self) -> None:
        """Ends a store that cannot be put to use after all, as `close` does.

        But what it went on with, as a killed store had left it in the directory, stays
        there for the next one.
        """
        self._end(is_kept=True)

    def _end(self, is_kept: bool) -> None:
        self._senders.close()
        for table in self._tables.values():
            table.close()
        try:
            self._backend.close()
        finally:
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
    """Opens the writer of a sender and a table; made of no store, which holds it."""
    sender, table = key
    return open_writer(
        backend, entries, f"{sender}@{table}", table, timeout_s=timeout_s
    )


def _path(name: str | os.PathLike[str] | None) -> Path | None:
    return None if name is None else Path(name)
