"""The interface of a launcher, which starts commands somewhere and knows nothing else.

``local`` starts processes of this machine, ``ray`` actors of a Ray cluster that hold
processes, ``mpi`` processes beside ranks. A command is a role process
(``launch.child``), which connects back to the runner by its ticket (``launch.wire``).
When each role works is decided by the schedule, where it is by the placement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from tengen.launch.messages import Begun
from tengen.launch.wire import Hub
from tengen.launch.workers import EVAL, Worker
from tengen.roles import Connect, RunConfig, StopListener
from tengen.run import RunDirectory, run_identity

__all__ = [
    "Command",
    "Handle",
    "Launcher",
    "Placed",
    "Poll",
    "log_name",
    "match_places",
    "role_command",
]

_LEARNERS = (("learn",), ("follow",))


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


class Launcher:
    """Starts the processes of a run; a launcher is a subclass, and a row of LAUNCHERS.

    Attributes:
        package: The Python package that it needs, which an extra of the launcher's name
            installs. Then processes may be on other hosts.
        takes_turns: Whether roles take turns, else all work at once.
        num_cores: Cores of its largest host; None: those of this machine.
        connect: Where processes on hosts without the run directory reach it.
        logs: Text that says where else to read why a process died.
    """

    package: ClassVar[str] = ""
    takes_turns: ClassVar[bool] = False
    num_cores: int | None = None
    connect: Connect | None = None
    logs: str = ""

    @classmethod
    def join(cls, threads: int | None) -> None:
        """Makes this process take its part in a call that several processes make.

        With ``mpirun`` only the first rank returns; the other ranks do what the first
        one says, and end when it ends.

        Args:
            threads: Cores to use on each host; None for all.

        Raises:
            UsageError: There is no such call, or its processes do not match.
            RunError: A process does not begin.
        """

    @classmethod
    def fit(cls, config: RunConfig, *, keeps_count: bool) -> RunConfig:
        """Returns a config whose roles fit the hosts of a call, after ``join``.

        Args:
            config: The run's.
            keeps_count: Whether the user gave the number of acting processes; else
                there are as many as fit.

        Raises:
            UsageError: The roles do not fit.
        """
        return config

    @classmethod
    def has_learner_here(cls, config: RunConfig) -> bool:
        """Returns whether the learner is known to be on this host.

        Args:
            config: The run's, as ``fit`` returned it.
        """
        return not cls.package

    @classmethod
    def open(
        cls,
        config: RunConfig,
        run: RunDirectory,
        stop: StopListener,
        say: Callable[[str], None],
    ) -> AbstractContextManager[tuple[Launcher, Hub]]:
        """Returns a context with a launcher for one call, and where processes join.

        Args:
            config: The run's, as ``fit`` returned it.
            run: The run; the caller holds its ``train`` lock.
            stop: Ends waiting.
            say: Called with words for what is waited for.

        Raises:
            UsageError: A host lacks what the run needs.
            RunError: A host is lost, or the system refuses a port.
        """
        raise NotImplementedError

    def start(self, command: Command, placed: Placed) -> Handle:
        """Starts a command. Returns soon, perhaps before the process has begun.

        Args:
            command: The command.
            placed: Where, and with what.

        Raises:
            TengenError: It cannot be started.
        """
        raise NotImplementedError

    def placed(self, worker: Worker) -> Placed:
        """Returns the place of a process.

        Raises:
            TengenError: It has none.
        """
        return Placed(worker=worker)

    def for_match(self, config: RunConfig, num_threads: int) -> Sequence[Placed]:
        """Returns the places of the processes that play a match once training ended.

        Args:
            config: The run's.
            num_threads: Cores to use on this machine.
        """
        worker = Worker(name=EVAL, roles=(EVAL,), num_threads=num_threads)
        return [Placed(worker=worker)]

    def begun(self, worker: Worker, begun: Begun) -> None:
        """Takes what a process says of itself once it has joined. Any thread."""


def match_places(config: RunConfig, table: Iterable[Placed]) -> list[Placed]:
    """Returns the places of a match: those of processes that acted or learned.

    A learner with fewer GPUs than an acting process has is left out: it could not play.

    Args:
        config: The run's.
        table: The places of the processes that have ended.
    """
    acting = (config.schedule.acting,)
    able = [one for one in table if one.worker.roles in (acting, *_LEARNERS)]
    able.sort(key=lambda one: one.worker.roles != acting)
    able = [one for one in able if _num_gpus(one) >= _num_gpus(able[0])]
    return [
        dataclasses.replace(
            one,
            worker=Worker(
                name=f"{EVAL}-{index}",
                roles=(EVAL,),
                index=index,
                num_threads=one.worker.num_threads,
            ),
        )
        for index, one in enumerate(able)
    ]


def _num_gpus(placed: Placed) -> float:
    return placed.num_gpus if placed.devices is None else len(placed.devices)


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
