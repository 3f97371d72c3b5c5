"""How much of the attainable rate a thousand actors get of one inference server.

    python benchmarks/simulated_actors.py [--tcp] [--net nature] [--rounds 9] [--json]

Simulated actors have one row each and a connection each: ask, wait for the answer, wait
16 ms, as an environment's step takes, ask again. Eight processes have an event loop in
C each, so that the load costs little. The server is ``InferenceServer`` behind the
doors of the role, in a process of its own.

What is attainable is measured by the same actors in the same processes: they take turns
with a server in C that answers each request at once by as many bytes and does nothing
else. A round is compared with the mean of the one before and the one behind, and the
median of these shares is told. With a network, what the network alone answers in batches of the same size is the
bound where it is lower. Latency is counted from when a request was due, which is 16 ms
after the answer before, whether or not it could be sent then.

At last one of the processes is killed with a tenth of the actors. The longest time for
which no other actor was answered is told, before that and from then on.

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
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tengen.inference import Backend, RowArrays, open_backend
from tengen.inference.central import (
    INFERENCE,
    InferenceServer,
    connect_rows,
    serve_rows,
)
from tengen.inference.central.messages import OPEN, REQUEST, Request
from tengen.inference.central.shared_rows import receive_shared
from tengen.tensors import Signature, TensorSpec
from tengen.transport import Client, HostFolder, Server, listen_on

REQUEST_BYTES, REPLY_BYTES = 16, 32
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


class Workload:
    """What is asked of whom: the options, and what follows from them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.is_shared = not args.tcp
        self.folder = Path(tempfile.mkdtemp())
        self.config = None
        if args.net == "null":
            self.signature = Signature(
                inputs={"screen": TensorSpec(dtype="uint8", shape=(args.bytes,))},
                outputs={"policy": TensorSpec(shape=(18,)), "value": TensorSpec()},
            )
        else:
            from tengen.overrides import override
            from tengen.recipes import make_config

            self.config = override(
                make_config("atari/Pong", "vtrace", None),
                ["inference.backend=torch", "inference.precision=fp32"],
            )
            asked = self.config.agent.signature(self.config.task)
            self.signature = self.config.net.signature(asked)
        self.input_bytes = sum(one.num_bytes for one in self.signature.inputs.values())
        # A killed process takes a tenth with it.
        self.shares = [args.actors // 10]
        others = args.processes - 1
        for i in range(others):
            left = args.actors - sum(self.shares)
            self.shares.append(left // (others - i))

    @property
    def body_bytes(self) -> int:
        """What an actor writes anew: the inputs, on a stream behind ``is_first``."""
        return self.input_bytes + (not self.is_shared)

    @property
    def answer_bytes(self) -> int:
        """What follows the head of a reply."""
        if self.is_shared:
            return 0
        return sum(one.num_bytes for one in self.signature.outputs.values())

    def backend(self) -> Backend:
        """Returns the network, with random weights: speed does not depend on them."""
        if self.config is None:
            from tengen.bench.no_net import SilentBackend

            return SilentBackend(self.signature)
        import torch
        from safetensors.torch import save_file

        from tengen.config import to_dict

        torch.manual_seed(0)
        net = self.config.net.build(self.config.agent.signature(self.config.task))
        path = self.folder / "model"
        path.mkdir()
        save_file(net.state_dict(), path / "weights.safetensors")
        meta = {"net": to_dict(self.config.net), "signature": to_dict(net.signature)}
        (path / "meta.json").write_text(json.dumps(meta))
        return open_backend(path, self.config.inference, 1)


def serve(work: Workload, pipe: Connection) -> None:
    """The process of the inference server; answers questions on the pipe."""
    server = InferenceServer(
        work.signature, max_rows=work.args.actors, min_rows=work.args.min_rows
    )
    place = HostFolder("inference", work.folder / "inference")
    service = serve_rows(server, work.signature)
    doors = [
        Server(place.listen(), service),
        Server(listen_on(INFERENCE, "127.0.0.1:0"), service),
    ]
    backend = work.backend()
    server.set_model(backend, version=0, number=0)
    pipe.send(doors[1].address if work.args.tcp else work.folder / "inference")

    def tell() -> None:
        while question := pipe.recv():
            if question == "stats":
                stats = server.stats
                pipe.send(
                    (
                        stats.num_batches,
                        stats.num_evaluations,
                        stats.num_lost,
                        server.num_sessions,
                    )
                )
            else:
                pipe.send(rate_alone(backend, work.args.actors, question))
        server.stop()

    threading.Thread(target=tell, daemon=True).start()
    server.run()
    for door in doors:
        door.close()
    place.remove()


def rate_alone(backend: Backend, max_rows: int, num_rows: int) -> float:
    """Returns rows a second of the network, called again and again."""
    arrays = RowArrays(backend.signature, max_rows)
    runner = backend.bind(arrays.inputs, arrays.outputs, arrays.state)
    runner.run(num_rows)
    begun_s, count = time.monotonic(), 0
    while time.monotonic() - begun_s < 2.0:
        runner.run(num_rows)
        count += num_rows
    return count / (time.monotonic() - begun_s)


def echo(work: Workload, loops: ctypes.CDLL, pipe: Connection) -> None:
    """The process of the cheapest server."""
    if work.is_shared:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(work.folder / "echo"))
        listening.listen(work.args.actors)
    else:
        listening = socket.create_server(("127.0.0.1", 0), backlog=work.args.actors)
    pipe.send(listening.getsockname())
    connections = [listening.accept()[0] for _ in range(work.args.actors)]
    for one in connections:
        if not work.is_shared:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    fds = (ctypes.c_int32 * len(connections))(*(one.fileno() for one in connections))
    travels = 0 if work.is_shared else work.body_bytes
    loops.echo(
        fds,
        ctypes.c_int64(len(fds)),
        ctypes.c_int64(REQUEST_BYTES + travels),
        ctypes.c_int64(REPLY_BYTES + work.answer_bytes),
    )


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
            "gap_before_ms": float(gaps[~is_late].max()),
            "gap_after_ms": float(gaps[is_late].max()),
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
    report = measure(args)
    if not args.json:
        show(report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
