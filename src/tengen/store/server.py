"""The servers of a store, for processes on this host and on other hosts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import UsageError, os_reason
from tengen.store.configs.store_config import StoreConfig
from tengen.store.folders import DiskFolder, StoreFolder, read_config
from tengen.store.local_backend import LocalBackend
from tengen.store.messages import STORE, wait_for_name_s
from tengen.transport import RESUME, Listener, Message, Server, Service


class _StoreServer:
    """Base class of the servers: serves writers, samplers and commands."""

    _core: Any
    _server: Server

    def _serve(
        self,
        backend: LocalBackend,
        listener: Listener,
        **sessions: Callable[[socket.socket, Message], Any],
    ) -> None:
        self._pools = {entry.pool for entry in backend.tables()}
        self._numbers = {entry.number for entry in backend.tables()}
        backend.add_sessions(lambda: self._core.describe())
        service = Service(
            dialect=STORE,
            questions={
                "tables": lambda _: _tables(backend),
                "command": lambda message: backend.command(
                    message["name"], message["arguments"]
                ),
            },
            sessions={
                "writer": self._open_writer,
                "sampler": self._open_sampler,
                **sessions,
            },
            num_sessions=lambda: len(self._core.describe()),
            is_closing=lambda: backend.is_closed,
        )
        self._server = Server(listener, service)

    def close(self) -> None:
        """Stops accepting connections and ends all sessions."""
        self._server.close()
        del self._core

    def _open_writer(self, connection: socket.socket, message: Message) -> Any:
        name = message["name"]
        pool = _known(message, "pool", self._pools)
        wait_s = wait_for_name_s(float(message["wait_s"]))
        return self._opened(
            connection,
            lambda descriptor: self._core.open_writer(descriptor, name, pool, wait_s),
        )

    def _open_sampler(self, connection: socket.socket, message: Message) -> Any:
        table = _known(message, "table", self._numbers)
        numbers = (table, message["num_samples"], message["num_ahead"])
        return self._opened(
            connection,
            lambda descriptor: self._core.open_sampler(descriptor, *numbers),
        )

    def _opened(
        self, connection: socket.socket, open_session: Callable[[int], Any]
    ) -> dict[str, Any]:
        """Opens a session on ``connection``. Returns the reply to the client."""
        return {"next_sequence": open_session(connection.fileno())}


class HostServer(_StoreServer):
    """Serves a store to processes of this host through slabs and a socket in a folder.

    Args:
        config: The config of a store with a directory. If the directory was left by a
            killed store with the same tables, the new store resumes from it; otherwise
            the directory is created. ``close`` removes the directory.

    Raises:
        UsageError: The config is rejected, or the folder is in use by a store, was left
            by a killed store with different tables, or has unrelated files.
    """

    def __init__(self, config: StoreConfig) -> None:
        assert config.directory is not None
        self._core = None
        self._disk: DiskFolder | None = None
        listener: Listener | None = None
        self._folder = StoreFolder(Path(config.directory), config)
        config = replace(config, directory=str(self._folder.path))
        self.differences = self._folder.differences
        changed = self._folder.changed
        try:
            if config.disk_bytes:
                self._disk = DiskFolder(config, self._folder.goes_on)
                self.differences += self._disk.differences.lines
                changed += self._disk.differences.changed
            self.backend = LocalBackend(config)
            resumed = self.backend.keep(self._folder.goes_on, changed)
            self.differences += self.backend.differences
            # Before clients are resumed, make all calls that may run out of space.
            self._folder.begin(config)
            if self._disk is not None:
                self._disk.begin()
            listener = self._folder.listen()
            self._core = _core.ReplayServer(self.backend.core, resumed)
            self._serve(self.backend, listener, **{RESUME: self._resume})
        except BaseException as error:
            if listener is not None:
                listener.close()
            self._leave_sessions()
            # Free the core and the backend now: a traceback may keep this object alive.
            self._core = None
            vars(self).pop("backend", None)
            self._leave_folders()
            if isinstance(error, _core.CoreError):
                raise UsageError(str(error)) from error
            if isinstance(error, OSError):
                raise UsageError(
                    f"directory ({config.directory}) cannot be used for a store: "
                    f"{os_reason(error)}; free space there, or choose another"
                ) from error
            raise

    def close(self) -> None:
        """Ends all sessions, and removes the shared-memory folder."""
        super().close()
        if self._disk is not None:
            self._disk.end()
        self._folder.remove()

    def abandon(self) -> None:
        """Ends the server, but keeps a killed store's data for the next store."""
        self._leave_sessions()
        super().close()
        self._leave_folders()

    def _leave_sessions(self) -> None:
        """Detaches clients of the killed store, which then wait for the next store."""
        if self._folder.goes_on and self._core is not None:
            self._core.leave()

    def _leave_folders(self) -> None:
        """Unlocks the folders; removes them unless they hold a killed store's data."""
        goes_on = self._folder.goes_on
        if self._disk is not None:
            (self._disk.leave if goes_on else self._disk.end)()
        (self._folder.leave if goes_on else self._folder.remove)()

    def _resume(self, connection: socket.socket, message: Message) -> dict[str, Any]:
        _with_copy(connection, lambda copy: self._core.resume(copy, message["id"]))
        return {}

    def _opened(
        self, connection: socket.socket, open_session: Callable[[int], Any]
    ) -> dict[str, Any]:
        # The core takes ownership of the descriptor here, unlike that of `NetServer`.
        opened = _with_copy(connection, open_session)
        return {
            "id": opened.id,
            "memory_path": opened.memory_path,
            "request_bytes": opened.layout.request_bytes,
            "reply_bytes": opened.layout.reply_bytes,
            "next_sequence": opened.next_sequence,
        }


class NetServer(_StoreServer):
    """Serves a store to clients over TCP.

    Args:
        backend: The backend of the store.
        listener: Accepts connections of clients; closed by ``close``.
    """

    def __init__(self, backend: LocalBackend, listener: Listener) -> None:
        self._backend = backend
        self._core = _core.ReplayGateway(backend.core)
        backend.add_replicas(lambda: self._core.replicas())
        self._serve(backend, listener, replica=self._open_replica)

    def _open_replica(
        self, connection: socket.socket, message: Message
    ) -> dict[str, Any]:
        config = self._backend.config
        if config.disk_directory is None or not config.is_durable:
            raise UsageError(
                "durability (none) must be checkpoint, async or sync for a replica; "
                "create the store with it and a disk"
            )
        self._core.open_replica(connection.fileno(), str(message["name"]))
        return read_config(Path(config.disk_directory))


def _tables(backend: LocalBackend) -> list[dict[str, Any]]:
    answer = []
    for entry in backend.tables():
        slots_per_slab, slot_bytes = backend.pool_layout(entry)
        answer.append(
            {
                "number": entry.number,
                "pool": entry.pool,
                "layout": {"slots_per_slab": slots_per_slab, "slot_bytes": slot_bytes},
                "config": entry.config.to_dict(),
            }
        )
    return answer


def _known(message: Message, name: str, known: Collection[int]) -> int:
    number: int = message[name]
    if number not in known:
        raise UsageError(
            f"{message['ask']} ({number}) must be the number of a table; request the "
            "list of tables"
        )
    return number


def _with_copy(connection: socket.socket, open_session: Callable[[int], Any]) -> Any:
    """Opens a session on a duplicate of ``connection``; closes it on failure."""
    descriptor = connection.dup().detach()
    try:
        return open_session(descriptor)
    except BaseException:
        _core.close_owned(descriptor)
        raise
