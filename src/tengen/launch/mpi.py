"""The MPI launcher: every role at once, beside the ranks of ``mpirun``.

::

    mpirun -n 8 tengen train go/9 --launch mpi

All ranks make the same call. The first rank is the runner, and holds the roles that
learn and judge. Each of the other ranks holds one acting process, by the table of
``launch.ranks``.
A host needs tengen, and the run directory under the same path. If a rank dies,
``mpirun`` ends the call, and the same command resumes the run. A silent rank, for
example on a host that is cut off, also ends the call.

MPI carries messages of some hundred bytes, a few for each turn of a role: see
``launch.ranks.post``.

Source: MPI 3.1, sections 3.7 (non-blocking communication), 3.8 (probe) and 12.4
(threads); Open MPI 4, ``mpirun(1)``, "Process Termination / Signal Handling".
"""

from __future__ import annotations

import atexit
import os
import platform
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Sequence
from typing import Any, NoReturn

from tengen import __version__
from tengen.errors import RunError, UsageError
from tengen.launch.at_once import run_at_once
from tengen.launch.budget import Budget
from tengen.launch.process import (
    Child,
    RoleProcess,
    child_arguments,
    start_process,
)
from tengen.launch.protocol import log_name
from tengen.launch.ranks.devices import environment_with, visible_devices
from tengen.launch.ranks.holder import Holder
from tengen.launch.ranks.mpi_wire import MpiWire, load_mpi
from tengen.launch.ranks.named_gpus import check_named_gpus
from tengen.launch.ranks.post import SILENCE_S, Post
from tengen.launch.ranks.runner import Runner
from tengen.launch.ranks.table import Placed, RankInfo, filled, place
from tengen.launch.reports.journal import RunJournal
from tengen.observe import HostsLog, Place
from tengen.roles import (
    RoleResources,
    RunConfig,
    StopListener,
    writer_directory,
)
from tengen.run import RunDirectory, available_cores, lock_holder

__all__ = [
    "MpiLauncher",
    "fit_ranks",
    "has_learner_here",
    "join_ranks",
    "run_mpi",
]

# Variables that Open MPI's mpirun, Slurm's srun, and mpirun of MPICH and Intel set.
_STARTED = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LEFT_S = 600.0
"""Seconds for processes of an earlier call to end, after their ranks were killed. They
end within seconds of their own CPU time, and may get few on a busy host."""
_LOOK_S = 0.05

_runner: Runner | None = None


def join_ranks(threads: int | None) -> None:
    """Makes this process take its part among the ranks of ``mpirun``.

    The first rank returns once all ranks have begun. The other ranks never return: they
    hold roles until the first rank ends, and then end their process.

    Args:
        threads: Cores to use on each host; None for all.

    Raises:
        UsageError: The command was not started by ``mpirun``, MPI cannot be loaded, or
            the ranks run different versions.
        RunError: A rank does not begin.
    """
    global _runner
    if _runner is not None:
        return
    if not any(name in os.environ for name in _STARTED):
        raise UsageError(
            "launch (mpi) must be started by mpirun; mpirun -n 4 tengen train TASK "
            "--launch mpi"
        )
    mpi = load_mpi()
    wire = MpiWire(mpi)
    info = _describe(wire.rank, threads)
    if wire.rank > 0:
        _hold(mpi, wire, info)
    _runner = Runner(wire, info)
    atexit.register(_leave, mpi, _runner)
    _runner.begin()


def fit_ranks(config: RunConfig, *, keeps_count: bool) -> RunConfig:
    """Returns a config whose roles fit the ranks.

    Args:
        config: The run's.
        keeps_count: Whether the user gave the number of acting processes; else there is
            one for each rank that is left.

    Raises:
        UsageError: The roles need more ranks or fewer, or no rank has what a role asks
            for or a GPU that the config names.
    """
    ranks = _joined().ranks
    config = config if keeps_count else filled(config, ranks)
    check_named_gpus(config, ranks, place(config, ranks))
    return config


def has_learner_here(config: RunConfig) -> bool:
    """Returns whether the learner's rank is on the first rank's host.

    Args:
        config: The run's, as ``fit_ranks`` returned it.
    """
    ranks = _joined().ranks
    (learner,) = (one for one in place(config, ranks) if "learn" in one.worker.roles)
    return learner.host == ranks[0].host


def run_mpi(
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains by processes beside the ranks of ``mpirun``; see ``run_at_once``."""
    runner = _joined()
    table = place(config, runner.ranks)
    runner.know(table)
    call = uuid.uuid4().hex
    had_earlier = bool(run.incarnations("hosts"))
    process = run.lock_holder("train") or ""
    log = HostsLog(run, call, process, [_place(one) for one in table])
    watching = _Watching(runner, stop, log)
    try:
        runner.look(run, call)
        for line in _lines(runner.ranks, table):
            print(line, flush=True)
        if had_earlier:
            journal.progress({"starting": "waiting for processes of an earlier call"})
            _await_earlier(run, table, stop)
        launcher = MpiLauncher(run, config.task, runner, table)
        run_at_once(
            launcher,
            config,
            run,
            budget,
            journal,
            stop,
            num_threads=num_threads,
        )
        if runner.losses:
            raise RunError(runner.losses[0])
    finally:
        watching.close()
        log.close()


class MpiLauncher:
    """Starts processes beside the ranks; see ``Launcher``.

    Args:
        run: The run, in a folder that the host of every rank has.
        task: The run's, as the user typed it.
        runner: Speaks with the other ranks.
        table: Which process is where.
    """

    def __init__(
        self, run: RunDirectory, task: str, runner: Runner, table: Sequence[Placed]
    ) -> None:
        self._run = run
        self._task = task
        self._runner = runner
        self._table = {(one.worker.roles, one.worker.index): one for one in table}

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> RoleProcess:
        """See ``Launcher.start``; the table says how many threads a process has."""
        placed = self._table.get((roles, index))
        if placed is None:
            raise UsageError(
                f"launch (mpi) has no rank for {roles[0]}-{index}; end this call and "
                f"start mpirun with more ranks"
            )
        threads = placed.worker.num_threads
        words = child_arguments(
            self._run, roles, threads, self._task, index, at_once=True
        )
        logs = str(self._run.logs / log_name(roles, index))

        def start_here() -> Child:
            return start_process(
                [sys.executable, *words],
                own_session=True,
                environment=environment_with(placed.devices),
            )

        def start_beside() -> Child:
            return self._runner.start(placed.rank, words, placed.devices)

        if placed.rank == 0:
            return RoleProcess(roles, start_here, logs)
        return RoleProcess(roles, start_beside, f"{logs} and what mpirun prints")


class _Watching:
    """Names the ranks that died when ``mpirun`` ends the call because of them.

    ``mpirun`` does not say why: it sends every rank the same signal as Ctrl-C.
    """

    def __init__(self, runner: Runner, stop: StopListener, log: HostsLog) -> None:
        self._runner = runner
        self._stop = stop
        self._log = log
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the watching and logs lost ranks. Blocks for a second at most."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        told: set[str] = set()
        was_asked = False
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(_LOOK_S)
            if self._stop.reason == "interrupted" and not was_asked:
                was_asked = True
                self._runner.find_dead()
            for line in self._runner.losses:
                if line not in told:
                    told.add(line)
                    self._log.lost(line)
                    if was_asked:
                        print("tengen:", line, file=sys.stderr, flush=True)


def _joined() -> Runner:
    assert _runner is not None, "join_ranks comes first"
    return _runner


def _describe(rank: int, threads: int | None) -> RankInfo:
    cores = available_cores()
    bound = ""
    if hasattr(os, "sched_getaffinity"):
        bound = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    return RankInfo(
        rank=rank,
        host=socket.gethostname(),
        cores=cores if threads is None else max(1, min(cores, threads)),
        bound_to=bound,
        devices=visible_devices(),
        version=__version__,
        python=".".join(platform.python_version_tuple()[:2]),
    )


def _hold(mpi: Any, wire: MpiWire, info: RankInfo) -> NoReturn:
    """Holds roles until the runner ends; does not return."""
    # mpirun sends signals to all ranks; only the runner decides what they mean.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lost = f"rank (0) said nothing for {SILENCE_S:g} s; see the host of the runner"
    holder = Holder(lambda message: post.send(0, message))
    post = Post(
        wire,
        [0],
        lambda rank, message: holder.take(message),
        lambda rank: holder.lose(lost),
    )
    post.start()
    post.send(0, {"hello": vars(info)})
    why = holder.wait()
    if why:
        print("tengen:", why, file=sys.stderr, flush=True)
    if why or not post.close():
        mpi.COMM_WORLD.Abort(1)
    mpi.Finalize()
    sys.exit(0)


def _leave(mpi: Any, runner: Runner) -> None:
    """Ends the other ranks when the first one ends."""
    if runner.end():
        mpi.Finalize()
    else:
        # MPI would wait for lost ranks.
        sys.stdout.flush()
        sys.stderr.flush()
        mpi.COMM_WORLD.Abort(1)


def _place(one: Placed) -> Place:
    return Place(
        place=f"rank {one.rank}",
        host=one.host,
        name=one.worker.name,
        roles=one.worker.roles,
        num_threads=one.worker.num_threads,
    )


def _lines(ranks: Sequence[RankInfo], table: Sequence[Placed]) -> list[str]:
    """Returns the table as text, one line for each rank."""
    lines = []
    for rank in ranks:
        held = [
            f"{one.worker.name} ({one.worker.num_threads}{_gpus(one)})"
            for one in table
            if one.rank == rank.rank
        ]
        lines.append(f"rank {rank.rank} on {rank.host}: {', '.join(held)}")
    return [*lines, "in brackets the threads of each process, and its GPUs"]


def _gpus(one: Placed) -> str:
    if one.devices is None:
        return ""
    return f", GPU {','.join(one.devices) or 'none'}"


def _await_earlier(
    run: RunDirectory, table: Sequence[Placed], stop: StopListener
) -> None:
    """Waits while processes of an earlier call, whose ranks were killed, save."""
    locks = []
    for one in table:
        for role in one.worker.roles:
            names = (role, f"{role}-{one.worker.index}")
            locks += [run.path / "locks" / name for name in names]
            if role == "selfplay":
                folder = writer_directory(run, one.worker.index)
                locks.append(folder / "lock")
    for _ in range(round(_LEFT_S / _LOOK_S)):
        if stop.event.is_set() or not any(map(lock_holder, locks)):
            return
        stop.event.wait(_LOOK_S)
