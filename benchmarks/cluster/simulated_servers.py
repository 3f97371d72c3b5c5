"""The two servers of ``simulated_actors.py``, a process each, and what is asked."""

from __future__ import annotations

import argparse
import ctypes
import json
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tengen.inference import Backend, RowArrays, open_backend
from tengen.inference.central import INFERENCE, InferenceServer, serve_rows
from tengen.tensors import Signature, TensorSpec
from tengen.transport import HostFolder, Server, listen_on

# As in simulated_actors.c.
REQUEST_BYTES, REPLY_BYTES = 16, 32


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
        # A killed process takes a tenth with it, and at least one.
        self.shares = [max(1, args.actors // 10)]
        # None without an actor.
        others = min(args.processes, args.actors) - 1
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
