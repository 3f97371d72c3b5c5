"""The experience store: eight reference workloads between processes of one host.

Every figure counts the CPU-seconds of the client and of the server together. Server,
writers and samplers are processes of their own. ``sample`` draws batches, gathers
them, and sends new priorities where the workload has them; ``insert`` copies items in;
``copy`` is what copying random items of as large an array costs on the same machine in
the same run. With ``--paced`` all workloads run at once at the reference's rates.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tengen.bench.store_clients import (
    Client,
    run_copies,
    run_sampler,
    run_server,
    run_writer,
)
from tengen.bench.store_workloads import WORKLOADS, Workload
from tengen.config import check, check_range
from tengen.errors import RunError, did_you_mean

__all__ = ["add_arguments", "run"]

# The reference's machine has a terabyte of memory; here capacities are a part of it.
_DIVISOR = 12
_WARM_S = 1.0
_SPAWN = multiprocessing.get_context("spawn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench store``."""
    parser.add_argument(
        "--workload", default="all", help=f"{', '.join(WORKLOADS)} or all (all)"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="a figure (3)")
    parser.add_argument(
        "--memory-gb", type=float, default=4.0, help="for steps, at most (4)"
    )
    parser.add_argument(
        "--paced", action="store_true", help="all at once, at the reference's rates"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Returns a row a workload.

    Raises:
        UsageError: An option is refused.
    """
    known = [*WORKLOADS, "all"]
    check(
        args.workload in known,
        "workload",
        args.workload,
        f"must be known; {did_you_mean(args.workload, known)}",
    )
    check_range("seconds", args.seconds, 0.1, 86_400, "give the seconds of a figure")
    check_range("memory-gb", args.memory_gb, 0.01, 1e6, "give what may be used")
    names = list(WORKLOADS) if args.workload == "all" else [args.workload]
    workloads = [WORKLOADS[name] for name in names]
    memory_bytes = int(args.memory_gb * 1e9)
    if args.paced:
        return _run_paced(workloads, memory_bytes, args.seconds)
    rows = [_run_alone(one, memory_bytes, args.seconds) for one in workloads]
    return {"name": "store", "paced": False, "rows": rows}


def _run_alone(workload: Workload, memory_bytes: int, seconds: float) -> dict[str, Any]:
    with _Server([workload], memory_bytes) as server:
        sizes = {"insert": 64 if workload.item_bytes < 65536 else 1, "insert_1": 1}
        client = Client(
            workload, server.directory, _WARM_S, seconds, None, workload.batch_size
        )
        copies = _together([(run_copies, client)])[0]
        sampled, sample_cpu = server.measure([(run_sampler, client)])
        row = {
            "workload": workload.name,
            "item_bytes": workload.item_bytes,
            "batch": workload.batch_size,
            "items": server.capacities[0],
            "copies/cpu_s": copies["items"] / copies["cpu_seconds"],
            "samples/cpu_s": sampled[0]["items"] / sample_cpu,
            "samples/s": sampled[0]["items"] / sampled[0]["seconds"],
            "p50_ms": sampled[0]["p50_ms"],
            "p99_ms": sampled[0]["p99_ms"],
        }
        for name, size in sizes.items():
            writer = Client(workload, server.directory, _WARM_S, seconds, None, size)
            written, cpu = server.measure([(run_writer, writer)])
            row[f"{name}s/cpu_s"] = written[0]["items"] / cpu
    row["share_of_copies"] = row["samples/cpu_s"] / row["copies/cpu_s"]
    return row


def _run_paced(
    workloads: list[Workload], memory_bytes: int, seconds: float
) -> dict[str, Any]:
    with _Server(workloads, memory_bytes) as server:
        clients: list[tuple[Callable[..., None], Client]] = []
        for workload in workloads:
            for role, rate, size in (
                (run_writer, workload.adds_per_s, 1),
                (run_sampler, workload.samples_per_s, workload.batch_size),
            ):
                clients.append(
                    (
                        role,
                        Client(
                            workload, server.directory, _WARM_S, seconds, rate, size
                        ),
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
                "p50_ms": result["p50_ms"],
                "p99_ms": result["p99_ms"],
                "max_ms": result["max_ms"],
            }
        )
    return {
        "name": "store",
        "paced": True,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "cores_used": cpu_seconds / seconds,
        "rows": rows,
    }


class _Server:
    """A store in a process of its own, filled; its folder goes with it."""

    def __init__(self, workloads: list[Workload], memory_bytes: int) -> None:
        # A tenth is left to chunks that are being filled and to batches on loan.
        wanted = [one.entries * one.item_bytes / _DIVISOR for one in workloads]
        part = min(1.0, 0.9 * memory_bytes / sum(wanted))
        self.capacities = [
            max(2 * one.batch_size, int(one.entries * part / _DIVISOR))
            for one in workloads
        ]
        shared = Path("/dev/shm")
        self._folder = tempfile.mkdtemp(
            prefix="tengen-bench-", dir=shared if shared.is_dir() else None
        )
        self.directory = str(Path(self._folder) / "store")
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=run_server,
            args=(theirs, workloads, self.capacities, self.directory, memory_bytes),
        )
        self._process.start()
        theirs.close()

    def __enter__(self) -> _Server:
        _receive(self._pipe, self._process)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._pipe.send("end")
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def measure(
        self, clients: list[tuple[Callable[..., None], Client]]
    ) -> tuple[list[dict[str, Any]], float]:
        """Returns what clients did, and the CPU seconds of all and the server.

        The server's warm-up counts as the measurement does, by its share of the time.
        """
        before = self._cpu_seconds()
        results = _together(clients)
        spent = self._cpu_seconds() - before
        seconds = clients[0][1].seconds
        share = seconds / (seconds + clients[0][1].warm_s)
        return results, sum(one["cpu_seconds"] for one in results) + spent * share

    def _cpu_seconds(self) -> float:
        self._pipe.send("cpu")
        return float(_receive(self._pipe, self._process))


def _together(
    clients: list[tuple[Callable[..., None], Client]],
) -> list[dict[str, Any]]:
    started = []
    for role, client in clients:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=role, args=(theirs, client))
        process.start()
        theirs.close()
        started.append((ours, process))
    results = [_receive(pipe, process) for pipe, process in started]
    for _, process in started:
        process.join()
    return results


def _receive(pipe: Connection, process: BaseProcess) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        process.join()
        raise RunError(
            f"benchmark process ({process.name}) ended with {process.exitcode}; "
            f"see its lines above"
        ) from None
