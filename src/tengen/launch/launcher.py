"""The interface of a launcher, which starts commands somewhere and knows nothing else.

``local`` starts processes of this machine, ``ray`` actors of a Ray cluster that hold
processes, ``mpi`` processes beside ranks. A command is a role process
(``launch.child``), which connects back to the runner by its ticket (``launch.wire``).
When each role works is decided by the schedule, where it is by the placement.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tengen.errors import TengenError
from tengen.launch.workers import Worker
from tengen.roles import Connect
from tengen.run import RunDirectory, run_identity

__all__ = [
    "Closed",
    "Command",
    "Handle",
    "Launcher",
    "Placed",
    "Poll",
    "close_all",
    "log_name",
    "role_command",
]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A process of the run, what it gets, and where it is."""

    worker: Worker
    """The process, with its threads on that host."""
    num_cpus: float = 0.0
    """Cores that a cluster reserves, possibly a fraction."""
    num_gpus: float = 0.0
    """GPUs that a cluster reserves."""
    is_given: bool = False
    """Whether the user gave these numbers; else they are a share of the host."""
    node: str = ""
    """Ray's id of the host whose share it has; empty: any host will do."""
    is_bound: bool = False
    """Whether no other host will do."""
    rank: int = 0
    """The rank of ``mpirun`` that holds it."""
    host: str = ""
    """The rank's host."""
    devices: tuple[str, ...] | None = None
    """The only GPUs that it is to see; None: all that its launcher's host shows."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a launcher starts: ``python`` with some arguments."""

    words: list[str]
    """The arguments of Python."""
    environment: dict[str, str] = field(default_factory=dict)
    """What to add to the environment, which may be secret."""


class Poll(NamedTuple):
    """What is known of a process."""

    has_room: bool = True
    """False while a cluster has not begun it."""
    end: str = ""
    """How it ended, in words: ``signal 9``, ``exit code 3``; empty while it has not."""


class Handle(Protocol):
    """A process that a launcher started."""

    def poll(self) -> Poll:
        """Returns what is known of the process now. Cheap; one thread at a time."""

    def kill(self) -> None:
        """Kills the process at once, or never begins it. Does not block; any thread."""


class Launcher(Protocol):
    """Starts processes."""

    def start(self, command: Command, placed: Placed) -> Handle:
        """Starts a command. Returns soon, perhaps before the process has begun.

        Args:
            command: The command.
            placed: Where, and with what.

        Raises:
            TengenError: It cannot be started.
        """


class Closed(Protocol):
    """Something that ``close_all`` closes."""

    def close(self) -> None:
        """Closes it; may raise a TengenError."""


def close_all(handles: Iterable[Closed]) -> None:
    """Closes every one, whatever one of them raises.

    Raises:
        RunError: The first error, unless the caller is already raising one.
    """
    is_failing = sys.exc_info()[1] is not None
    errors = []
    for handle in handles:
        try:
            handle.close()
        except TengenError as error:
            errors.append(error)
    if errors and not is_failing:
        raise errors[0]


def log_name(roles: tuple[str, ...], index: int) -> str:
    """Returns the name of the file in ``RUN/logs`` that a process prints to.

    Args:
        roles: What it hosts.
        index: Which of several with these roles, from 0.
    """
    return f"{roles[0]}-{index}.log" if index else f"{roles[0]}.log"


def role_command(
    run: RunDirectory,
    worker: Worker,
    task: str | None,
    *,
    at_once: bool = False,
    connect: Connect | None = None,
) -> Command:
    """Returns the command of a role process, without a ticket.

    Args:
        run: The run.
        worker: What it hosts.
        task: The run's task, if the user typed it; else None.
        at_once: Whether the run's other roles work at the same time.
        connect: Where a process on a host without the run directory reaches it.
    """
    # -P: modules of the working directory are imported only for a typed task.
    words = ["-P", "-m", "tengen.launch.child", f"--index={worker.index}"]
    words.append(f"--identity={run_identity(run)}")
    if at_once:
        words.append("--at-once")
    if task is not None:
        words.append(f"--task={task}")
    if connect is not None:
        words.append(f"--connect={connect.address}")
        if connect.fingerprint is not None:
            words.append(f"--fingerprint={connect.fingerprint}")
    where = str(run.path.absolute())
    return Command(words=[*words, "--", where, str(worker.num_threads), *worker.roles])
