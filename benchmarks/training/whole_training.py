"""How near whole training comes to the sum of its parts, each measured alone.

A step of an environment costs simulation, an answer of the network, and its share of a
learner's batch. These three are measured one after the other in this process, on one
thread, with the sizes, the precision and the batches of the run; then ``tengen train
--threads 1`` makes steps, and what it makes a CPU-second (its start left out) is held
against 1 / (1/simulation + 1/network + 1/learning). Turns are repeated and medians
told.

    python benchmarks/training/whole_training.py --task atari/Pong --agent vtrace --json

Another library's rate on the same machine is measured by its own script beside it, as
``benchmarks/results/environments.md`` tells.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tengen import envs
from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.config import to_dict
from tengen.experience import StepTable
from tengen.inference import bind_port, drive, open_backend
from tengen.learners import Learner
from tengen.nets import Net
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.run import RunDirectory
from tengen.store import Batch

# Of the run's first rows of its curve, which count imports and first batches.
_SKIPPED_SHARE = 0.3


class OneBatch:
    """Experience that hands out the same batch for ever."""

    generation = 0

    def __init__(self, columns: dict[str, NDArray[Any]]) -> None:
        self._columns = columns

    def sample(self, num_samples: int) -> Batch:
        """Returns the batch."""
        keys = np.arange(num_samples)
        share = np.full(num_samples, 1.0 / num_samples)
        return Batch(0, keys, share, self._columns, num_samples, lambda *_: None)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="atari/Pong")
    parser.add_argument("--agent", default="vtrace")
    parser.add_argument("--frames", type=int, default=60_000, help="of the run (60000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = override(make_config(args.task, args.agent, None), args.settings)
    rounds = [_round(args, config, number) for number in range(args.rounds)]
    report: dict[str, Any] = {
        name: statistics.median(one[name] for one in rounds) for name in rounds[0]
    }
    report |= {
        "shares": [round(one["share_of_parts"], 3) for one in rounds],
        "task": args.task,
        "agent": args.agent,
        "settings": args.settings,
    }
    if args.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            shown = f"{value:,.3f}" if isinstance(value, float) else value
            print(f"{name}: {shown}")
    return 0


def _round(args: argparse.Namespace, config: RunConfig, seed: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        simulated_s, answered_s, learned_s = _parts(config, Path(folder), seed)
        whole = _whole(args, Path(folder) / "run", seed)
    ideal = 1.0 / (simulated_s + answered_s + learned_s)
    return {
        "simulation_per_cpu_s": 1.0 / simulated_s,
        "network_per_cpu_s": 1.0 / answered_s,
        "learning_per_cpu_s": 1.0 / learned_s,
        "parts_per_cpu_s": ideal,
        "training_per_cpu_s": whole,
        "share_of_parts": whole / ideal,
    }


def _parts(config: RunConfig, folder: Path, seed: int) -> tuple[float, float, float]:
    """Returns the CPU-seconds of simulation, network and learning a step."""
    agent = EnvironmentAgent.of(config, "actor")
    num_envs = agent.actor.num_envs
    env = envs.make(config.task, num_envs, seed)
    torch.manual_seed(seed)
    asked = agent.signature(config.task)
    net = config.net.build(asked)
    path = folder / "model"
    path.mkdir()
    save_file(net.state_dict(), path / "weights.safetensors")
    meta = {"net": to_dict(config.net), "signature": to_dict(net.signature)}
    (path / "meta.json").write_text(json.dumps(meta))
    backend = open_backend(path, config.inference, 1)
    run = RunDirectory.create_or_resume(folder / "parts")
    table = agent.steps_of(agent.open_experience(config, run, None))
    try:
        port = EnvironmentPort(
            env,
            agent,
            net.signature,
            agent.make_block(env.spec, table.layout, num_envs),
            table.writer(
                "actor-0", num_envs, agent.first_priorities(env.spec.actions)
            ).append,
            seed=seed,
            turn_blocks=agent.turn_blocks(table.layout),
        )
        columns = _real_batch(config, port, backend, table)
        runner = bind_port(backend, port)
        answered_s = _cpu_s(lambda: runner.run(num_envs)) / num_envs
    finally:
        table.close()
    random = np.random.default_rng(seed)
    actions = [_drawn(env.spec.actions, num_envs, random) for _ in range(64)]
    turn = iter(range(1 << 30))
    simulated_s = _cpu_s(lambda: env.step(actions[next(turn) % 64])) / num_envs
    env.close()
    return simulated_s, answered_s, _learned_s(config, net, columns)


def _real_batch(
    config: RunConfig, port: EnvironmentPort, backend: Any, table: StepTable
) -> dict[str, NDArray[Any]]:
    """Returns the columns of a batch that was acted for."""
    size = config.learner.batch_size
    while table.available() < size:
        port.begin(0)
        drive(port, bind_port(backend, port))
        table.flush()
    batch = table.sample(size)
    columns = {name: np.array(column) for name, column in batch.columns.items()}
    batch.ack(None)
    return columns


def _learned_s(config: RunConfig, net: Net, columns: dict[str, NDArray[Any]]) -> float:
    """Returns the CPU-seconds of learning for each step that actors make."""
    agent = EnvironmentAgent.of(config, "learn")
    update = agent.make_update(config, net)
    num_steps = int((columns["is_reset"][:, :-1] == 0).sum())
    with Learner(config.learner, net, update, OneBatch(columns)) as learner:  # type: ignore[arg-type]
        return _cpu_s(learner.step, least=3) / num_steps


def _drawn(
    actions: envs.ActionSpec, num_envs: int, random: np.random.Generator
) -> NDArray[Any]:
    if not actions.is_discrete:
        low, high = (np.clip(bounds, -1, 1) for bounds in (actions.low, actions.high))
        numbers = random.uniform(low, high, (num_envs, *actions.shape))
        return numbers.astype(np.float32)
    parts = [random.integers(0, n, num_envs) for n in actions.num_choices]
    return np.stack(parts, 1) if actions.shape else parts[0]


def _cpu_s(call: Callable[[], object], least: int = 20, seconds: float = 3.0) -> float:
    """Returns the CPU-seconds of a call, of all threads of this process."""
    call()
    start_s, num_calls = time.process_time(), 0
    while num_calls < least or time.process_time() - start_s < seconds:
        call()
        num_calls += 1
    return (time.process_time() - start_s) / num_calls


def _whole(args: argparse.Namespace, path: Path, seed: int) -> float:
    """Returns the steps that ``tengen train`` makes a CPU-second."""
    command = [sys.executable, "-m", "tengen"]
    settings = [word for one in args.settings for word in ("--set", one)]
    options = ["--agent", args.agent, "--frames", str(args.frames)]
    options += ["--seed", str(seed), "--threads", "1"]
    subprocess.run(
        [*command, "train", args.task, *options, "--out", str(path), *settings],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    table = path.parent / "curve.csv"
    subprocess.run(
        [*command, "curves", str(path), str(table)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with open(table) as file:
        rows = [row for row in csv.DictReader(file) if row["cpu_seconds"]]
    first, last = rows[int(_SKIPPED_SHARE * len(rows))], rows[-1]
    steps = float(last["agent_steps"]) - float(first["agent_steps"])
    return steps / (float(last["cpu_seconds"]) - float(first["cpu_seconds"]))


if __name__ == "__main__":
    sys.exit(main())
