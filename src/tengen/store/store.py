"""A store of experience: tables that any number of writers and samplers share."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import UsageError, did_you_mean
from tengen.store.backend import LocalBackend, StoreBackend, TableEntry
from tengen.store.batch import Batch
from tengen.store.client import HostConnection
from tengen.store.sampler import Sampler
from tengen.store.server import HostServer
from tengen.store.step_writer import StepWriter
from tengen.store.table_config import RateLimits, TableConfig
from tengen.store.waiting import refused

__all__ = ["Store", "Table"]


class Table:
    """A table of a store. Thread-safe; made by `Store.table`."""

    def __init__(self, backend: StoreBackend, entry: TableEntry, store: Store) -> None:
        self._backend = backend
        self._entry = entry
        self._store = store
        self._samplers: dict[int, Sampler] = {}
        self._lock = threading.Lock()

    @property
    def config(self) -> TableConfig:
        """What the table was made from."""
        return self._entry.config

    def insert(
        self,
        writer: str,
        sequence: int,
        columns: Mapping[str, Any],
        priority: NDArray[np.float64] | float = 1.0,
        *,
        version: int = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Adds one item, or N along a leading axis. `writer` is for overlapping items.

        Args:
            writer: Who sends it, one sender at a time.
            sequence: The sender's own increasing number for it, for N items of the
                first; what was inserted before is left out.
            columns: Of one step each, or ``[N, ...]``; of tables with T steps a
                sample ``[T, ...]`` or ``[N * T, ...]``.
            priority: Finite, 0 or more; one for all or ``[N]``.
            version: Of the model that made the item.
            timeout_s: The longest wait for the limiter or for memory.

        Raises:
            UsageError: The columns are not the table's, or the item is refused.
            StoreTimeout: The table still waits for samples.
        """
        with self._lock:
            sender = self._store.sender(writer, self)
            before = sender.num_steps
            sender.append(columns, timeout_s)
            num_steps = self.config.num_steps
            count, rest = divmod(sender.num_steps - before, num_steps)
            if rest:
                raise UsageError(
                    f"columns ({sender.num_steps - before} steps) must be items of "
                    f"{num_steps} steps each; send whole items"
                )
            sender.insert_each(
                self.config.name,
                count,
                num_steps,
                priority,
                sequence=sequence,
                version=version,
                timeout_s=timeout_s,
            )

    def sample(self, num_samples: int, timeout_s: float | None = None) -> Batch:
        """Draws a batch now. Blocks while the limiter says so.

        For a learner's loop use `sampler`, which draws ahead.

        Args:
            num_samples: B, at least 1.
            timeout_s: The longest wait; None: for ever.

        Returns:
            Columns ``[B, ...]``, or ``[B, T, ...]`` for T steps a sample.
        """
        with self._lock:
            if num_samples not in self._samplers:
                self._samplers[num_samples] = self.sampler(num_samples, num_ahead=0)
            return self._samplers[num_samples].sample(timeout_s)

    def sampler(self, num_samples: int, *, num_ahead: int = 2) -> Sampler:
        """Returns a sampler of batches, for one thread.

        Args:
            num_samples: B, at least 1.
            num_ahead: Batches drawn before they are asked for, where the store is in
                another process. Their priorities are as old.

        Raises:
            UsageError: A batch so large is refused.
        """
        try:
            core = self._backend.open_sampler(self._entry, num_samples, num_ahead)
        except _core.CoreError as error:
            raise refused(error) from error
        return Sampler(core, self.config.name)

    def set_priorities(
        self, keys: NDArray[np.int64], priorities: NDArray[np.float64]
    ) -> None:
        """Changes priorities, ``[N]`` each; keys that are gone are left out."""
        self._command(
            "set_priorities",
            keys=np.asarray(keys).tolist(),
            priorities=np.asarray(priorities, np.float64).tolist(),
        )

    def erase(self, keys: NDArray[np.int64]) -> int:
        """Removes items, and returns how many there were."""
        return int(self._command("erase", keys=np.asarray(keys).tolist()))

    def set_limits(self, limits: RateLimits) -> None:
        """Changes the limiter; what was inserted and sampled still counts."""
        self._command("set_limits", limits=dataclasses.asdict(limits))

    def set_capacity(self, max_items: int, max_bytes: int | None = None) -> None:
        """Changes the capacity; items that are too many leave at once."""
        self._command("set_capacity", max_items=max_items, max_bytes=max_bytes)

    def set_version(self, version: int) -> None:
        """Says which model is the newest: items too far behind it leave."""
        self._command("set_version", version=version)

    def describe(self) -> dict[str, Any]:
        """Returns what the table holds and waits for, by name."""
        return dict(self._command("describe"))

    def _command(self, name: str, **arguments: Any) -> Any:
        return self._backend.command(name, {"table": self._entry.number, **arguments})


class Store:
    """Tables within one budget of memory, for this process or for all of this host.

    ::

        store = Store([TableConfig(name="replay", columns={...})], memory_bytes=1 << 30)
        replay = store.table("replay")
        replay.insert("actor-0", 0, {"observation": observation, "reward": 1.0})
        batch = replay.sample(32)
        batch.ack()

    With a ``directory`` other processes of the host join in by ``Store.connect``; the
    store lives as long as the process that made it.

    Args:
        tables: What it holds.
        memory_bytes: For all steps of all tables.
        seed: Of the draws.
        directory: A new folder in a memory file system, such as
            ``/dev/shm/experience``; None: for this process alone.

    Raises:
        UsageError: A table is refused, the budget is too small, or the folder is
            another store's.
    """

    def __init__(
        self,
        tables: Sequence[TableConfig],
        *,
        memory_bytes: int = 1 << 30,
        seed: int = 0,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self._server: HostServer | None = None
        if directory is None:
            self._start(LocalBackend(list(tables), memory_bytes, seed))
        else:
            server = HostServer(list(tables), memory_bytes, seed, Path(directory))
            self._server = server
            self._start(server.backend)

    @classmethod
    def connect(cls, directory: str | os.PathLike[str]) -> Store:
        """Joins the store of another process of this host.

        Raises:
            RunError: Nobody answers there.
            UsageError: It is of another version.
        """
        store = cls.__new__(cls)
        store._server = None
        store._start(HostConnection(Path(directory)))
        return store

    def _start(self, backend: StoreBackend) -> None:
        self._backend = backend
        self._entries = {entry.config.name: entry for entry in backend.tables()}
        self._senders: dict[str, StepWriter] = {}
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    @property
    def table_names(self) -> list[str]:
        """The tables' names."""
        return list(self._entries)

    def table(self, name: str) -> Table:
        """Returns a table.

        Raises:
            UsageError: There is none of that name.
        """
        if name not in self._entries:
            raise UsageError(
                f"table ({name}) must be one of the store's; "
                f"{did_you_mean(name, self._entries)}"
            )
        return self._tables.setdefault(
            name, Table(self._backend, self._entries[name], self)
        )

    def writer(self, name: str, table: str, *, max_item_steps: int = 1) -> StepWriter:
        """Returns a writer of steps, for one thread.

        Args:
            name: The writer's, one client at a time; numbers of items go on where the
                last of that name ended.
            table: Whose columns the steps have; items may go to every table with the
                same columns.
            max_item_steps: Steps before the last insert that items may still have.

        Raises:
            UsageError: Another client has the name.
        """
        entry = self.table(table)._entry
        shared = {
            other: one for other, one in self._entries.items() if one.pool == entry.pool
        }
        try:
            core = self._backend.open_writer(name, entry, max_item_steps)
        except _core.CoreError as error:
            raise refused(error) from error
        return StepWriter(core, shared)

    def sender(self, name: str, table: Table) -> StepWriter:
        """Returns the writer behind `Table.insert`, made when first asked for."""
        whole = f"{name}@{table.config.name}"
        with self._lock:
            if whole not in self._senders:
                self._senders[whole] = self.writer(
                    whole, table.config.name, max_item_steps=table.config.num_steps
                )
            return self._senders[whole]

    def close(self) -> None:
        """Ends this client, and with it a store that this process made. Idempotent."""
        for sender in self._senders.values():
            sender.close()
        self._senders.clear()
        self._tables.clear()
        self._backend.close()
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
