"""A store in a process of its own for benchmarks, and clients in other processes."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tengen.bench.store_clients import Client, run_server
from tengen.bench.store_workloads import Workload
from tengen.errors import RunError, TengenError

__all__ = ["Role", "ServerProcess", "together"]

Role = Callable[..., None]
"""The function of a client's process: takes a pipe and a `Client`, sends results."""

# The reference's machine has a terabyte of memory; capacities here are that much
# smaller.
_DIVISOR = 12
# The share of its steps that a store with a disk keeps in memory.
_MEMORY_SHARE = 0.1
_SPAWN = multiprocessing.get_context("spawn")


class ServerProcess:
    """A filled store in a process of its own; closing it removes its folders.

    Args:
        workloads: Their tables.
        over: How clients reach it, ``memory`` or ``tcp``.
        num_bytes: Bytes of all steps, at most.
        disk: A folder on a disk: memory holds a tenth, and the rest goes there; None:
            memory holds all.
    """

    def __init__(
        self,
        workloads: list[Workload],
        over: str,
        num_bytes: int,
        disk: Path | None = None,
    ) -> None:
        # A tenth is left for chunks that are being filled and for batches on loan.
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
        # Without a folder, other processes could not open the store's rows.
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
            target=_run,
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
        """Returns the clients' results, and the CPU-seconds of clients and server.

        The server's CPU-seconds include its warm-up and are scaled to the measurement.
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
    """Runs clients in processes of their own, and returns what each sends."""
    started = []
    for role, client in clients:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_run, args=(role, theirs, client), daemon=True)
        process.start()
        theirs.close()
        started.append((ours, process))
    results = [_receive(pipe, process) for pipe, process in started]
    for _, process in started:
        process.join()
    return results


def _run(role: Callable[..., None], pipe: Connection, *args: Any) -> None:
    """Runs a role, and reports an error of it to the benchmark in one line."""
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
            f"benchmark process ({process.name}) ended with {process.exitcode}; "
            f"see its lines above"
        ) from None
