"""A client of a store of this host."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.config import check_range
from tengen.errors import TengenError
from tengen.store.backend import SamplerCore, TableEntry
from tengen.store.host_protocol import (
    SOCKET_NAME,
    NoAnswer,
    answer_s,
    ask,
    closed,
    command_request,
    no_answer,
    resume_request,
    sampler_request,
    tables_request,
    writer_request,
)
from tengen.store.own_folder import check_own_folder
from tengen.store.table_config import TableConfig

__all__ = ["HostConnection"]

_MAX_CHUNKS_AHEAD = 64
_BYTES_AHEAD = 8 << 20
_RETRY_S = 0.05


class HostConnection:
    """The backend of a store in another process; each call is a connection of its own.

    Args:
        directory: The store's.
        patience_s: How long writers, samplers and commands wait for another server of
            the store where its own was killed, and for an answer, 0 or more.

    Raises:
        RunError: Nobody answers there.
        UsageError: It is of another version, or its folder may be another user's.
    """

    def __init__(self, directory: Path, patience_s: float) -> None:
        check_range("patience_s", patience_s, 0, 1e9)
        # A link may lie where a socket's address would be too long.
        self._directory = directory.resolve()
        self._patience_s = patience_s
        self._is_closed = False
        self._layouts: dict[int, dict[str, int]] = {}
        self._entries = []
        for table in self._ask(tables_request()):
            config = TableConfig.from_dict(table["config"])
            self._entries.append(TableEntry(table["number"], table["pool"], config))
            self._layouts[table["pool"]] = table["layout"]

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        return list(self._entries)

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, for one thread."""
        descriptor, opened = self._open(
            writer_request(name, entry.pool, timeout_s), timeout_s
        )
        chunk_bytes = entry.config.step_bytes * entry.config.chunk_length
        return _core.connect_writer(
            descriptor=descriptor,
            memory_path=opened["memory_path"],
            layout=_layout_of(opened),
            next_sequence=opened["next_sequence"],
            max_item_steps=max_item_steps,
            num_ahead=max(2, min(_MAX_CHUNKS_AHEAD, _BYTES_AHEAD // chunk_bytes)),
            reconnect=self._resume(opened["id"]),
            patience_s=self._patience_s,
            **self._steps_of(entry),
        )

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        copy: bool,
        timeout_s: float | None = None,
    ) -> SamplerCore:
        """Returns a sampler of the table, for one thread."""
        descriptor, opened = self._open(
            sampler_request(entry.number, num_samples, num_ahead), timeout_s
        )
        connect = _core.connect_sampler if copy else _core.connect_view_sampler
        return connect(
            descriptor=descriptor,
            memory_path=opened["memory_path"],
            layout=_layout_of(opened),
            num_samples=num_samples,
            num_steps=entry.config.num_steps,
            num_ahead=num_ahead,
            reconnect=self._resume(opened["id"]),
            patience_s=self._patience_s,
            **self._steps_of(entry),
        )

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs one of the rare commands in the store's process.

        One whose answer is lost with the server is run again by the next one.
        """
        return self._ask(command_request(name, arguments), timeout_s)

    def check_open(self) -> None:
        """Raises UsageError once it was closed."""
        if self._is_closed:
            raise closed(str(self._directory))

    def close(self) -> None:
        """Asks no more; writers and samplers that wait end, others by themselves."""
        self._is_closed = True

    def _ask(self, message: Mapping[str, Any], timeout_s: float | None = None) -> Any:
        descriptor, answer = self._open(message, timeout_s)
        os.close(descriptor)
        return answer

    def _open(
        self, message: Mapping[str, Any], timeout_s: float | None
    ) -> tuple[int, Any]:
        """Asks, where the server was killed the next one too."""
        self.check_open()
        patience_s = self._patience_s
        if timeout_s is not None:
            patience_s = min(timeout_s, patience_s)
        end = time.monotonic() + patience_s
        while True:
            try:
                return self._open_once(message, end - time.monotonic())
            except NoAnswer:
                if time.monotonic() >= end or not self._directory.exists():
                    raise
                time.sleep(_RETRY_S)

    def _open_once(
        self, message: Mapping[str, Any], patience_s: float = 0.0
    ) -> tuple[int, Any]:
        until = time.monotonic() + answer_s(message, patience_s)
        connection = self._connect(until)
        answer = ask(connection, str(self._directory), message, until)
        return connection.detach(), answer

    def _connect(self, until: float) -> socket.socket:
        try:
            # Each time: once a store's folder is gone, anybody may have its name.
            check_own_folder("directory", self._directory)
        except OSError as error:
            raise no_answer(str(self._directory), error) from error
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(max(0.001, until - time.monotonic()))
        while True:
            try:
                connection.connect(str(self._directory / SOCKET_NAME))
                return connection
            except OSError as error:
                # Where too many wait to be let in, the next one is not made to.
                if isinstance(error, BlockingIOError) and time.monotonic() < until:
                    time.sleep(_RETRY_S)
                    continue
                connection.close()
                raise no_answer(str(self._directory), error) from error

    def _resume(self, session: int) -> Callable[[], int | str]:
        """Returns how a session goes on with another server, for the core."""

        def resume() -> int | str:
            try:
                return self._open_once(resume_request(session))[0]
            except NoAnswer:
                return -1
            except (TengenError, _core.CoreError) as error:
                return str(error)

        return resume

    def _steps_of(self, entry: TableEntry) -> dict[str, Any]:
        return {
            "columns": entry.config.native_columns(),
            "steps_per_chunk": entry.config.chunk_length,
            "directory": str(self._directory),
            "pool": entry.pool,
            **self._layouts[entry.pool],
        }


def _layout_of(opened: Mapping[str, Any]) -> _core.SessionLayout:
    return _core.SessionLayout(opened["request_bytes"], opened["reply_bytes"])
