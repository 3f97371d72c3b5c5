"""The store of a host: lets other processes in."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import TengenError, UsageError, os_reason
from tengen.store.backend import LocalBackend
from tengen.store.host_protocol import SOCKET_NAME, VERSION, read_line, send_line
from tengen.store.table_config import TableConfig

__all__ = ["HostServer"]

_HELLO_S = 10.0
# What a socket's address holds on Linux and, with a few bytes less, on macOS.
_MAX_SOCKET_PATH = 100


class HostServer:
    """A store whose slabs and socket lie in a folder.

    Args:
        configs: Its tables.
        memory_bytes: For all steps.
        seed: Of the draws.
        directory: The folder; made anew, and removed by ``close``. One that a killed
            store left is taken over, without what was in it.

    Raises:
        UsageError: The folder is a live store's or holds other things, or a config is
            refused.
    """

    def __init__(
        self, configs: list[TableConfig], memory_bytes: int, seed: int, directory: Path
    ) -> None:
        self.directory = directory.absolute()
        path = str(self.directory / SOCKET_NAME)
        if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
            raise UsageError(
                f"directory ({directory}) must have at most {_MAX_SOCKET_PATH - 7} "
                f"bytes; choose a shorter one"
            )
        _claim(self.directory)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(path)
        os.chmod(path, 0o600)
        try:
            self.backend = LocalBackend(
                configs, memory_bytes, seed, str(self.directory)
            )
            self._core = _core.ReplayServer(self.backend.core)
        except BaseException:
            self._socket.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        self._socket.listen(128)
        self._thread = threading.Thread(
            target=self._accept, name="store-accept", daemon=True
        )
        self._thread.start()

    def describe_sessions(self) -> list[str]:
        """Returns a line a client: what it is, and what it waits for."""
        return self._core.describe()

    def close(self) -> None:
        """Ends every session and removes the folder."""
        # Wakes the thread that accepts; some systems refuse it and wake it anyway.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        del self._core
        shutil.rmtree(self.directory, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            # A client that says nothing keeps nobody else waiting.
            threading.Thread(
                target=self._serve, args=(connection,), name="store-hello", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_HELLO_S)
        try:
            while (message := read_line(connection)) is not None:
                if self._answer(connection, message):
                    return
                connection.settimeout(None)
        except TengenError as error:
            _try_send(connection, {"error": str(error)})
        except OSError:
            pass
        connection.close()

    def _answer(self, connection: socket.socket, message: dict[str, Any]) -> bool:
        """Answers; whether the connection is a session's from here on."""
        kind = message.get("ask")
        try:
            if message.get("version") != VERSION:
                raise UsageError(
                    f"version ({message.get('version')}) must be {VERSION}, the "
                    f"store's; install the same tengen on both sides"
                )
            if kind in ("writer", "sampler"):
                self._open(connection, kind, message)
                return True
            if kind == "tables":
                send_line(connection, {"answer": self._tables()})
            elif kind == "command":
                result = self.backend.command(message["name"], message["arguments"])
                send_line(connection, {"answer": result})
            else:
                raise UsageError(f"ask ({kind}) must be known; install the same tengen")
        except (KeyError, TypeError) as error:
            _try_send(
                connection,
                {"error": f"message ({kind}) is refused: {error}; send what it needs"},
            )
        except (TengenError, _core.CoreError) as error:
            _try_send(connection, {"error": str(error)})
        return False

    def _tables(self) -> list[dict[str, Any]]:
        answer = []
        for entry in self.backend.tables():
            slots_per_slab, _ = self.backend.pool_layout(entry)
            answer.append(
                {
                    "number": entry.number,
                    "pool": entry.pool,
                    "slots_per_slab": slots_per_slab,
                    "config": entry.config.to_dict(),
                }
            )
        return answer

    def _open(
        self, connection: socket.socket, kind: str, message: dict[str, Any]
    ) -> None:
        connection.settimeout(None)
        entries = self.backend.tables()
        known = [one.pool if kind == "writer" else one.number for one in entries]
        wanted = message["pool" if kind == "writer" else "table"]
        if wanted not in known:
            raise UsageError(
                f"{kind} ({wanted}) must be of a table; ask for the tables"
            )
        # The core owns a copy of the descriptor, unless it refuses the session.
        descriptor = os.dup(connection.fileno())
        try:
            if kind == "writer":
                opened = self._core.open_writer(
                    descriptor, message["name"], message["pool"], message["wait_s"]
                )
            else:
                opened = self._core.open_sampler(
                    descriptor,
                    message["table"],
                    message["num_samples"],
                    message["num_ahead"],
                )
        except BaseException:
            os.close(descriptor)
            raise
        send_line(
            connection,
            {
                "answer": {
                    "memory_path": opened.memory_path,
                    "request_bytes": opened.layout.request_bytes,
                    "reply_bytes": opened.layout.reply_bytes,
                    "next_sequence": opened.next_sequence,
                }
            },
        )
        connection.close()


def _claim(directory: Path) -> None:
    """Makes the folder, or clears one that a killed store left."""
    try:
        directory.mkdir(mode=0o700)
        return
    except FileExistsError:
        pass
    except OSError as error:
        raise UsageError(
            f"directory ({directory}) cannot be made: {os_reason(error)}; choose "
            f"another"
        ) from error
    names = [path.name for path in directory.iterdir()]
    if any(not name.startswith((SOCKET_NAME, "slab-", "session-")) for name in names):
        raise UsageError(
            f"directory ({directory}) must be new, or a store's; choose another"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if SOCKET_NAME in names:
            try:
                probe.connect(str(directory / SOCKET_NAME))
            except OSError:
                pass
            else:
                raise UsageError(
                    f"directory ({directory}) is a running store's; connect to it, or "
                    f"choose another"
                )
    for name in names:
        (directory / name).unlink(missing_ok=True)


def _try_send(connection: socket.socket, message: dict[str, Any]) -> None:
    # A client that has gone needs no answer.
    with contextlib.suppress(OSError):
        send_line(connection, message)
