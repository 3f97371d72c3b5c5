"""The backend of a store in this process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen import _core
from tengen.config import check
from tengen.errors import RunError, UsageError, did_you_mean
from tengen.store.backend import TableEntry
from tengen.store.configs.rate_limits import RateLimits
from tengen.store.configs.store_config import StoreConfig

# Maximum time that a request waits for a checkpoint. The client then asks again.
_CHECKPOINT_S = 1.0


class LocalBackend:
    """The backend of a store in this process.

    Args:
        config: The store's config, whose folders must exist.

    Raises:
        UsageError: The config is rejected, or memory or disk is too small for a sample.

    Attributes:
        differences: Differences from the ended store it resumes from, one per line.
        config: The config passed to the constructor.
        is_closed: Whether `close` has been called.
    """

    def __init__(self, config: StoreConfig) -> None:
        try:
            self.core = _core.ReplayStore(
                config.directory or "",
                config.memory_bytes,
                config.seed,
                config.disk_directory or "",
                config.disk_bytes,
                config.durability,
                config.durability_ms / 1e3,
            )
        except _core.CoreError as error:
            raise UsageError(str(error)) from error
        self.differences: list[str] = []
        self.config = config
        self.is_closed = False
        self._process = os.getpid()
        self._entries: list[TableEntry] = []
        self._describe_sessions: list[Callable[[], list[str]]] = []
        self._list_replicas: list[Callable[[], list[tuple[str, float | None]]]] = []
        pools: dict[tuple[Any, int], int] = {}
        try:
            for table in config.tables.values():
                key = (repr(table.native_columns()), table.chunk_length)
                if key not in pools:
                    pools[key] = self.core.add_pool(table.native_schema())
                number = self.core.add_table(table.native(), pools[key])
                self._entries.append(TableEntry(number, pools[key], table))
        except _core.CoreError as error:
            raise UsageError(str(error)) from error

    def keep(self, goes_on: bool, changed: Sequence[int] = ()) -> _core.ReplayResumed:
        """Restores the data of an ended store, if any, and starts persisting changes.

        Args:
            goes_on: Whether to resume from the data of a killed process in the store's
                directory. Otherwise resumes from the checkpoint on disk, if any.
            changed: Indices of the tables whose configs override the restored limits
                and capacity.

        Returns:
            The restored state from which a server resumes its sessions.

        Raises:
            UsageError: The stored data is damaged or belongs to another store, or space
                is exhausted.
        """
        try:
            resumed = self.core.keep(goes_on)
        except _core.CoreError as error:
            raise UsageError(str(error)) from error
        if resumed.num_lost:
            self.differences.append(
                f"{resumed.num_lost} items are missing, because they were being "
                "removed during the last checkpoint"
            )
        for number in changed:
            self._configure(number)
        return resumed

    def tables(self) -> list[TableEntry]:
        """Returns the tables, ordered by their index in the store."""
        return list(self._entries)

    def add_sessions(self, describe: Callable[[], list[str]]) -> None:
        """Adds a server's sessions, one line each, to the command ``sessions``."""
        self._describe_sessions.append(describe)

    def add_replicas(
        self, replicas: Callable[[], list[tuple[str, float | None]]]
    ) -> None:
        """Adds a server's replicas and their lags to the command ``replicas``."""
        self._list_replicas.append(replicas)

    def pool_layout(self, entry: TableEntry) -> tuple[int, int]:
        """Returns the slots per slab and the bytes per slot of a table's pool."""
        return self.core.pool_layout(entry.pool)

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer that appends steps to the table's pool, for one thread."""
        self._check_process()
        return _core.open_writer(self.core, name, entry.pool, max_item_steps)

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        timeout_s: float | None = None,
    ) -> _core.ReplaySampler:
        """Returns a sampler. Without a disk, the sampler ignores ``num_ahead``."""
        self._check_process()
        return _core.open_sampler(self.core, entry.number, num_samples, num_ahead)

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs the command ``name``; arguments and result are JSON values.

        Raises:
            UsageError: The command is unknown, or its arguments are rejected.
        """
        self._check_process()
        of_store: dict[str, Callable[..., Any]] = {
            "begin_checkpoint": self._begin_checkpoint,
            "checkpoints": self._checkpoints,
            "replicas": self._replicas,
            "room": lambda: self.core.room(),
            "sessions": self._sessions,
            "wait_checkpoint": self._wait_checkpoint,
        }
        if name in of_store:
            return of_store[name](**arguments)
        commands: dict[str, Callable[..., Any]] = {
            "describe": self._describe,
            "set_capacity": self._set_capacity,
        }
        if name not in commands:
            raise UsageError(
                f"command ({name}) must be one of the store's; "
                f"{did_you_mean(name, commands)}"
            )
        table = arguments.get("table")
        if not isinstance(table, int) or not 0 <= table < len(self._entries):
            raise UsageError(
                f"table ({table}) must be 0 to {len(self._entries) - 1}; request the "
                "list of tables"
            )
        try:
            return commands[name](**arguments)
        except (TypeError, _core.CoreError) as error:
            raise UsageError(str(error)) from error

    def check_open(self) -> None:
        """Does nothing. The core itself ends waiting calls if the store is closed."""

    def close(self) -> None:
        """Closes the store. Waiting calls raise an error.

        Raises:
            RunError: The last checkpoint could not be written.
        """
        # Set before core.close(), because callers whose calls it ends read the flag.
        self.is_closed = True
        try:
            self.core.close()
        except _core.CoreError as error:
            raise RunError(
                f"store (closed) has saved nothing since its last checkpoint: {error}"
            ) from error

    def _check_process(self) -> None:
        """Raises UsageError in a forked process, where locks may be held forever."""
        check(
            self._process == os.getpid(),
            "store",
            f"of process {self._process}",
            "must be used in the process that made it; connect to it from others",
        )

    def _begin_checkpoint(self) -> int:
        self._check_durable()
        try:
            return self.core.begin_checkpoint()
        except _core.CoreError as error:
            raise RunError(str(error)) from error

    def _wait_checkpoint(self, number: int, timeout_s: float) -> bool | None:
        self._check_durable()
        # Limits the wait of a malformed request. Clients request shorter waits.
        wait_s = min(max(0.0, float(timeout_s)), _CHECKPOINT_S)
        try:
            return self.core.wait_checkpoint(number, wait_s)
        except _core.CoreError as error:
            raise RunError(str(error)) from error

    def _check_durable(self) -> None:
        check(
            self.config.is_durable,
            "durability",
            "none",
            "must be checkpoint, async or sync; create the store with it and a disk",
        )

    def _replicas(self) -> list[dict[str, Any]]:
        told = [one for replicas in self._list_replicas for one in replicas()]
        return [{"name": name, "behind_s": behind_s} for name, behind_s in told]

    def _sessions(self) -> list[str]:
        return [line for describe in self._describe_sessions for line in describe()]

    def _checkpoints(self) -> dict[str, Any]:
        age_s = self.core.checkpoint_age_s()
        return {"durability": self.config.durability, "age_s": age_s}

    def _configure(self, number: int) -> None:
        config = self._entries[number].config
        steps = config.steps_of(config.max_bytes)
        self.core.set_capacity(number, config.max_items, steps)
        self.core.set_limits(number, config.limits.native())

    def _describe(self, table: int) -> dict[str, Any]:
        told = self.core.describe(table)
        max_bytes = self._entries[table].config.bytes_of(told.pop("max_steps"))
        limits = RateLimits.of_native(told.pop("limits"))
        trouble = self.core.trouble()
        return {
            **told,
            "max_bytes": max_bytes,
            "limits": dataclasses.asdict(limits),
            **({"trouble": trouble} if trouble else {}),
        }

    def _set_capacity(
        self, table: int, max_items: int | None, max_bytes: int | None
    ) -> None:
        check(
            max_items is not None or max_bytes is not None,
            "capacity",
            None,
            "must be max_items or max_bytes; set at least one",
        )
        config = self._entries[table].config
        config.check_capacity(max_items, max_bytes)
        max_steps = None if max_bytes is None else config.steps_of(max_bytes)
        self.core.set_capacity(table, max_items, max_steps)
