"""How much of the attainable rate a thousand actors get of one inference server.

    python benchmarks/cluster/simulated_actors.py [--tcp] [--net nature] [--rounds 9]
        [--json]

Simulated actors have one row each and a connection each: ask, wait for the answer, wait
16 ms, as an environment's step takes, ask again. Eight processes have an event loop in
C each, so that the load costs little. The server is ``InferenceServer`` behind the
doors of the role, in a process of its own.

What is attainable is measured by the same actors in the same processes: they take turns
with a server in C that answers each request at once by as many bytes and does nothing
else. A round is compared with the mean of the one before and the one behind, and the
median of these shares is told. With a network, what the network alone answers in
batches of the same size is the bound where it is lower. Latency is counted from when a
request was due, which is 16 ms after the answer before, whether or not it could be sent
then.

At last one of the processes is killed with a tenth of the actors, and at least one. The
longest time for which no other actor was answered is told, before that and from then
on.

Prints a table, and the last line as JSON (``--json``: alone). Needs Linux and a C
compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from simulated_servers import REPLY_BYTES, Workload, echo, serve

from tengen.inference import RowArrays
from tengen.inference.central import INFERENCE, connect_rows
from tengen.inference.central.messages import OPEN, REQUEST, Request
from tengen.inference.central.shared_rows import receive_shared
from tengen.transport import Client

WARM_S = 0.5
MOST_ANSWERS = 4_000_000
FORK = multiprocessing.get_context("fork")


class Actor(ctypes.Structure):
    """As in simulated_actors.c."""

    _fields_ = [
        ("fd", ctypes.c_int32),
        ("body", ctypes.c_void_p),
        ("due_ns", ctypes.c_int64),
        ("number", ctypes.c_uint64),
        ("received", ctypes.c_int64),
        ("reply", ctypes.c_char * REPLY_BYTES),
    ]


def build() -> ctypes.CDLL:
    """Compiles the load."""
    library = Path(tempfile.mkdtemp()) / "load.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", library, source], check=True)
    loops = ctypes.CDLL(str(library))
    loops.load.restype = ctypes.c_int64
    return loops


class Fleet:
    """Actors of one process on both servers; opens their sessions."""

    def __init__(self, work: Workload, count: int, ours: Any, theirs: Any) -> None:
        self._kept: list[Any] = []
        self.actors = {
            "server": self._table([self._session(work, ours) for _ in range(count)]),
            "echo": self._table([self._bare(work, theirs) for _ in range(count)]),
        }

    def _table(self, actors: list[tuple[socket.socket, Any]]) -> Any:
        table = (Actor * len(actors))()
        for one, (connection, body) in zip(table, actors, strict=True):
            self._kept += [connection, body]
            connection.setblocking(True)
            one.fd, one.body = connection.fileno(), body.ctypes.data
        return table

    def _session(self, work: Workload, address: Any) -> tuple[socket.socket, Any]:
        client = Client(INFERENCE, address)
        connection, is_shared = connect_rows(client, work.signature, 1)()
        if not is_shared:
            return connection, np.zeros(work.body_bytes, np.uint8)
        connection.sendall(REQUEST.pack(*Request(OPEN, 0, 0)))
        memory = receive_shared(connection, RowArrays.num_bytes(work.signature, 1))
        arrays = RowArrays(work.signature, 1, memoryview(memory))
        # The inputs follow one another, with little between them.
        return connection, next(iter(arrays.inputs.values()))

    def _bare(self, work: Workload, address: Any) -> tuple[socket.socket, Any]:
        if work.is_shared:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(address)
        else:
            connection = socket.create_connection(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, np.zeros(work.body_bytes, np.uint8)


def act(work: Workload, loops: ctypes.CDLL, count: int, pipe: Connection) -> None:
    """A process of the load."""
    fleet = Fleet(work, count, *pipe.recv())
    answered, latency = (np.zeros(MOST_ANSWERS, np.int64) for _ in range(2))
    pipe.send("ready")
    while order := pipe.recv():
        side, begin_ns, end_ns = order
        number = loops.load(
            fleet.actors[side],
            ctypes.c_int64(count),
            int(work.is_shared),
            ctypes.c_int64(work.body_bytes),
            ctypes.c_int64(work.answer_bytes),
            ctypes.c_int64(round(work.args.step_ms * 1e6)),
            ctypes.c_int64(begin_ns),
            ctypes.c_int64(end_ns),
            ctypes.c_void_p(answered.ctypes.data),
            ctypes.c_void_p(latency.ctypes.data),
            ctypes.c_int64(MOST_ANSWERS),
        )
        if number < 0:
            sys.exit("a server has gone, or answered what nobody asked")
        pipe.send((answered[:number].copy(), latency[:number].copy()))


def start(function: Any, *args: Any) -> tuple[Any, Connection]:
    """Starts a process, whose last argument is a pipe."""
    mine, theirs = FORK.Pipe()
    process = FORK.Process(target=function, args=(*args, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, mine


def cpu_s(process: Any) -> float:
    """CPU-seconds of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """Servers and load, in processes that wait for orders."""

    def __init__(self, work: Workload) -> None:
        loops = build()
        self.work = work
        self.seconds = work.args.seconds
        self.servers, self.pipes = {}, {}
        self.servers["server"], self.pipes["server"] = start(serve, work)
        self.servers["echo"], self.pipes["echo"] = start(echo, work, loops)
        addresses = [self.pipes[side].recv() for side in ("server", "echo")]
        self.load = [start(act, work, loops, count) for count in work.shares]
        for _, pipe in self.load:
            pipe.send(addresses)
            pipe.recv()

    def ask(self, question: Any) -> Any:
        """Asks the inference server's process."""
        self.pipes["server"].send(question)
        return self.pipes["server"].recv()

    def run(self, side: str, kill: bool = False) -> dict[str, Any]:
        """Runs the load against a server for a round."""
        begin_ns = time.monotonic_ns() + 50_000_000
        warm_ns = begin_ns + round(WARM_S * 1e9)
        end_ns = warm_ns + round(self.seconds * 1e9)
        middle_ns = (warm_ns + end_ns) // 2
        load = self.load
        for _, pipe in load:
            pipe.send((side, begin_ns, end_ns))
        if kill:
            (victim, _), *load = load
            time.sleep((middle_ns - time.monotonic_ns()) / 1e9)
            os.kill(victim.pid, signal.SIGKILL)
            middle_ns = time.monotonic_ns()
        used_s, before = cpu_s(self.servers[side]), self.ask("stats")
        told = [pipe.recv() for _, pipe in load]
        used_s, after = cpu_s(self.servers[side]) - used_s, self.ask("stats")
        answered, latency = (np.concatenate(parts) for parts in zip(*told, strict=True))
        all_answers = len(answered)
        counts = (answered >= warm_ns) & (answered < end_ns)
        answered, latency = np.sort(answered[counts]), latency[counts] / 1e6
        gaps = np.diff(answered) / 1e6
        is_late = answered[1:] > middle_ns
        return {
            "rate": len(answered) / self.seconds,
            "latency_ms": latency,
            "cpu_s_per_1000": 1000 * used_s / all_answers,
            "batch_rows": (after[1] - before[1]) / max(1, after[0] - before[0]),
            "gap_before_ms": float(gaps[~is_late].max(initial=0.0)),
            "gap_after_ms": float(gaps[is_late].max(initial=0.0)),
            "rate_after": int(is_late.sum()) / ((end_ns - middle_ns) / 1e9),
        }

    def close(self) -> None:
        """Ends the processes."""
        for _, pipe in self.load[1:]:
            pipe.send(None)
        self.pipes["server"].send(None)
        for process in self.servers.values():
            process.join(10)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the report."""
    work = Workload(args)
    bench = Bench(work)
    rounds: dict[str, list[dict[str, Any]]] = {"echo": [], "server": []}
    for _ in range(args.rounds):
        for side, done in rounds.items():
            done.append(bench.run(side))
    rounds["echo"].append(bench.run("echo"))
    report: dict[str, Any] = {}
    for side, done in rounds.items():
        latency_ms = np.concatenate([one["latency_ms"] for one in done])
        report[side] = {
            name: statistics.median(one[name] for one in done)
            for name in ("rate", "cpu_s_per_1000")
        }
        for name, share in (("p50_ms", 50), ("p99_ms", 99), ("max_ms", 100)):
            report[side][name] = float(np.percentile(latency_ms, share))
    batch_rows = statistics.median(one["batch_rows"] for one in rounds["server"])
    alone = bench.ask(max(1, round(batch_rows))) if args.net != "null" else None
    bare = [one["rate"] for one in rounds["echo"]]
    shares = [
        one["rate"] / min((before + behind) / 2, alone or float("inf"))
        for one, before, behind in zip(
            rounds["server"], bare[:-1], bare[1:], strict=True
        )
    ]
    report |= {
        "share": statistics.median(shares),
        "shares": [round(share, 3) for share in shares],
        "batch_rows": batch_rows,
        "network_alone": alone,
        "of_ideal": report["server"]["rate"] / (args.actors / args.step_ms * 1000),
    }
    lost = bench.run("server", kill=True)
    num_lost, until_s = 0, time.monotonic() + 10
    while num_lost < work.shares[0] and time.monotonic() < until_s:
        _, _, num_lost, num_sessions = bench.ask("stats")
    report["lost"] = {
        "num_lost": num_lost,
        "num_sessions": num_sessions,
        **{key: lost[key] for key in ("gap_before_ms", "gap_after_ms", "rate_after")},
    }
    bench.close()
    return report | {key: value for key, value in vars(args).items() if key != "json"}


def show(report: dict[str, Any]) -> None:
    """Prints the table."""
    print("server     answers/s    p50 ms   p99 ms   max ms   CPU-s/1,000")
    for side in ("echo", "server"):
        row = report[side]
        print(
            f"{side:8} {row['rate']:11,.0f} {row['p50_ms']:9.2f} {row['p99_ms']:8.2f} "
            f"{row['max_ms']:8.1f} {row['cpu_s_per_1000']:13.4f}"
        )
    lost = report["lost"]
    print(
        f"share of the attainable {report['share']:.3f} {report['shares']}, "
        f"{report['batch_rows']:.1f} rows a batch\n"
        f"{lost['num_lost']} killed: longest time without an answer "
        f"{lost['gap_before_ms']:.1f} ms before, {lost['gap_after_ms']:.1f} ms from "
        f"then on, {lost['rate_after']:,.0f} answers/s then"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--actors", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--step-ms", type=float, default=16.0)
    parser.add_argument("--bytes", type=int, default=84 * 84, help="of an observation")
    parser.add_argument("--net", choices=("null", "nature"), default="null")
    parser.add_argument("--tcp", action="store_true", help="rows travel on TCP")
    parser.add_argument("--min-rows", type=int, default=1, help="as inference.min_rows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for name in ("actors", "processes"):
        if getattr(args, name) < 2:
            parser.error(f"{name} must be at least 2, as one is killed")
    report = measure(args)
    if not args.json:
        show(report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
