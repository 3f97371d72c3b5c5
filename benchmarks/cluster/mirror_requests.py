"""What the mirrors of a run cost its host, a request, and how long a request takes.

    python benchmarks/cluster/mirror_requests.py --tls FOLDER [--mirrors 20]
        [--segments 6] [--rounds 3]

The run's service is a process of its own, and all mirrors are in this one, on one
host's loopback. Each round has two parts, with TLS where ``--tls`` names a folder with
``certificate.pem`` and ``key.pem``:

- idle: one client makes requests one after the other (``look``, as each mirror does
  each second). Told are the CPU time of a request on both sides together, and the
  median and the 90th percentile of its wall time.
- busy: mirrors send sealed segments, all at once, while the client goes on making
  requests. Told are the same of its requests until the last segment is there.

The games are random ones of Connect Four, 64 a segment. Linux alone.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tengen import _core, games
from tengen.experience import ExperienceWriter, begin_generation, writer_directory
from tengen.mirror import RUN, RunClient, RunService
from tengen.observe.cpu_time import tree_cpu_s
from tengen.run import RunDirectory
from tengen.transport import Client, NetDoor, Server

TASK = "connect4"
TOKEN = "0123456789abcdef"
IDLE_REQUESTS = 300
GAMES = 64
PAUSE_S = 0.01
MODEL = 1


class Requests(NamedTuple):
    """What requests of one client took."""

    wall_s: list[float]
    """Of each."""
    cpu_s: float
    """Of both processes, all that they did meanwhile included."""

    def __str__(self) -> str:
        """Returns the figures in a line."""
        ms = sorted(1e3 * s for s in self.wall_s)
        return (
            f"{statistics.median(ms):.1f} ms (90th percentile "
            f"{ms[int(0.9 * (len(ms) - 1))]:.1f}) of wall time, {len(ms)} requests"
        )


def main() -> None:
    """Prints both parts of each round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tls", type=Path, help="a folder (without)")
    parser.add_argument("--mirrors", type=int, default=20)
    parser.add_argument("--segments", type=int, default=6, help="of each mirror (6)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        _serve(args.serve, args.tls)
        return
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            _round(Path(folder), args)


def _serve(path: Path, tls: Path | None) -> None:
    """Serves a new run until the standard input ends; prints the port."""
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": {"task": TASK}})
    run.models.publish(MODEL, lambda folder: (folder / "meta.json").touch())
    door = NetDoor(
        listen="127.0.0.1:0",
        token=TOKEN,
        certificate_file=tls and tls / "certificate.pem",
        key_file=tls and tls / "key.pem",
    )
    listener = door.open(RUN)
    service = RunService(run, TASK)
    server = Server(listener, service.service)
    print(listener.address.rpartition(":")[2], flush=True)
    sys.stdin.read()
    server.close()
    service.close()


def _round(folder: Path, args: argparse.Namespace) -> None:
    words = [sys.executable, __file__, "--serve", str(folder / "run")]
    if args.tls:
        words += ["--tls", str(args.tls)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        port = int(host.stdout.readline())
        asking = RunClient(_client(port, args), secrets.token_hex(16))
        asking.join("selfplay", None, None)
        idle = _ask(asking, host.pid, IDLE_REQUESTS, None)
        each_ms = 1e3 * idle.cpu_s / IDLE_REQUESTS
        print(f"idle: {idle}, {each_ms:.2f} ms of CPU each", flush=True)
        mirrors = [
            _Sender(_client(port, args), folder / str(i), args.segments)
            for i in range(args.mirrors)
        ]
        sent = threading.Event()
        threading.Thread(target=_send, args=(mirrors, sent)).start()
        print(f"busy: {_ask(asking, host.pid, 1 << 30, sent)}", flush=True)
        host.stdin.close()


def _client(port: int, args: argparse.Namespace) -> Client:
    return Client(
        RUN,
        f"tcp://127.0.0.1:{port}",
        token=TOKEN,
        ca_file=args.tls and args.tls / "certificate.pem",
    )


def _ask(
    client: RunClient, host: int, num_most: int, until: threading.Event | None
) -> Requests:
    """Makes requests one after the other, a pause between them where others work."""
    spent_s = _spent_s(host)
    wall_s: list[float] = []
    while len(wall_s) < num_most and not (until and until.is_set()):
        begun_s = time.monotonic()
        client.look("")
        wall_s.append(time.monotonic() - begun_s)
        if until:
            time.sleep(PAUSE_S)
    return Requests(wall_s, _spent_s(host) - spent_s)


def _spent_s(host: int) -> float:
    """Returns the CPU-seconds of both processes."""
    own, theirs = time.process_time(), tree_cpu_s(root=host)
    assert theirs is not None
    return own + theirs


class _Sender:
    """A mirror with sealed segments that its host does not have yet."""

    def __init__(self, client: Client, folder: Path, num_segments: int) -> None:
        self._client = RunClient(client, secrets.token_hex(16))
        place = self._client.join("selfplay", None, None)
        assert place is not None
        self._incarnation = place.incarnation
        self._paths: list[Path] = []
        run = RunDirectory.create_or_resume(folder)
        own = writer_directory(run, place.index)
        with ExperienceWriter(own, place.incarnation) as writer:
            for number in self._client.claim(num_segments):
                begun = begin_generation(run, writer, TASK, iter([number]).__next__)
                assert begun is not None
                segment = begun[2]
                for index in range(GAMES):
                    segment.sink.put(_game(index, number))
                segment.close()
                self._paths += filter(None, [writer.seal(number)])

    def send(self) -> None:
        """Sends all segments, one after the other."""
        for path in self._paths:
            data = path.read_bytes()
            self._client.send_segment(
                self._incarnation, int(path.stem), len(data), _core.crc32c(data), path
            )


def _send(mirrors: list[_Sender], sent: threading.Event) -> None:
    """Sends what all mirrors have, at once, and waits until all is at the host."""
    with ThreadPoolExecutor(len(mirrors)) as pool:
        try:
            for done in [pool.submit(mirror.send) for mirror in mirrors]:
                done.result()
        finally:
            sent.set()


def _game(index: int, generation: int) -> _core.GameRecord:
    """Returns a game of random moves."""
    rng = random.Random(f"{index} {generation}")
    state = games.make(TASK).new_state("")
    plies = []
    while not state.is_terminal():
        legal = state.legal_actions()
        ply = _core.PlyRecord()
        ply.action, ply.num_simulations = rng.choice(legal), 64
        ply.policy_weight = ply.value_weight = 1.0
        ply.policy = [(action, rng.randrange(1, 60)) for action in sorted(legal)]
        plies.append(ply)
        state.apply(ply.action)
    record = _core.GameRecord()
    record.generation, record.game_index, record.model = generation, index, MODEL
    record.outcome = {1.0: 1, -1.0: 2, 0.0: 3}[state.returns()[0]]
    record.plies = plies
    return record


if __name__ == "__main__":
    os.environ.pop("TENGEN_RUN_TOKEN", None)
    main()
