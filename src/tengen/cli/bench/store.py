"""``tengen bench store``: throughput and latency of the store under eight workloads.

The server, the writers and the samplers are separate processes. CPU-seconds are those
of a client plus the server's. Samplers sample and gather batches, and send new
priorities if the workload has priorities; writers copy items into the store. As an
upper bound for samplers, ``copies`` is the rate of copying random items from an array
on the same machine. Samplers and copiers read every byte of their batches.
``read_share`` is the share of the sampling CPU-seconds that reading takes, and
``unread_share_of_copies`` compares samples with copies without the time of reading.
Measurements are interleaved, because a machine's memory speed varies from minute to
minute; each result is a median.

With ``--cold``, memory holds a tenth of the steps, and a disk the rest. With
``--paced``, all workloads run concurrently at the rates of the reference table, and a
call's latency is measured from its due time. Processes communicate through shared
memory or, with ``--over tcp``, over the loopback interface. With ``--selection``, only
the selection of items is measured, in this process.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.cli.bench.store_clients import (
    Client,
    latencies,
    run_copies,
    run_sampler,
    run_server,
    run_writer,
)
from tengen.cli.bench.store_workloads import VARIANTS, WORKLOADS, Workload
from tengen.config import check, check_range
from tengen.errors import RunError, TengenError, did_you_mean

Role = Callable[..., None]
"""The main function of a client process: (pipe, `Client`); sends its results."""

# The reference capacities are for a machine with 1 TB of memory. Divide them by this.
_DIVISOR = 12
# The share of the steps that a store with a disk holds in memory.
_MEMORY_SHARE = 0.1
_SPAWN = multiprocessing.get_context("spawn")


class ServerProcess:
    """A filled store in a process of its own. Exiting the context removes its folders.

    Args:
        workloads: The workloads whose tables the store has.
        over: How clients connect to the store, ``memory`` or ``tcp``.
        num_bytes: Maximum number of bytes of all steps.
        disk: A folder on the disk that holds nine tenths of the steps. None to hold all
            steps in memory.
    """

    def __init__(
        self,
        workloads: list[Workload],
        over: str,
        num_bytes: int,
        disk: Path | None = None,
    ) -> None:
        # Reserve a tenth of the memory for unfinished chunks and for batches on loan.
        wanted = [one.entries * one.stored_bytes / _DIVISOR for one in workloads]
        part = min(1.0, 0.9 * num_bytes / sum(wanted))
        self.capacities = [
            max(2 * one.batch_size, int(one.entries * part / _DIVISOR))
            for one in workloads
        ]
        shared = Path("/dev/shm")
        self._folder = tempfile.mkdtemp(
            prefix="tengen-bench-", dir=shared if shared.is_dir() else None
        )
        self.address = str(Path(self._folder) / "store")
        where: dict[str, Any] = {"memory_bytes": num_bytes}
        if over == "tcp":
            where["listen"] = "127.0.0.1:0"
        # Only with a folder can other processes map the store's shared memory.
        if over != "tcp" or disk is not None:
            where["directory"] = self.address
        self._disk: str | None = None
        if disk is not None:
            self._disk = tempfile.mkdtemp(prefix="tengen-bench-", dir=disk)
            where["memory_bytes"] = int(_MEMORY_SHARE * part * sum(wanted))
            where["disk_directory"] = self._disk
            where["disk_bytes"] = 2 * num_bytes
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_run_role,
            args=(run_server, theirs, workloads, self.capacities, where),
            daemon=True,
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> ServerProcess:
        try:
            self.address = _receive(self._pipe, self._process) or self.address
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._pipe.send("end")
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._disk is not None:
            shutil.rmtree(self._disk, ignore_errors=True)

    def measure(
        self, clients: list[tuple[Role, Client]]
    ) -> tuple[list[dict[str, Any]], float]:
        """Runs clients; returns their results, and all CPU-seconds with the server's.

        The server's CPU-seconds also cover the warm-up. They are scaled by the
        measurement's share of the total time.
        """
        before = self._cpu_s()
        results = together(clients)
        spent = self._cpu_s() - before
        seconds = clients[0][1].seconds
        share = seconds / (seconds + clients[0][1].warm_s)
        return results, sum(one["cpu_seconds"] for one in results) + spent * share

    def _cpu_s(self) -> float:
        self._pipe.send("used")
        return float(_receive(self._pipe, self._process))


def together(clients: Sequence[tuple[Role, object]]) -> list[dict[str, Any]]:
    """Runs each client in a process of its own; returns the clients' results."""
    started = []
    for role, client in clients:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=_run_role, args=(role, theirs, client), daemon=True
        )
        process.start()
        theirs.close()
        started.append((ours, process))
    results = [_receive(pipe, process) for pipe, process in started]
    for _, process in started:
        process.join()
    return results


def _run_role(role: Callable[..., None], pipe: Connection, *args: Any) -> None:
    """Runs ``role`` in a client process; sends a TengenError through ``pipe``."""
    try:
        role(pipe, *args)
    except TengenError as error:
        pipe.send(error)


def _receive(pipe: Connection, process: BaseProcess) -> Any:
    try:
        received = pipe.recv()
        if isinstance(received, TengenError):
            raise received
        return received
    except EOFError:
        process.join()
        raise RunError(
            f"benchmark process ({process.name}) ended with {process.exitcode}; see "
            "its output above"
        ) from None


_WARM_S = 1.0
# Measurements per result; a machine's speed varies from minute to minute.
_NUM_TURNS = 3
# For --selection: sizes of tables in items, items per batch, number of batches.
_SIZES = (400_000, 100_000_000)
_BATCH_SIZE = 32
_NUM_BATCHES = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench store``."""
    parser.add_argument(
        "--workload",
        default="all",
        help=f"{', '.join(WORKLOADS)}, all (all) or {', '.join(VARIANTS)}",
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="seconds per measurement (3)"
    )
    parser.add_argument(
        "--memory-gb", type=float, default=4.0, help="memory for steps, in GB (4)"
    )
    parser.add_argument(
        "--over",
        choices=("memory", "tcp"),
        default="memory",
        help="how processes connect to the store: shared memory, or TCP on loopback "
        "(memory)",
    )
    parser.add_argument(
        "--cold",
        type=Path,
        metavar="FOLDER",
        help="keep 90 %% of the steps in this folder, on a disk",
    )
    parser.add_argument(
        "--paced",
        action="store_true",
        help="run all workloads at once, at the rates of the reference system",
    )
    parser.add_argument(
        "--selection",
        action="store_true",
        help="measure only the selection of items, out of up to 100 million",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark; returns its report, with a table in ``rows``.

    Raises:
        UsageError: An option is invalid.
    """
    named = {**WORKLOADS, **VARIANTS}
    known = [*named, "all"]
    check(
        args.workload in known,
        "workload",
        args.workload,
        f"is not known; {did_you_mean(args.workload, known)}",
    )
    check_range("seconds", args.seconds, 0.1, 86_400, "give each measurement's time")
    check_range("memory-gb", args.memory_gb, 0.01, 1e6, "give the memory for steps")
    if args.selection:
        return _run_selection()
    names = list(WORKLOADS) if args.workload == "all" else [args.workload]
    workloads = [named[name] for name in names]
    memory_bytes = int(args.memory_gb * 1e9)
    if args.cold is not None:
        check(
            args.cold.is_dir(), "cold", args.cold, "must be a folder on a disk; make it"
        )
    if args.paced:
        return _run_paced(workloads, args.over, memory_bytes, args.seconds, args.cold)
    # Sampling must not remove items, because no writer runs at the same time.
    workloads = [one.at_full_speed() for one in workloads]
    rows = [
        _run_alone(one, args.over, memory_bytes, args.seconds, args.cold)
        for one in workloads
    ]
    return {
        "name": "store",
        "over": args.over,
        "paced": False,
        "cold": args.cold is not None,
        "rows": rows,
    }


def _run_alone(
    workload: Workload,
    over: str,
    memory_bytes: int,
    seconds: float,
    disk: Path | None,
) -> dict[str, Any]:
    """Measures copies, samples and inserts in turn, repeatedly; returns medians."""
    sizes = {"insert": 64 if workload.stored_bytes < 65536 else 1, "insert_1": 1}
    turns: list[dict[str, float]] = []
    with ServerProcess([workload], over, memory_bytes, disk) as server:
        client = Client(
            workload,
            server.address,
            _WARM_S,
            seconds / _NUM_TURNS,
            None,
            workload.batch_size,
        )
        for _ in range(_NUM_TURNS):
            copies = together([(run_copies, client)])[0]
            [sampled], sample_cpu = server.measure([(run_sampler, client)])
            turn = {
                "copies/cpu_s": copies["items"] / copies["cpu_seconds"],
                "samples/cpu_s": sampled["items"] / sample_cpu,
                "samples/s": sampled["items"] / sampled["seconds"],
                "gb/cpu_s": sampled["items"] * workload.item_bytes / sample_cpu / 1e9,
                "read_share": sampled["read_cpu_seconds"] / sample_cpu,
            }
            of_calls = latencies([sampled])
            turn |= {name: of_calls[name] for name in ("p50_ms", "p99_ms")}
            for name, size in sizes.items():
                writer = dataclasses.replace(client, batch_size=size)
                [written], cpu = server.measure([(run_writer, writer)])
                turn[f"{name}s/cpu_s"] = written["items"] / cpu
            turn["share_of_copies"] = turn["samples/cpu_s"] / turn["copies/cpu_s"]
            turn["unread_share_of_copies"] = (
                sampled["items"]
                / (sample_cpu - sampled["read_cpu_seconds"])
                * (copies["cpu_seconds"] - copies["read_cpu_seconds"])
                / copies["items"]
            )
            turns.append(turn)
        num_items = server.capacities[0]
    return {
        "workload": workload.name,
        "item_bytes": workload.item_bytes,
        "stored_bytes": workload.stored_bytes,
        "batch": workload.batch_size,
        "items": num_items,
        **{name: statistics.median(turn[name] for turn in turns) for name in turns[0]},
    }


def _run_paced(
    workloads: list[Workload],
    over: str,
    num_bytes: int,
    seconds: float,
    disk: Path | None,
) -> dict[str, Any]:
    with ServerProcess(workloads, over, num_bytes, disk) as server:
        clients: list[tuple[Role, Client]] = []
        for workload in workloads:
            for role, rate, size in (
                (run_writer, workload.adds_per_s, 1),
                (run_sampler, workload.samples_per_s, workload.batch_size),
            ):
                clients.append(
                    (
                        role,
                        Client(workload, server.address, _WARM_S, seconds, rate, size),
                    )
                )
        results, cpu_seconds = server.measure(clients)
    rows = []
    for (role, client), result in zip(clients, results, strict=True):
        rows.append(
            {
                "workload": client.workload.name,
                "does": "insert" if role is run_writer else "sample",
                "items/s": result["items"] / result["seconds"],
                "asked": client.rate,
                **latencies([result]),
            }
        )
    return {
        "name": "store",
        "over": over,
        "paced": True,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "cores_used": cpu_seconds / seconds,
        "rows": rows,
    }


def _run_selection() -> dict[str, Any]:
    """Measures selection alone; returns a row per sampler and size of table.

    ``us/item`` is the median time per item in microseconds. For prioritized samplers it
    includes the update of the priority. The largest tables use 2 GB of memory.
    """
    rows = []
    for num_items in _SIZES:
        for kind in ("uniform", "prioritized"):
            seconds = statistics.median(
                _core.benchmark_selection(kind, num_items, _BATCH_SIZE, _NUM_BATCHES)
                for _ in range(_NUM_TURNS)
            )
            rows.append(
                {
                    "sampler": kind,
                    "items": num_items,
                    "batch": _BATCH_SIZE,
                    "us/item": 1e6 * seconds / (_BATCH_SIZE * _NUM_BATCHES),
                }
            )
    return {"name": "store", "selection": True, "rows": rows}
