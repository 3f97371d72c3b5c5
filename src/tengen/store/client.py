"""A client of a store of this host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.store.backend import TableEntry
from tengen.store.host_protocol import ask
from tengen.store.table_config import TableConfig

__all__ = ["HostConnection"]

_MAX_CHUNKS_AHEAD = 64
_BYTES_AHEAD = 1 << 20
# The server learns of a killed client within moments; then its name is free.
_WAIT_FOR_NAME_S = 5.0


class HostConnection:
    """The backend of a store in another process; each call is a connection of its own.

    Args:
        directory: The store's.

    Raises:
        RunError: Nobody answers there.
        UsageError: It is of another version.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory.absolute()
        self._slots_per_slab: dict[int, int] = {}
        self._entries = []
        for table in self._ask({"ask": "tables"}):
            config = TableConfig.from_dict(table["config"])
            self._entries.append(TableEntry(table["number"], table["pool"], config))
            self._slots_per_slab[table["pool"]] = table["slots_per_slab"]

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        return list(self._entries)

    def open_writer(
        self, name: str, entry: TableEntry, max_item_steps: int
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, for one thread."""
        descriptor, opened = self._open(
            {
                "ask": "writer",
                "name": name,
                "pool": entry.pool,
                "wait_s": _WAIT_FOR_NAME_S,
            }
        )
        chunk_bytes = entry.config.step_bytes * entry.config.chunk_length
        return _core.connect_writer(
            descriptor=descriptor,
            memory_path=opened["memory_path"],
            layout=_layout_of(opened),
            next_sequence=opened["next_sequence"],
            max_item_steps=max_item_steps,
            num_ahead=max(2, min(_MAX_CHUNKS_AHEAD, _BYTES_AHEAD // chunk_bytes)),
            **self._steps_of(entry),
        )

    def open_sampler(
        self, entry: TableEntry, num_samples: int, num_ahead: int
    ) -> _core.ReplaySampler:
        """Returns a sampler of the table, for one thread."""
        descriptor, opened = self._open(
            {
                "ask": "sampler",
                "table": entry.number,
                "num_samples": num_samples,
                "num_ahead": num_ahead,
            }
        )
        return _core.connect_sampler(
            descriptor=descriptor,
            memory_path=opened["memory_path"],
            layout=_layout_of(opened),
            num_samples=num_samples,
            num_steps=entry.config.num_steps,
            num_ahead=num_ahead,
            **self._steps_of(entry),
        )

    def command(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Runs one of the rare commands in the store's process."""
        return self._ask({"ask": "command", "name": name, "arguments": dict(arguments)})

    def close(self) -> None:
        """Does nothing: writers and samplers end by themselves."""

    def _ask(self, message: Mapping[str, Any]) -> Any:
        connection, answer = ask(self._directory, message)
        connection.close()
        return answer

    def _open(self, message: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        connection, answer = ask(self._directory, message)
        return connection.detach(), answer

    def _steps_of(self, entry: TableEntry) -> dict[str, Any]:
        return {
            "columns": entry.config.native_columns(),
            "steps_per_chunk": entry.config.chunk_length,
            "directory": str(self._directory),
            "pool": entry.pool,
            "slots_per_slab": self._slots_per_slab[entry.pool],
        }


def _layout_of(opened: Mapping[str, Any]) -> _core.SessionLayout:
    return _core.SessionLayout(opened["request_bytes"], opened["reply_bytes"])
