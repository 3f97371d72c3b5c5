"""The interface behind a store's tables: a store of this process, or of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError, did_you_mean
from tengen.store.configs.table_config import TableConfig

__all__ = [
    "StoreBackend",
    "TableEntry",
    "find_table",
]

T = TypeVar("T")


@dataclass(frozen=True)
class TableEntry:
    """A table of a store.

    Attributes:
        number: Its number in the store.
        pool: The number of the pool that its steps lie in.
        config: The config that it was made from.
    """

    number: int
    pool: int
    config: TableConfig


def find_table(tables: Mapping[str, T], name: str) -> T:
    """Returns the table of that name.

    Raises:
        UsageError: There is no such table.
    """
    check(isinstance(name, str), "table", type(name).__name__, "must be text; name it")
    if name not in tables:
        raise UsageError(
            f"table ({name}) must be one of the store's; {did_you_mean(name, tables)}"
        )
    return tables[name]


class StoreBackend(Protocol):
    """A store's operations. Thread-safe.

    Raises UsageError if the request is wrong, else RunError; opening a writer or a
    sampler may also raise CoreError. ``timeout_s`` is how long a server may take to
    answer, but every server has at least some seconds; None: as long as the connection
    allows.
    """

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        ...

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, for one thread."""
        ...

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        timeout_s: float | None = None,
    ) -> _core.ReplaySampler:
        """Returns a sampler of the table, for one thread."""
        ...

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs one of the rare commands; arguments and result are JSON values."""
        ...

    def check_open(self) -> None:
        """Raises UsageError if the backend was closed, so that waits for it end."""
        ...

    def close(self) -> None:
        """Ends the connection, or the store of this process."""
        ...
