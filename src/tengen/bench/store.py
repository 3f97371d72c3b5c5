"""``tengen bench store``: the experience store under eight reference workloads.

Every figure counts the CPU-seconds of the client and of the server together. Server,
writers and samplers are processes of their own. ``sample`` draws batches, gathers
them, and sends new priorities where the workload has them; ``insert`` copies items in;
``copy`` is what copying random items from an array of the same size costs on the same
machine. Samplers and copiers read every byte of their batches; ``read_share`` is the
part of a sampler's CPU-seconds that reading takes, and ``unread_share_of_copies``
compares both sides without it. The measurements take turns, because the speed of a
machine's memory changes from minute to minute, and a figure is the median of its turns.
With ``--cold`` memory holds a tenth of the steps, and the rest lies on a disk. With
``--paced`` all workloads run at once at the reference's rates, and a call's latency
counts from when the call was due. The processes share memory, or with ``--over tcp``
talk over the loopback interface, as if they were on different hosts. With
``--selection`` there are no processes, and only the choice of the next items is
measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from pathlib import Path
from typing import Any

from tengen.bench.store_clients import (
    Client,
    latencies,
    run_copies,
    run_sampler,
    run_writer,
)
from tengen.bench.store_processes import Role, ServerProcess, together
from tengen.bench.store_selection import run_selection
from tengen.bench.store_workloads import VARIANTS, WORKLOADS, Workload
from tengen.config import check, check_range
from tengen.errors import did_you_mean

__all__ = ["add_arguments", "run"]

_WARM_S = 1.0
# Turns of a figure: a machine's speed changes from minute to minute.
_NUM_TURNS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench store``."""
    parser.add_argument(
        "--workload",
        default="all",
        help=f"{', '.join(WORKLOADS)}, all (all) or {', '.join(VARIANTS)}",
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="seconds of each measurement (3)"
    )
    parser.add_argument(
        "--memory-gb", type=float, default=4.0, help="most memory for steps, in GB (4)"
    )
    parser.add_argument(
        "--over",
        choices=("memory", "tcp"),
        default="memory",
        help="how processes reach the store: shared memory, or TCP on loopback "
        "(memory)",
    )
    parser.add_argument(
        "--cold",
        type=Path,
        metavar="FOLDER",
        help="keep nine tenths of the steps in this folder, on a disk",
    )
    parser.add_argument(
        "--paced",
        action="store_true",
        help="run all workloads at once, at the reference's rates",
    )
    parser.add_argument(
        "--selection",
        action="store_true",
        help="measure only which items are drawn, from up to 100 M items",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Returns one row for each workload.

    Raises:
        UsageError: An option is refused.
    """
    named = {**WORKLOADS, **VARIANTS}
    known = [*named, "all"]
    check(
        args.workload in known,
        "workload",
        args.workload,
        f"must be known; {did_you_mean(args.workload, known)}",
    )
    check_range("seconds", args.seconds, 0.1, 86_400, "give the seconds of a figure")
    check_range("memory-gb", args.memory_gb, 0.01, 1e6, "give what may be used")
    if args.selection:
        return run_selection()
    names = list(WORKLOADS) if args.workload == "all" else [args.workload]
    workloads = [named[name] for name in names]
    memory_bytes = int(args.memory_gb * 1e9)
    if args.cold is not None:
        check(
            args.cold.is_dir(), "cold", args.cold, "must be a folder on a disk; make it"
        )
    if args.paced:
        return _run_paced(workloads, args.over, memory_bytes, args.seconds, args.cold)
    # Nothing inserts while samples are measured, so items must not run out of uses.
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
    """Measures copies, samples and inserts in turns; the median of the turns."""
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
