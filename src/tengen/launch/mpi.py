"""The MPI launcher, which starts all roles concurrently on the hosts of ``mpirun``.

::

    mpirun -n 8 tengen train go/9 --launch mpi

All ranks execute the same command. The first rank is the runner and starts the roles
that learn, gate and rate. Each of the other ranks starts one acting process, as planned
by ``launch.ranks.table``. All processes join the runner over the hosts' network. Each
host needs tengen, and the run directory under the same path. If a rank dies or its host
is disconnected, the call ends, and the same command resumes the run. A match after
training uses the cores and GPUs of acting processes and learners.

MPI is used only at the start, when each rank sends its resources to the first rank and
receives a ticket with which it joins. All later messages use the hosts' network.

Source: MPI 3.1, section 3.7 (nonblocking communication); Open MPI 4,
``mpirun(1)``, "Process Termination / Signal Handling".
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import importlib
import ipaddress
import json
import os
import platform
import signal
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tengen import __version__
from tengen.errors import RunError, TengenError, UsageError
from tengen.experience.games.generations import writer_directory
from tengen.launch.launcher import (
    Command,
    Handle,
    Launcher,
    Placed,
    TrainingCall,
    match_places,
)
from tengen.launch.local import LocalLauncher
from tengen.launch.messages import Begun
from tengen.launch.ranks.runner import Holder, Runner
from tengen.launch.ranks.table import (
    RankInfo,
    check_alike,
    check_named_gpus,
    filled,
    place,
    visible_devices,
)
from tengen.launch.wire import Hub, join
from tengen.launch.workers import Worker
from tengen.observe import HostsLog
from tengen.roles import RunConfig
from tengen.roles.doors import check_doors
from tengen.run import available_cores, lock_holder

# Environment variables with the rank, set by Open MPI, Slurm's srun, and MPICH.
_STARTED = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LEFT_S = 600.0
"""Time limit in seconds for processes of an earlier call to exit. They need only
seconds of CPU time, which may take minutes on a busy host."""
_LOOK_S = 0.05
_HELLO_S = 600.0
"""Time limit in seconds for the start of all ranks, long enough for slow hosts. If a
rank dies, ``mpirun`` ends the call earlier."""
_SAY_S = 10.0
"""Interval of the message that the runner is waiting for ranks, in seconds."""
_POLL_S = 0.025
_MOST_BYTES = 1 << 14
"""The maximum size of an MPI message between ranks, in bytes."""

_met: tuple[Runner, Hub] | None = None


class MpiLauncher(Launcher):
    """A launcher that starts processes on the hosts of the ranks of ``mpirun``.

    Args:
        runner: The connection to the other ranks.
        table: The placements of all processes on ranks.
    """

    package = "mpi4py"
    waits_for_lock = True
    logs = " and what mpirun prints"

    def __init__(self, runner: Runner, table: Sequence[Placed]) -> None:
        self._runner = runner
        self._here = LocalLauncher(own_session=True)
        self._table = {(one.worker.roles, one.worker.index): one for one in table}

    @classmethod
    def join(cls, threads: int | None) -> None:
        """Joins this process to the ranks of ``mpirun``.

        The first rank returns when all ranks have started. The other ranks never
        return. They start role processes until the first rank ends, and then exit.

        Raises:
            UsageError: The command was not started with ``mpirun``, MPI cannot be
                loaded, or the ranks run different versions.
            RunError: A rank does not start.
        """
        global _met
        if _met is not None:
            return
        if not any(name in os.environ for name in _STARTED):
            raise UsageError(
                "launch (mpi) must be started with mpirun; use mpirun -n 4 tengen "
                "train TASK --launch mpi"
            )
        mpi = _load_mpi()
        rank = int(mpi.COMM_WORLD.Get_rank())
        if rank > 0:
            _hold(mpi, _describe(rank, threads))
        atexit.register(_abort, mpi)
        ranks = meet(mpi.COMM_WORLD, _describe(0, threads))
        hub = Hub.on_network(_addresses(ranks))
        tickets = {one.rank: hub.ticket() for one in ranks[1:]}
        hand_out(mpi.COMM_WORLD, {k: one.environment for k, one in tickets.items()})
        runner = Runner(ranks, tickets)
        atexit.unregister(_abort)
        atexit.register(_leave, mpi, runner, hub)
        _met = runner, hub
        runner.begin()
        check_alike(ranks)

    @classmethod
    def fit(cls, config: RunConfig, *, keeps_count: bool) -> RunConfig:
        """See ``Launcher.fit``. Each rank without another role gets an acting process.

        Raises:
            UsageError: The number of ranks does not match the roles, or no rank has the
                cores or GPUs that a role requests or the config names.
        """
        ranks = _joined()[0].ranks
        config = config if keeps_count else filled(config, ranks)
        check_named_gpus(config, ranks, place(config, ranks))
        return config

    @classmethod
    def check_doors(cls, config: RunConfig) -> None:
        """See ``Launcher.check_doors``."""
        ranks = _joined()[0].ranks
        table = place(config, ranks)
        (learner,) = (one for one in table if "learn" in one.worker.roles)
        if learner.host == ranks[0].host:
            check_doors(config)

    @classmethod
    @contextlib.contextmanager
    def open(cls, call: TrainingCall) -> Iterator[tuple[Launcher, Hub]]:
        """See ``Launcher.open``."""
        runner, hub = _joined()
        run = call.run
        table = place(call.config, runner.ranks)
        runner.know(table)
        identity = uuid.uuid4().hex
        had_earlier = bool(run.incarnations("hosts"))
        process = run.lock_holder("train") or ""
        rows = [one.worker.row(f"rank {one.rank}", one.host) for one in table]
        log = HostsLog(run, identity, process, rows)

        def tell(loss: str) -> None:
            with contextlib.suppress(RunError):  # the disk may be full
                log.lost(loss)
            # Print the loss, because mpirun ends the call without giving a reason.
            print("tengen:", loss, file=sys.stderr, flush=True)

        runner.watch(tell)
        try:
            runner.look(run, identity)
            for line in _lines(runner.ranks, table):
                print(line, flush=True)
            if had_earlier:
                _await_earlier(call, table)
            yield cls(runner, table), hub
            if runner.losses:
                raise RunError(runner.losses[0])
        finally:
            runner.watch(None)
            log.close()

    def start(self, command: Command, placed: Placed) -> Handle:
        """See ``Launcher.start``."""
        where = self._here if placed.rank == 0 else self._runner
        return where.start(command, placed)

    def placed(self, worker: Worker) -> Placed:
        """See ``Launcher.placed``."""
        found = self._table.get((worker.roles, worker.index))
        if found is None:
            raise UsageError(
                f"launch (mpi) has no rank for {worker.roles[0]}-{worker.index}; stop "
                "this call, and start mpirun with more ranks"
            )
        return found

    def for_match(self, config: RunConfig, num_threads: int) -> Sequence[Placed]:
        """See ``Launcher.for_match``."""
        return match_places(config, self._table.values())


def _joined() -> tuple[Runner, Hub]:
    assert _met is not None, "join comes first"
    return _met


def _addresses(ranks: Sequence[RankInfo]) -> list[str]:
    """Returns this host's IP addresses that the hosts of other ranks may reach."""
    others = {one.host for one in ranks} - {ranks[0].host}
    if not others:
        return ["127.0.0.1"]
    found: dict[str, None] = {}
    # Connecting a UDP socket selects the local address without sending a packet.
    for host in sorted(others):
        with contextlib.suppress(OSError):
            family, kind, _, _, where = socket.getaddrinfo(
                host, 9, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind) as way:
                way.connect(where)
                found[str(way.getsockname()[0])] = None
    with contextlib.suppress(OSError):
        for *_, where in socket.getaddrinfo(ranks[0].host, 9):
            number = ipaddress.ip_address(str(where[0]).partition("%")[0])
            # Other hosts cannot reach this host at loopback or link-local addresses.
            if not (number.is_loopback or number.is_link_local):
                found[str(number)] = None
    return list(found) or [ranks[0].host]


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
        devices=visible_devices(os.environ, Path("/dev")),
        version=__version__,
        python=".".join(platform.python_version_tuple()[:2]),
    )


def _load_mpi() -> Any:
    """Imports and initialises ``mpi4py.MPI``.

    Raises:
        UsageError: MPI cannot be loaded.
    """
    rc: Any = importlib.import_module("mpi4py").rc
    rc.initialize = rc.finalize = False
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"launch (mpi) needs the MPI library, which cannot be loaded, {error}; "
            "install Open MPI (apt-get install openmpi-bin)"
        ) from None
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_FUNNELED)
    return mpi


def meet(
    comm: Any, info: RankInfo, *, hello_s: float = _HELLO_S, say_s: float = _SAY_S
) -> list[RankInfo]:
    """Receives the descriptions of all other ranks. Called by the first rank. Blocks.

    Meanwhile it prints which ranks are missing.

    Args:
        comm: The MPI communicator of all ranks.
        info: The first rank's description.
        hello_s: Time limit in seconds.
        say_s: Interval of the printed lines, in seconds.

    Returns:
        The descriptions of all ranks, in order.

    Raises:
        RunError: Ranks did not send their descriptions in time; the message names them.
    """
    found = {rank: bytearray(_MOST_BYTES) for rank in range(1, comm.Get_size())}
    requests = {rank: comm.Irecv(data, source=rank) for rank, data in found.items()}
    begun_s = said_s = time.monotonic()
    while missing := [rank for rank, one in requests.items() if not one.Test()]:
        names = ", ".join(map(str, missing))
        now_s = time.monotonic()
        if now_s - begun_s >= hello_s:
            raise RunError(
                f"ranks ({names}) did not start within {hello_s:g} s; see their "
                "output, and give mpirun hosts with the same version of tengen"
            )
        if now_s - said_s >= say_s:
            said_s = now_s
            print(f"waiting for ranks {names} to start", flush=True)
        time.sleep(_POLL_S)
    fields = {field.name for field in dataclasses.fields(RankInfo)}
    told = [json.loads(data.rstrip(b"\0")) for data in found.values()]
    # Ignore fields of a rank with a different version; check_alike rejects it later.
    return [
        info,
        *(RankInfo(**{key: one[key] for key in fields & one.keys()}) for one in told),
    ]


def hand_out(comm: Any, tickets: Mapping[int, Mapping[str, str]]) -> None:
    """Sends each rank the environment of its ticket. Called by the first rank. Blocks.

    Args:
        comm: The MPI communicator of all ranks.
        tickets: By rank the environment variables of its ticket.
    """
    _await(*(comm.Isend(_packed(one), dest=rank) for rank, one in tickets.items()))


def introduce(comm: Any, info: RankInfo) -> dict[str, str]:
    """Sends this rank's description to the first rank; returns its ticket. Blocks.

    If the first rank dies, ``mpirun`` kills this process.
    """
    answer = bytearray(_MOST_BYTES)
    _await(comm.Isend(_packed(vars(info)), dest=0), comm.Irecv(answer, source=0))
    ticket: dict[str, str] = json.loads(answer.rstrip(b"\0"))
    return ticket


def _await(*requests: Any) -> None:
    """Polls MPI requests until they complete. MPI's own wait would keep a core busy."""
    while not all(request.Test() for request in requests):
        time.sleep(_POLL_S)


def _packed(message: Mapping[str, Any]) -> bytes:
    """Returns a message as JSON.

    Raises:
        RunError: It is longer than ``_MOST_BYTES``.
    """
    data = json.dumps(message).encode()
    if len(data) > _MOST_BYTES:
        raise RunError(
            f"message ({len(data)} bytes) must have at most {_MOST_BYTES}; give the "
            "rank fewer GPUs with CUDA_VISIBLE_DEVICES"
        )
    return data


def _hold(mpi: Any, info: RankInfo) -> NoReturn:
    """Starts this rank's processes for the runner; exits when the runner ends."""
    # mpirun sends signals to all ranks, but only the runner acts on them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ticket = introduce(mpi.COMM_WORLD, info)
    why = ""
    try:
        stream = join(ticket, Begun(os.getpid(), info.host))
        if not Holder(stream).run():
            why = "rank (0) has ended; see the runner's host"
    except TengenError as error:
        why = str(error)
    if why:
        print("tengen:", why, file=sys.stderr, flush=True)
        _abort(mpi)
    mpi.Finalize()
    sys.exit(0)


def _leave(mpi: Any, runner: Runner, hub: Hub) -> None:
    """Ends all other ranks, because the first rank ends."""
    hub.close()
    if runner.end():
        mpi.Finalize()
    else:
        _abort(mpi)


def _abort(mpi: Any) -> None:
    """Ends all ranks immediately; ``MPI_Finalize`` would wait for lost ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    mpi.COMM_WORLD.Abort(1)


def _lines(ranks: Sequence[RankInfo], table: Sequence[Placed]) -> list[str]:
    """Returns lines to print, which list the processes of each rank."""
    lines = []
    for rank in ranks:
        held = [
            f"{one.worker.name} ({one.worker.num_threads}{_gpus(one)})"
            for one in table
            if one.rank == rank.rank
        ]
        lines.append(f"rank {rank.rank} on {rank.host}: {', '.join(held)}")
    return [*lines, "in brackets: the threads and GPUs of each process"]


def _gpus(one: Placed) -> str:
    if one.devices is None:
        return ""
    return f", GPU {','.join(one.devices) or 'none'}"


def _await_earlier(call: TrainingCall, table: Sequence[Placed]) -> None:
    """Waits for processes of an earlier call, which may still save their state.

    Only then are the run's counts of frames, games and CPU time complete.
    """
    locks = []
    for one in table:
        for role in one.worker.roles:
            names = (role, f"{role}-{one.worker.index}")
            locks += [call.run.path / "locks" / name for name in names]
            if role == "selfplay":
                folder = writer_directory(call.run, one.worker.index)
                locks.append(folder / "lock")
    for _ in range(round(_LEFT_S / _LOOK_S)):
        if call.stop.event.is_set() or not any(map(lock_holder, locks)):
            return
        call.stop.event.wait(_LOOK_S)
