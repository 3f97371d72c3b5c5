"""A client of a store on another host."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import UsageError
from tengen.store.backend import SamplerCore, TableEntry
from tengen.store.host_protocol import (
    answer_s,
    ask,
    closed,
    command_request,
    no_answer,
    replica_request,
    sampler_request,
    tables_request,
    writer_request,
)
from tengen.store.net_protocol import (
    NetAddress,
    is_loopback,
    keep_alive,
    send_hello,
    token_of,
)
from tengen.store.table_config import TableConfig
from tengen.store.tls import client_tls

__all__ = ["NetConnection"]

_CONNECT_S = 10.0
# Beyond what an answer may take, and of a replica, whose store reads files first.
_ANSWER_S = 10.0
_REPLICA_S = 60.0


class NetConnection:
    """The backend of a store on another host; each call is a connection of its own.

    Args:
        address: ``tcp://HOST:PORT``.
        token: What the store wants to be told; None: that of the environment.
        ca_file: PEM of who vouches for the store's certificate, for TLS.
        fingerprint: SHA-256 of the certificate in hex, for TLS without an authority.

    Raises:
        RunError: Nobody answers there, or it is not trusted.
        UsageError: It is of another version, or refuses the token.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        ca_file: Path | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._address = NetAddress.parse(address)
        self._token = token_of(token)
        self._is_closed = False
        self._tls = None
        if ca_file is not None or fingerprint is not None:
            self._tls = client_tls(self._address.host, ca_file, fingerprint)
        self._entries = [
            TableEntry(
                table["number"], table["pool"], TableConfig.from_dict(table["config"])
            )
            for table in self._ask(tables_request())
        ]

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
        return _core.net_writer(
            descriptor=descriptor,
            name=str(self._address),
            next_sequence=opened["next_sequence"],
            columns=entry.config.native_columns(),
            steps_per_chunk=entry.config.chunk_length,
            max_item_steps=max_item_steps,
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
        if not copy:
            raise UsageError(
                "copy (False) must be True, as the store is on another host; copy"
            )
        descriptor, _ = self._open(
            sampler_request(entry.number, num_samples, num_ahead), timeout_s
        )
        return _core.net_sampler(
            descriptor=descriptor,
            name=str(self._address),
            columns=entry.config.native_columns(),
            steps_per_chunk=entry.config.chunk_length,
            num_samples=num_samples,
            num_steps=entry.config.num_steps,
            num_ahead=num_ahead,
        )

    def open_replica(
        self, name: str, place: tuple[int, int, int] | None
    ) -> tuple[int, dict[str, Any]]:
        """Returns the stream of a replica's session, and what the store was made with.

        Args:
            name: The replica's, for people.
            place: Behind the last checkpoint that it has; None: it has none.
        """
        return self._open(replica_request(name, place), _REPLICA_S)

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs one of the rare commands in the store's process."""
        return self._ask(command_request(name, arguments), timeout_s)

    def check_open(self) -> None:
        """Raises UsageError once it was closed."""
        if self._is_closed:
            raise closed(str(self._address))

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
        patience_s = _ANSWER_S if timeout_s is None else timeout_s
        until = time.monotonic() + answer_s(message, patience_s)
        connection = self._connect(until)
        answer = ask(connection, str(self._address), message, until)
        return connection.detach(), answer

    def _connect(self, until: float) -> socket.socket:
        self.check_open()
        until = min(until, time.monotonic() + _CONNECT_S)
        try:
            connection = socket.create_connection(
                (self._address.host, self._address.port), until - time.monotonic()
            )
        except OSError as error:
            raise no_answer(str(self._address), error) from error
        try:
            keep_alive(connection)
            if self._tls is not None:
                connection = self._tls(connection, until)
            elif self._token is not None and not _is_safe(connection):
                raise UsageError(
                    f"address ({self._address}) must be of this host for a token to go "
                    f"without encryption; pass ca_file or fingerprint"
                )
            connection.settimeout(max(0.001, until - time.monotonic()))
            send_hello(connection, self._token)
        except OSError as error:
            connection.close()
            raise no_answer(str(self._address), error) from error
        except BaseException:
            connection.close()
            raise
        return connection


def _is_safe(connection: socket.socket) -> bool:
    return is_loopback(str(connection.getpeername()[0]))
