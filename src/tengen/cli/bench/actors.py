"""``tengen bench actors``: the step rate of actors, relative to environments alone.

The actors are processes of ``tengen actor``, and write to the same kind of table as in
a run. This process runs central inference, with one thread per inference server. In
place of a learner, it samples all items of the table and discards them. The baseline is
a group of processes that only step the same environments with random actions. The
actors and the baseline run alternately. Rates are per CPU-second of a group's
processes, so that other load on the machine has little effect.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tengen import envs
from tengen.cli.bench.no_net import NO_NET, SilentBackend
from tengen.cli.bench.process_group import STEP_AT_RANDOM, ProcessGroup, processes
from tengen.cli.bench.random_model import write_random_model
from tengen.config import check, check_range, to_dict
from tengen.errors import RunError
from tengen.experience import Experience
from tengen.inference import Backend, allocate, open_backend
from tengen.inference.central import InferenceServer, serve_rows
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig, write_config
from tengen.roles.doors import INFERENCE, Doors, server_name
from tengen.roles.experience import open_experience
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory, find_files
from tengen.transport import HostFolder, Server

RUN_NET = "run"
"""The value of ``--net`` that selects the default network of a run of the task."""

_START_S = 120.0
_LOOK_S = 0.05
# Polling interval of the table: polling is cheap, and a queue cannot fill up meanwhile.
_EMPTY_S = 0.02
_WARM_S = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench actors``."""
    parser.add_argument(
        "--task", default="atari/Pong", help="the environment (atari/Pong)"
    )
    parser.add_argument(
        "--agent",
        default="vtrace",
        help="the agent that acts and writes steps (vtrace)",
    )
    parser.add_argument(
        "--actors", type=int, default=2, help="number of actor processes (2)"
    )
    parser.add_argument(
        "--envs",
        type=int,
        default=32,
        help="copies of the environment in each actor (32)",
    )
    parser.add_argument(
        "--net",
        default=NO_NET,
        help=f"{NO_NET}: no network, actions at no cost; {RUN_NET}: the network of a "
        f"run; otherwise a kind of network, such as nature ({NO_NET})",
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "bf16"),
        help="precision of the network (that of a run)",
    )
    parser.add_argument(
        "--servers",
        type=int,
        default=1,
        help="inference servers, each a thread of this process (1)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds (5)")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="seconds of a round (4)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark and returns its report as JSON values.

    Returns:
        ``share_of_simulation`` (the actors' steps per CPU-second divided by the
        baseline's, median over rounds), ``steps_per_cpu_s`` (of the actors),
        ``alone_per_cpu_s`` (of the baseline), ``frames_per_cpu_s``, ``steps_per_s``,
        ``inference_share`` (of the CPU time), ``batch_rows``, and the settings. With a
        network also ``net_per_cpu_s`` (rows per CPU-second of the network alone, with
        batches of the same size) and ``share_of_attainable``, which is 1 if the actors
        need no more CPU time than the environments alone plus the network alone.

    Raises:
        UsageError: A setting is invalid.
        RunError: A process failed.
    """
    check_range("actors", args.actors, 1, 64)
    check_range("servers", args.servers, 1, 64)
    check_range("rounds", args.rounds, 1, 1000)
    check(args.seconds > 0, "seconds", args.seconds, "must be above 0; use 4")
    config = _config(args)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        directory = RunDirectory.create_or_resume(Path(folder) / "run")
        write_config(directory, config)
        service = stack.enter_context(_service(config, directory, args, Path(folder)))
        actors = stack.enter_context(processes(_actor_commands(directory, args)))
        alone = stack.enter_context(processes(_alone_commands(config, args)))
        return _measure(args, directory, service, actors, alone)


class _Service:
    """The threads that run the inference servers and empty the actors' table."""

    def __init__(
        self, config: RunConfig, run: RunDirectory, backend: Backend, num_rows: int
    ) -> None:
        self.backend = backend
        self._servers: list[InferenceServer] = []
        self._folders: list[HostFolder] = []
        self._listeners: list[Server] = []
        self._stop = threading.Event()
        self._table = open_experience(config, run, RoleContext(at_once=True))
        for index in range(config.launch.of("inference").count):
            server = InferenceServer(
                backend.signature,
                max_rows=num_rows,
                min_rows=config.inference.min_rows,
                max_wait_s=config.inference.max_wait_ms / 1000,
            )
            server.set_model(backend, 0, 0)
            self._servers.append(server)
            doors = Doors(config.launch, run, server_name(index))
            self._folders.append(HostFolder(INFERENCE, doors.folder))
            service = serve_rows(server, backend.signature)
            self._listeners.append(Server(self._folders[-1].listen(), service))
            doors.publish()
        self._batch_size = config.learner.batch_size
        self._threads = [
            threading.Thread(target=self._empty, args=(self._table,), daemon=True),
            *(
                threading.Thread(target=server.run, daemon=True)
                for server in self._servers
            ),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def num_evaluations(self) -> int:
        """Number of rows that all inference servers have evaluated so far."""
        return sum(server.stats.num_evaluations for server in self._servers)

    @property
    def num_batches(self) -> int:
        """Number of batches that all inference servers have evaluated so far."""
        return sum(server.stats.num_batches for server in self._servers)

    def close(self) -> None:
        """Stops the inference threads and closes the actors' table."""
        self._stop.set()
        for listener, server in zip(self._listeners, self._servers, strict=True):
            listener.close()
            server.stop()
        for thread in self._threads:
            thread.join()
        for folder in self._folders:
            folder.remove()
        self._table.close()

    def _empty(self, table: Experience) -> None:
        while not self._stop.is_set():
            if table.available() < self._batch_size:
                self._stop.wait(_EMPTY_S)
                continue
            table.sample(self._batch_size).ack(None)


@contextlib.contextmanager
def _service(
    config: RunConfig, run: RunDirectory, args: argparse.Namespace, folder: Path
) -> Iterator[_Service]:
    signature = config.signature
    backend: Backend = SilentBackend(signature)
    if args.net != NO_NET:
        asked = config.agent.signature(config.task)
        write_random_model(folder / "model", asked, config.net)
        backend = open_backend(folder / "model", config.inference, 1)
    num_each = args.envs * envs.env_spec(config.task).num_agents
    service = _Service(config, run, backend, args.actors * num_each)
    try:
        yield service
    finally:
        service.close()


def _config(args: argparse.Namespace) -> RunConfig:
    config = make_config(args.task, args.agent, None)
    precision = args.precision or config.inference.precision
    settings = [
        f"agent.actor.num_envs={args.envs}",
        f"launch.roles.actor.count={args.actors}",
        f"launch.roles.inference.count={args.servers}",
        "inference.backend=torch",
        f"inference.precision={'fp32' if precision == 'auto' else precision}",
        "inference.batch_shape=dynamic",
    ]
    if args.net not in (NO_NET, RUN_NET):
        settings.append(f"net.kind={args.net}")
        # Keep the number of stacked frames: the task determines it, not the network.
        num_frames = to_dict(config.net).get("num_frames")
        if num_frames is not None:
            settings.append(f"net.num_frames={num_frames}")
    if config.store.is_queue:
        num_each = args.envs * envs.env_spec(args.task).num_agents
        settings.append(f"store.max_items={max(64, 4 * args.actors * num_each)}")
    return override(config, settings)


def _actor_commands(run: RunDirectory, args: argparse.Namespace) -> list[list[str]]:
    tengen = [sys.executable, "-m", "tengen", "actor", str(run.path)]
    return [[*tengen, "--index", str(index)] for index in range(args.actors)]


def _alone_commands(config: RunConfig, args: argparse.Namespace) -> list[list[str]]:
    command = [sys.executable, "-c", STEP_AT_RANDOM, config.task, str(args.envs)]
    return [[*command, str(seed)] for seed in range(args.actors)]


def _num_begun(run: RunDirectory) -> int:
    """Returns the number of actors that have inserted steps into the table."""
    return sum(path.stat().st_size > 0 for path in find_files(run.actors, "[0-9]*"))


class _NetAlone:
    """A benchmark of the network alone, in the calling thread.

    Args:
        backend: The backend that runs the network.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def rows_per_cpu_s(self, num_rows: int, seconds: float) -> float:
        """Returns the number of rows that the network evaluates per CPU-second.

        Args:
            num_rows: Rows per batch.
            seconds: Duration of the measurement.
        """
        signature = self._backend.signature
        inputs, outputs, state = (
            allocate(specs, num_rows)
            for specs in (signature.inputs, signature.outputs, signature.state)
        )
        runner = self._backend.bind(inputs, outputs, state)
        runner.run(num_rows)
        begun_s, until, done = time.process_time(), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            runner.run(num_rows)
            done += num_rows
        return done / (time.process_time() - begun_s)


def _measure(
    args: argparse.Namespace,
    run: RunDirectory,
    service: _Service,
    actors: ProcessGroup,
    alone: ProcessGroup,
) -> dict[str, Any]:
    # Count evaluations, not inserted steps: the table's count advances in blocks and is
    # too coarse. Both groups' counts include reset steps.
    def made() -> int:
        return service.num_evaluations

    def stepped() -> int:
        return sum(alone.lines)

    until = time.monotonic() + _START_S
    while _num_begun(run) < args.actors or not all(alone.lines):
        for group in (actors, alone):
            group.check()
        if time.monotonic() > until:
            raise RunError(
                f"actors (of the benchmark) did not start within {_START_S:g} s; see "
                "their output, or use fewer --actors"
            )
        time.sleep(_LOOK_S)
    shares, rates, rates_alone, walls, costs = [], [], [], [], []
    net, net_rates, attained = _NetAlone(service.backend), [], []
    alone.signal(signal.SIGSTOP)
    time.sleep(_WARM_S)
    begin = service.num_evaluations, service.num_batches
    for _ in range(args.rounds):
        begun_s, begun, cpu_s = time.monotonic(), made(), actors.cpu_s
        before = service.num_evaluations, service.num_batches
        own_s = time.process_time()
        time.sleep(args.seconds)
        steps = made() - begun
        own_s = time.process_time() - own_s
        cpu_s = actors.cpu_s - cpu_s + own_s
        walls.append(steps / (time.monotonic() - begun_s))
        actors.signal(signal.SIGSTOP)
        alone.signal(signal.SIGCONT)
        time.sleep(_LOOK_S)
        begun, alone_s = stepped(), alone.cpu_s
        time.sleep(args.seconds)
        steps_alone, alone_s = stepped() - begun, alone.cpu_s - alone_s
        alone.signal(signal.SIGSTOP)
        if args.net != NO_NET:
            num_rows = max(1, round(_batch_rows(before, service)))
            net_rates.append(net.rows_per_cpu_s(num_rows, args.seconds))
        actors.signal(signal.SIGCONT)
        time.sleep(_LOOK_S)
        for group in (actors, alone):
            group.check()
        rates.append(steps / cpu_s)
        rates_alone.append(steps_alone / alone_s)
        shares.append(rates[-1] / rates_alone[-1])
        if net_rates:
            attainable = 1 / (1 / rates_alone[-1] + 1 / net_rates[-1])
            attained.append(rates[-1] / attainable)
        costs.append(own_s / cpu_s)
    frames = envs.env_spec(args.task).frames_per_step
    of_net = {}
    if net_rates:
        of_net = {
            "share_of_attainable": statistics.median(attained),
            "shares_of_attainable": [round(share, 3) for share in attained],
            "net_per_cpu_s": statistics.median(net_rates),
        }
    return {
        "share_of_simulation": statistics.median(shares),
        "shares": [round(share, 3) for share in shares],
        "steps_per_cpu_s": statistics.median(rates),
        "alone_per_cpu_s": statistics.median(rates_alone),
        "frames_per_cpu_s": frames * statistics.median(rates),
        "steps_per_s": statistics.median(walls),
        "inference_share": statistics.median(costs),
        "batch_rows": _batch_rows(begin, service),
        **of_net,
        "task": args.task,
        "agent": args.agent,
        "actors": args.actors,
        "servers": args.servers,
        "envs": args.envs,
        "net": args.net,
        "precision": service.backend.precision,
    }


def _batch_rows(before: tuple[int, int], service: _Service) -> float:
    """Returns the mean rows per batch since ``before``, earlier (rows, batches)."""
    num_rows = service.num_evaluations - before[0]
    return num_rows / max(1, service.num_batches - before[1])
