"""Role processes of a test, started as a launcher starts them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen.launch.joined import Child
from tengen.launch.launcher import Command, Placed
from tengen.launch.local import LocalLauncher
from tengen.launch.messages import Message, Progress
from tengen.launch.wire import Hub
from tengen.launch.workers import Worker
from tengen.run import RunDirectory

JOINS = """
import os, sys, threading, time
from tengen.launch.messages import *
from tengen.launch.wire import join
stream = join(os.environ, Begun())
"""
"""The beginning of a program that joins as a role process does."""


@pytest.fixture(name="hub")
def the_hub(tmp_path: Path) -> Iterator[Hub]:
    """Where role processes of a test join."""
    made = Hub.on_this_host(RunDirectory.create_or_resume(tmp_path / "hub"))
    yield made
    made.close()


def placed(*roles: str, **fields: Any) -> Placed:
    """Returns a place for a process with these roles."""
    return Placed(worker=Worker(name="-".join(roles), roles=roles), **fields)


def started(
    hub: Hub,
    words: list[str],
    launcher: Any = None,
    place: Placed | None = None,
    **environment: str,
) -> Child:
    """Starts Python with these arguments, with a ticket."""
    ticket = hub.ticket()
    command = Command(words=words, environment=environment | ticket.environment)
    launcher = launcher or LocalLauncher()
    return Child(ticket, launcher.start(command, place or placed("role")))


def received(child: Child) -> list[Message]:
    """Returns all messages until the process is gone, but for progress."""
    found = []
    while (message := child.receive()) is not None:
        if not isinstance(message, Progress):
            found.append(message)
    return found
