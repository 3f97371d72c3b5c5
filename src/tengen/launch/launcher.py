"""The interface of a launcher, which starts the processes of a run on hosts.

``local`` starts processes on this machine, ``ray`` starts them with actors of a Ray
cluster, and ``mpi`` on the hosts of ranks. Each command runs a role process
(``launch.child``), which connects back to the runner with its ticket (``launch.wire``).
The schedule decides when each role works, and the placement decides where.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from tengen.launch.budget import Budget
from tengen.launch.messages import Begun
from tengen.launch.reports.journal import RunJournal
from tengen.launch.wire import Hub
from tengen.launch.workers import EVAL, Worker
from tengen.roles import RunConfig, StopListener
from tengen.roles.doors import Connect, check_doors
from tengen.run import RunDirectory, run_identity

_LEARNERS = (("learn",), ("follow",))


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The placement of a process, with its resources and its location."""

    worker: Worker
    """The process, with its number of threads."""
    num_cpus: float = 0.0
    """Cores that a cluster reserves, possibly a fraction."""
    num_gpus: float = 0.0
    """GPUs that a cluster reserves."""
    is_given: bool = False
    """Whether the user set these resources; if not, they are a share of the host."""
    node: str = ""
    """Ray's ID of the preferred host; empty if any host is suitable."""
    rank: int = 0
    """The rank of ``mpirun`` that starts the process."""
    host: str = ""
    """The rank's host name."""
    devices: tuple[str, ...] | None = None
    """The GPUs that are visible to the process; None means those of its launcher."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A Python command line that a launcher starts."""

    words: list[str]
    """The command-line arguments of the Python interpreter."""
    environment: dict[str, str] = field(default_factory=dict)
    """Additional environment variables, which may contain secrets."""


@dataclass(frozen=True, kw_only=True)
class TrainingCall:
    """One call of ``tengen train``, which works on a run until its budget is spent."""

    config: RunConfig
    """The run's config, as returned by ``Launcher.fit``, with the task that the user
    typed."""
    run: RunDirectory
    """The run. The caller holds its ``train`` lock."""
    budget: Budget
    """The limits of the call."""
    journal: RunJournal
    """Receives every report of a role."""
    stop: StopListener
    """Makes the roles end their turns and save their state."""
    num_threads: int
    """Number of cores to use on this machine."""


class Poll(NamedTuple):
    """The state of a process."""

    has_room: bool = True
    """False while the process waits for cluster resources."""
    end: str = ""
    """How the process ended, such as ``signal 9``; empty while the process runs."""


class Handle(Protocol):
    """A process that a launcher started."""

    def poll(self) -> Poll:
        """Returns the state of the process. Cheap, but not thread-safe."""

    def kill(self) -> None:
        """Kills the process or cancels its start. Thread-safe; does not block."""


class Launcher:
    """The base class of launchers, which start a run's processes; see ``LAUNCHERS``.

    Attributes:
        package: The Python package that the launcher requires; the extra with the
            launcher's name installs it. If set, processes may be on other hosts.
        takes_turns: Whether roles take turns; otherwise all roles work concurrently.
        waits_for_lock: Whether processes of an earlier call may still save when a call
            begins, so that roles wait for their locks.
        num_cores: Number of cores of the largest host; None: use this machine's.
        connect: The run's address for processes on hosts without the run directory.
        logs: Text with the location of further logs, for errors about dead processes.
    """

    package: ClassVar[str] = ""
    takes_turns: ClassVar[bool] = False
    waits_for_lock: ClassVar[bool] = False
    num_cores: int | None = None
    connect: Connect | None = None
    logs: str = ""

    @classmethod
    def join(cls, threads: int | None) -> None:
        """Joins this process to a ``tengen train`` call with several processes.

        With ``mpirun``, only the first rank returns. The other ranks execute the first
        rank's requests and end when the first rank ends.

        Args:
            threads: Number of cores to use on each host; None for all.

        Raises:
            UsageError: The process is not part of such a call, or its version differs.
            RunError: A process does not start.
        """

    @classmethod
    def fit(cls, config: RunConfig, *, keeps_count: bool) -> RunConfig:
        """Returns a config whose roles fit the call's hosts. Called after ``join``.

        Args:
            config: The run's config.
            keeps_count: Whether the user set the number of acting processes. If not,
                the number is chosen to fit the hosts.

        Raises:
            UsageError: The roles do not fit the hosts.
        """
        return config

    @classmethod
    def check_doors(cls, config: RunConfig) -> None:
        """Checks that ``launch.listen`` is usable, if the learner is on this host.

        A learner on another host checks its own addresses.

        Args:
            config: The run's config, as returned by ``fit``.

        Raises:
            UsageError: A service cannot listen at its address.
        """
        if not cls.package:
            check_doors(config)

    @classmethod
    def open(cls, call: TrainingCall) -> AbstractContextManager[tuple[Launcher, Hub]]:
        """Returns a context manager for a call's launcher and the hub of its processes.

        Raises:
            UsageError: A host lacks something that the run requires.
            RunError: A host is lost, or no port is available.
        """
        raise NotImplementedError

    def start(self, command: Command, placed: Placed) -> Handle:
        """Starts a process for a command. May return before the process has started.

        Args:
            command: The command line of the process.
            placed: The location and resources of the process.

        Raises:
            TengenError: The command cannot be started.
        """
        raise NotImplementedError

    def placed(self, worker: Worker) -> Placed:
        """Returns the placement of a process.

        Raises:
            TengenError: The process has no placement.
        """
        return Placed(worker=worker)

    def for_match(self, config: RunConfig, num_threads: int) -> Sequence[Placed]:
        """Returns the placements of processes for the match after training.

        Args:
            config: The run's config.
            num_threads: Number of cores to use on this machine.
        """
        worker = Worker(name=EVAL, roles=(EVAL,), num_threads=num_threads)
        return [Placed(worker=worker)]

    def begun(self, worker: Worker, begun: Begun) -> None:
        """Called with the first message of a process that has joined. Thread-safe."""


def match_places(config: RunConfig, table: Iterable[Placed]) -> list[Placed]:
    """Returns placements for a match, on the resources of actors and learners.

    Learners with fewer GPUs than an acting process are left out, as they cannot play.

    Args:
        config: The run's config.
        table: The placements of processes that have ended.
    """
    acting = (config.schedule.acting,)
    able = [one for one in table if one.worker.roles in (acting, *_LEARNERS)]
    able.sort(key=lambda one: one.worker.roles != acting)
    able = [one for one in able if _num_gpus(one) >= _num_gpus(able[0])]
    places = []
    for index, one in enumerate(able):
        name = f"{EVAL}-{index}"
        worker = dataclasses.replace(one.worker, name=name, roles=(EVAL,), index=index)
        places.append(dataclasses.replace(one, worker=worker))
    return places


def _num_gpus(placed: Placed) -> float:
    return placed.num_gpus if placed.devices is None else len(placed.devices)


def log_name(roles: tuple[str, ...], index: int) -> str:
    """Returns the name of the file in ``RUN/logs`` that a process prints to.

    Args:
        roles: The roles that the process hosts.
        index: The index of the process among those with the same roles.
    """
    return f"{roles[0]}-{index}.log" if index else f"{roles[0]}.log"


def role_command(
    run: RunDirectory,
    worker: Worker,
    task: str | None,
    *,
    at_once: bool = False,
    waits_for_lock: bool = False,
    connect: Connect | None = None,
) -> list[str]:
    """Returns the arguments of the Python interpreter that runs a role process.

    Args:
        run: The run.
        worker: The process.
        task: The run's task if the user typed it, else None.
        at_once: Whether the run's other roles work concurrently.
        waits_for_lock: See ``RoleContext``.
        connect: The run's address for a host without the run directory, or None.
    """
    # -P prevents imports from the working directory, except of a task that was typed.
    words = ["-P", "-m", "tengen.launch.child", f"--index={worker.index}"]
    words.append(f"--identity={run_identity(run)}")
    if at_once:
        words.append("--at-once")
    if waits_for_lock:
        words.append("--waits-for-lock")
    if task is not None:
        words.append(f"--task={task}")
    if connect is not None:
        words.append(f"--connect={connect.address}")
        if connect.fingerprint is not None:
            words.append(f"--fingerprint={connect.fingerprint}")
    where = str(run.path.absolute())
    return [*words, "--", where, str(worker.num_threads), *worker.roles]
