"""What a store's tables are written against: a store here, or a server of this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tengen import _core
from tengen.errors import UsageError, did_you_mean
from tengen.store.table_config import RateLimits, TableConfig

__all__ = ["LocalBackend", "StoreBackend", "TableEntry"]


@dataclass(frozen=True)
class TableEntry:
    """A table of a store.

    Attributes:
        number: Its number in the store.
        pool: The number of the pool that its steps lie in.
        config: What it was made from.
    """

    number: int
    pool: int
    config: TableConfig


class StoreBackend(Protocol):
    """Thread-safe. Errors are UsageError for what was asked, RunError for the rest."""

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        ...

    def open_writer(
        self, name: str, entry: TableEntry, max_item_steps: int
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, for one thread."""
        ...

    def open_sampler(
        self, entry: TableEntry, num_samples: int, num_ahead: int
    ) -> _core.ReplaySampler:
        """Returns a sampler of the table, for one thread."""
        ...

    def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Runs one of the rare commands; arguments and result are JSON values."""
        ...

    def close(self) -> None:
        """Ends the connection, or the store."""
        ...


class LocalBackend:
    """The store in this process.

    Args:
        configs: Its tables.
        memory_bytes: For all steps.
        seed: Of the draws.
        directory: Where the steps lie in files that others map; empty: in memory of
            this process alone.

    Raises:
        UsageError: A config is refused, or the budget holds not even one chunk.
    """

    def __init__(
        self,
        configs: list[TableConfig],
        memory_bytes: int,
        seed: int,
        directory: str = "",
    ) -> None:
        self.core = _core.ReplayStore(directory, memory_bytes, seed)
        self._entries: list[TableEntry] = []
        pools: dict[tuple[Any, int], int] = {}
        try:
            for config in configs:
                columns = config.native_columns()
                key = (repr(columns), config.chunk_length)
                if key not in pools:
                    pools[key] = self.core.add_pool(columns, config.chunk_length)
                number = self.core.add_table(config.native(), pools[key])
                self._entries.append(TableEntry(number, pools[key], config))
        except _core.CoreError as error:
            raise UsageError(str(error)) from error

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        return list(self._entries)

    def pool_layout(self, entry: TableEntry) -> tuple[int, int]:
        """Returns slots a slab and bytes a slot of the table's pool."""
        return self.core.pool_layout(entry.pool)

    def open_writer(
        self, name: str, entry: TableEntry, max_item_steps: int
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, for one thread."""
        return self.core.open_writer(name, entry.pool, max_item_steps)

    def open_sampler(
        self, entry: TableEntry, num_samples: int, num_ahead: int
    ) -> _core.ReplaySampler:
        """Returns a sampler; here a batch is drawn when it is asked for."""
        del num_ahead
        return self.core.open_sampler(entry.number, num_samples)

    def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Runs one of the rare commands.

        Raises:
            UsageError: It is unknown or its arguments are refused.
        """
        commands: dict[str, Callable[..., Any]] = {
            "describe": self._describe,
            "erase": self._erase,
            "set_capacity": self._set_capacity,
            "set_limits": self._set_limits,
            "set_priorities": self._set_priorities,
            "set_version": self._set_version,
        }
        if name not in commands:
            raise UsageError(
                f"command ({name}) must be one of the store's; "
                f"{did_you_mean(name, commands)}"
            )
        table = arguments.get("table")
        if not isinstance(table, int) or not 0 <= table < len(self._entries):
            raise UsageError(
                f"table ({table}) must be 0 to {len(self._entries) - 1}; ask for the "
                f"tables"
            )
        try:
            return commands[name](**arguments)
        except (TypeError, _core.CoreError) as error:
            raise UsageError(str(error)) from error

    def close(self) -> None:
        """Ends the store; whoever waits gets an error."""
        self.core.close()

    def _describe(self, table: int) -> dict[str, Any]:
        return dict(self.core.describe(table))

    def _erase(self, table: int, keys: list[int]) -> int:
        return self.core.erase(table, np.asarray(keys, np.int64))

    def _set_capacity(self, table: int, max_items: int, max_bytes: int | None) -> None:
        config = self._entries[table].config
        steps = 2**64 - 1
        if max_bytes is not None:
            steps = max_bytes // max(1, config.step_bytes)
        self.core.set_capacity(table, max_items, steps)

    def _set_limits(self, table: int, limits: dict[str, Any]) -> None:
        self.core.set_limits(table, RateLimits(**limits).native())

    def _set_priorities(
        self, table: int, keys: list[int], priorities: list[float]
    ) -> None:
        self.core.set_priorities(
            table, np.asarray(keys, np.int64), np.asarray(priorities, np.float64)
        )

    def _set_version(self, table: int, version: int) -> None:
        self.core.set_version(table, version)
