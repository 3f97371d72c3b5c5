"""The interface with which tables access a store in this or another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError, did_you_mean
from tengen.store.configs.table_config import TableConfig

T = TypeVar("T")


@dataclass(frozen=True)
class TableEntry:
    """The config of a table, and the indices of the table and its pool.

    Attributes:
        number: Index of the table in the store.
        pool: Index of the pool that stores the table's steps.
        config: The config that the table was created from.
    """

    number: int
    pool: int
    config: TableConfig


def find_table(tables: Mapping[str, T], name: str) -> T:
    """Returns the table called ``name``.

    Raises:
        UsageError: There is no table with this name.
    """
    check(isinstance(name, str), "table", type(name).__name__, "must be a str; name it")
    if name not in tables:
        raise UsageError(
            f"table ({name}) must be one of the store's; {did_you_mean(name, tables)}"
        )
    return tables[name]


class StoreBackend(Protocol):
    """The operations that a store offers to tables and writers. Thread-safe.

    Invalid requests raise UsageError, and other failures RunError; opening a writer or
    a sampler may also raise CoreError. ``timeout_s`` limits the wait for a server's
    reply, but is at least a few seconds; None for the limit of the connection.
    """

    def tables(self) -> list[TableEntry]:
        """Returns the tables, ordered by their index in the store."""
        ...

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer that appends steps to the table's pool, for one thread."""
        ...

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        timeout_s: float | None = None,
    ) -> _core.ReplaySampler:
        """Returns a sampler of the table's items, for one thread."""
        ...

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs the command ``name``. Arguments and result are JSON values."""
        ...

    def check_open(self) -> None:
        """Raises UsageError if the backend is closed. Polled by waiting calls."""
        ...

    def close(self) -> None:
        """Closes the connection to the store, or the store if it is in this process."""
        ...
