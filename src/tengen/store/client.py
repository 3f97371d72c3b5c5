"""The client of a store in another process on this host or another host."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import TengenError, UsageError
from tengen.store.backend import TableEntry
from tengen.store.configs.table_config import TableConfig
from tengen.store.messages import STORE, wait_for_name_s
from tengen.transport import RESUME, Client, NoAnswer, is_net

_MAX_CHUNKS_AHEAD = 64
_BYTES_AHEAD = 8 << 20
# Timeout of replies over TCP. TCP clients do not wait for a restarted server.
_ANSWER_S = 10.0

_Session = tuple[_core.StoreChannel, _core.StoreSchema, _core.SlabMap]


class RemoteBackend:
    """The backend of a store in another process, with one connection per call.

    The arguments and errors are described in `tengen.store.Store.connect`.
    """

    def __init__(
        self,
        address: str | os.PathLike[str],
        patience_s: float,
        token: str | None = None,
        ca_file: Path | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._is_net = is_net(address)
        self._patience_s = _ANSWER_S if self._is_net else patience_s
        self._client = Client(
            STORE,
            address,
            patience_s=self._patience_s,
            token=token,
            ca_file=ca_file,
            fingerprint=fingerprint,
        )
        self._layouts: dict[int, dict[str, int]] = {}
        self._entries = []
        try:
            for table in self._client.ask({"ask": "tables"}):
                config = TableConfig.from_dict(table["config"])
                self._entries.append(TableEntry(table["number"], table["pool"], config))
                self._layouts[table["pool"]] = table["layout"]
        except (LookupError, TypeError, ValueError) as error:
            self._client.close()
            raise UsageError(
                f"store ({address}) does not list its tables; install the same version "
                "there"
            ) from error

    def tables(self) -> list[TableEntry]:
        """Returns the tables, ordered by their index in the store."""
        return list(self._entries)

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer that appends steps to the table's pool, for one thread."""
        request = {
            "ask": "writer",
            "name": name,
            "pool": entry.pool,
            "wait_s": wait_for_name_s(timeout_s),
        }
        opened, session = self._open(entry, request, timeout_s)
        chunk_bytes = entry.config.step_bytes * entry.config.chunk_length
        return _core.connect_writer(
            *session,
            next_sequence=opened["next_sequence"],
            max_item_steps=max_item_steps,
            num_ahead=max(2, min(_MAX_CHUNKS_AHEAD, _BYTES_AHEAD // chunk_bytes)),
        )

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        timeout_s: float | None = None,
    ) -> _core.ReplaySampler:
        """Returns a sampler of the table's items, for one thread."""
        request = {
            "ask": "sampler",
            "table": entry.number,
            "num_samples": num_samples,
            "num_ahead": num_ahead,
        }
        _, session = self._open(entry, request, timeout_s)
        num_steps = entry.config.num_steps
        return _core.connect_sampler(*session, num_samples, num_steps, num_ahead)

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs the command ``name`` in the store's process.

        If a server on this host is killed before it replies, the client repeats the
        command on the next server.
        """
        question = {"ask": "command", "name": name, "arguments": dict(arguments)}
        return self._client.ask(question, timeout_s)

    def check_open(self) -> None:
        """Raises UsageError if the connection has been closed."""
        self._client.check_open()

    def close(self) -> None:
        """Ends requests and waiting writers and samplers. Other sessions stay open."""
        self._client.close()

    def _open(
        self, entry: TableEntry, request: dict[str, Any], timeout_s: float | None
    ) -> tuple[dict[str, Any], _Session]:
        """Opens a session. Returns the server's reply and the core's session."""
        schema = entry.config.native_schema()
        stream, opened = self._client.open(request, timeout_s)
        if self._is_net:
            channel = _core.net_channel(
                stream.detach(),
                self._client.name,
                schema,
                num_samples=request.get("num_samples", 0),
                num_steps=entry.config.num_steps,
            )
            return opened, (channel, schema, _core.SlabMap.none())
        channel = _core.host_channel(
            stream.detach(),
            opened["memory_path"],
            _core.SessionLayout(opened["request_bytes"], opened["reply_bytes"]),
            self._resume(opened["id"]),
            self._patience_s,
        )
        layout = self._layouts[entry.pool]
        slabs = _core.SlabMap(self._client.name, entry.pool, **layout)
        return opened, (channel, schema, slabs)

    def _resume(self, session: int) -> Callable[[], int | str]:
        """Returns a function that resumes ``session`` on a restarted server."""

        def resume() -> int | str:
            try:
                stream, _ = self._client.open_now({"ask": RESUME, "id": session})
            except NoAnswer:
                return -1
            except (TengenError, _core.CoreError) as error:
                return str(error)
            return stream.detach()

        return resume
