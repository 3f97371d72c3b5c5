"""A run's service on this host's loopback, and mirrors of it in folders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.remote import RUN, Mirror, RunService
from tengen.run import RunDirectory
from tengen.transport import Client, NetDoor, Server

TOKEN = "0123456789abcdef"


class Host:
    """The run's host: a directory, and a service that can be closed and opened."""

    def __init__(self, path: Path) -> None:
        self.run = RunDirectory.create_or_resume(path)
        self.run.write_run({"config": {"task": "tictactoe"}})
        # That the games of the tests are by.
        self.run.models.publish(3, lambda folder: (folder / "meta.json").touch())
        self.port = 0
        self.lines: list[str] = []
        self.open()

    def open(self, **options: Any) -> None:
        door = NetDoor(listen=f"127.0.0.1:{self.port}", token=TOKEN)
        listener = door.open(RUN)
        self.port = int(listener.address.rpartition(":")[2])
        self.service = RunService(
            self.run, "tictactoe", say=self.lines.append, **options
        )
        self._server = Server(listener, self.service.service)

    def close(self) -> None:
        self._server.close()
        self.service.close()

    def client(self, patience_s: float = 0.2) -> Client:
        address = f"tcp://127.0.0.1:{self.port}"
        return Client(RUN, address, token=TOKEN, patience_s=patience_s)


class Hasty(Mirror):
    """A mirror that asks often."""

    look_s = retry_s = 0.1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "run")
    yield made
    made.close()


@pytest.fixture
def mirror_at(host: Host) -> Iterator[Callable[..., Mirror]]:
    """Makes an open mirror of the host's run in a folder."""
    made: list[Mirror] = []

    def make(
        path: Path, role: str = "selfplay", kind: type[Mirror] = Hasty, **options: Any
    ) -> Mirror:
        options = {"stop": threading.Event(), **options}
        mirror = kind(path, host.client(), role, **options)
        mirror.open()
        made.append(mirror)
        return mirror

    yield make
    for mirror in made:
        mirror.close()
