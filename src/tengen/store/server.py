"""The store of a host: lets other processes in."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import UsageError
from tengen.store.disk_config import DiskConfig
from tengen.store.disk_folder import DiskFolder
from tengen.store.folder import StoreFolder
from tengen.store.host_protocol import wait_of
from tengen.store.local_backend import LocalBackend
from tengen.store.reception import Reception
from tengen.store.table_config import TableConfig

__all__ = ["HostServer"]


class HostServer:
    """A store whose slabs and socket lie in a folder.

    Args:
        configs: Its tables.
        memory_bytes: For all steps.
        seed: Of the draws.
        directory: The folder; made anew, and removed by ``close``. With what a killed
            store of the same tables left, this one goes on.
        disk: Where the steps go that memory does not hold; None: nowhere. Its folder
            too is removed by ``close``.

    Raises:
        UsageError: The folder is a live store's, or a killed store's of other tables,
            or holds other things; or a config is refused.
    """

    def __init__(
        self,
        configs: list[TableConfig],
        memory_bytes: int,
        seed: int,
        directory: Path,
        disk: DiskConfig | None = None,
    ) -> None:
        self._folder = StoreFolder(directory, configs, memory_bytes, disk)
        self._disk: DiskFolder | None = None
        self.differences = self._folder.differences
        changed = self._folder.changed
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if disk is not None:
                self._disk = DiskFolder(
                    disk, configs, memory_bytes, self._folder.goes_on
                )
                self.differences += self._disk.differences.lines
                changed += self._disk.differences.changed
            self.backend = LocalBackend(
                configs, memory_bytes, seed, str(self._folder.path), disk
            )
            resumed = self.backend.keep(self._folder.goes_on, changed)
            self.differences += self.backend.differences
            self._core = _core.ReplayServer(self.backend.core, resumed)
            self._folder.begin(configs, memory_bytes, disk)
            if self._disk is not None:
                self._disk.begin()
            self._socket.bind(self._folder.socket_path)
            os.chmod(self._folder.socket_path, 0o600)
        except BaseException as error:
            self._socket.close()
            self._leave_folders()
            if isinstance(error, _core.CoreError):
                raise UsageError(str(error)) from error
            raise
        self.backend.add_sessions(lambda: self._core.describe())
        self._reception = Reception(
            self._socket,
            self.backend,
            ("writer", "sampler", "resume"),
            self._open,
            lambda: len(self._core.describe()),
        )

    def close(self) -> None:
        """Ends every session and removes the folder of the host."""
        self._end()
        if self._disk is not None:
            self._disk.end()
        self._folder.remove()

    def abandon(self) -> None:
        """Ends every session; what a killed store left stays for the next one."""
        self._end()
        self._leave_folders()

    def _end(self) -> None:
        self._reception.close()
        del self._core

    def _leave_folders(self) -> None:
        """Gives up the folders; what a killed store left is not lost by its heir."""
        goes_on = self._folder.goes_on
        if self._disk is not None:
            (self._disk.leave if goes_on else self._disk.end)()
        (self._folder.leave if goes_on else self._folder.remove)()

    def _open(
        self, connection: socket.socket, kind: str, message: Mapping[str, Any]
    ) -> dict[str, Any]:
        # The core owns the copy, unless it refuses the session.
        descriptor = os.dup(connection.fileno())
        try:
            return self._open_with(descriptor, kind, message)
        except BaseException:
            os.close(descriptor)
            raise

    def _open_with(
        self, descriptor: int, kind: str, message: Mapping[str, Any]
    ) -> dict[str, Any]:
        if kind == "resume":
            self._core.resume(descriptor, message["id"])
            return {}
        if kind == "writer":
            opened = self._core.open_writer(
                descriptor, message["name"], message["pool"], wait_of(message)
            )
        else:
            opened = self._core.open_sampler(
                descriptor,
                message["table"],
                message["num_samples"],
                message["num_ahead"],
            )
        return {
            "id": opened.id,
            "memory_path": opened.memory_path,
            "request_bytes": opened.layout.request_bytes,
            "reply_bytes": opened.layout.reply_bytes,
            "next_sequence": opened.next_sequence,
        }
