"""What a second learner adds where learning is the limit: steps and frames a second.

    python benchmarks/training/learners.py [--rounds 7] [--seconds 6] [--case NAME]
        [--json]

One learner of one thread, and two of one thread each at the same global batch, learn
from experience that is made up and in memory, so that nobody waits for it. Blocks of
steps of the one and of the two take turns, so that whatever else the machine does
disturbs both alike; each row is the median of the rounds. The share of the collectives
is of the leader's time and has in it its waits for the other learner's part.

The processor time of a step tells what other work on the machine hides: of the one
learner, and of each of the two. What the first is more than the larger of the second is
the most that two cores could gain, were the learners never to wait.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tengen import envs
from tengen.agents.environment_agent import EnvironmentAgent
from tengen.experience import Divided, ExperiencePart, ReplayConfig
from tengen.games import open_game
from tengen.learners import Learner
from tengen.learners.follower import Follower
from tengen.learners.peer import LEARNERS, greeting
from tengen.learners.team import Team
from tengen.learners.torch_group import TorchGroup
from tengen.nets import MlpConfig, ResNetConfig
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.run import machine_line
from tengen.store import Batch
from tengen.transport import Client, HostFolder, Server


@dataclass(frozen=True)
class Case:
    """One kind of learning."""

    task: str
    agent: str
    net: Any
    """The network; None for the recipe's."""
    batch_size: int
    what: str
    """For the table."""


CASES = {
    "games": Case("gomoku/9", "alphazero", ResNetConfig(num_blocks=6, num_channels=64),
                  128, "gomoku/9, AlphaZero, 6 blocks of 64 channels, 128 rows"),
    "unrolls": Case("CartPole-v1", "vtrace", MlpConfig(num_units=512), 64,
                    "vectors, V-trace, 512 units, 64 unrolls of 20"),
    "small": Case("CartPole-v1", "vtrace", None, 16,
                  "vectors, V-trace, the recipe's 64 units, 16 unrolls of 20"),
}  # fmt: skip


class Memory:
    """Batches that are there already."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = columns

    def sample(self, num_samples: int) -> Batch:
        return self.draw({}, num_samples, 0, num_samples)

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        return Divided({}, lambda: self.draw({}, num_samples, first, last))

    def shared(self, *, begins: bool) -> dict[str, Any]:
        return {}

    def follow(self, shared: Mapping[str, Any]) -> bool:
        return True

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        columns = {name: c[first:last] for name, c in self._columns.items()}
        keys = np.arange(first, last)
        chances = np.full(last - first, 1 / num_samples)
        return Batch(0, keys, chances, columns, num_samples, lambda *_: None)

    def close(self) -> None:
        pass


def config_of(case: Case) -> RunConfig:
    config = make_config(case.task, case.agent, None)
    learner = replace(config.learner, batch_size=case.batch_size, num_shards=2)
    if isinstance(config.store, ReplayConfig):
        config = replace(config, store=replace(config.store, max_items=4096))
    return replace(
        config,
        agent=config.agent.without_stages(),
        net=case.net or config.net,
        learner=learner,
    )


def columns_of(config: RunConfig) -> dict[str, NDArray[Any]]:
    """Returns a batch of noise, in the shapes of the task."""
    rng = np.random.default_rng(1)
    num_rows = config.learner.batch_size
    if not isinstance(config.agent, EnvironmentAgent):
        game = open_game(config.task)
        planes = game.new_state().observation().shape
        policy = rng.random((num_rows, game.num_actions)).astype(np.float32)
        ones = np.ones(num_rows, np.float32)
        return {
            "planes": (rng.random((num_rows, *planes)) < 0.3).astype(np.float32),
            "legal": np.ones((num_rows, game.num_actions), np.uint8),
            "policy": policy / policy.sum(1, keepdims=True),
            "policy_weight": ones,
            "outcome": np.eye(3, dtype=np.float32)[rng.integers(3, size=num_rows)],
            "search_value": rng.uniform(-1, 1, num_rows).astype(np.float32),
            "value_weight": ones,
        }
    spec = envs.env_spec(config.task)
    layout = config.agent.layout(config.agent.net_signature(config).state)
    shape = num_rows, layout.num_steps
    observation = spec.observations["observation"].shape
    zeros = np.zeros(shape, np.uint8)
    return {
        "observation": rng.normal(size=(*shape, *observation)).astype(np.float32),
        "action": rng.integers(spec.actions.num_choices[0], size=shape),
        "reward": rng.normal(size=shape).astype(np.float32),
        "terminated": zeros,
        "truncated": zeros,
        "is_reset": zeros,
        "behaviour_log_prob": np.full(shape, -0.7, np.float32),
    }


def make_learner(config: RunConfig, experience: Any, team: Team | None) -> Learner:
    torch.manual_seed(1)
    net = config.net.build(config.agent.signature(config.task))
    update = config.agent.make_update(config, net)
    return Learner(config.learner, net, update, experience, team=team)


def follow(name: str, folder: str) -> None:
    """The second learner's process."""
    torch.set_num_threads(1)
    config = config_of(CASES[name])
    message = greeting(1, "")
    connection, _ = Client(LEARNERS, folder).open(message)
    follower = Follower(
        connection,
        ExperiencePart(lambda shared: Memory(columns_of(config))),
        lambda stage: make_learner(config, None, None),
        threading.Event(),
    )
    follower.begin()
    follower.work()
    follower.close()


class Timed:
    """The time in which a group's collectives are under way."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.num_bytes = 0
        wait, add = TorchGroup._wait, TorchGroup.add

        def timed(group: TorchGroup, begin: Any) -> None:
            start_s = time.perf_counter()
            wait(group, begin)
            self.seconds += time.perf_counter() - start_s

        def counted(group: TorchGroup, tensor: torch.Tensor) -> None:
            self.num_bytes += tensor.nbytes
            add(group, tensor)

        patched: Any = TorchGroup
        patched._wait, patched.add = timed, counted


def block(learner: Learner, num_steps: int) -> tuple[float, float]:
    """Returns steps a second, and this process's seconds of processor a step."""
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    for _ in learner.steps(num_steps):
        pass
    cpu_s = time.process_time() - start_cpu_s
    return num_steps / (time.perf_counter() - start_s), cpu_s / num_steps


def cpu_s_of(process: int) -> float:
    """Returns the seconds of processor that a process has had (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, rounds: int, seconds: float) -> dict[str, Any]:
    case = CASES[name]
    config = config_of(case)
    memory: Any = Memory(columns_of(config))
    timed = Timed()
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        team = Team(memory, 2)
        host = HostFolder("learners", Path(folder) / "learners")
        server = Server(host.listen(), team.service)
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=follow, args=(name, str(host.path)))
        process.start()
        one = make_learner(config, memory, None)
        two = make_learner(config, memory, team)
        while team.size < 2:
            team.settle(two)
            time.sleep(0.01)
        num_steps = max(5, int(block(one, 5)[0] * seconds))
        block(two, 5)
        assert process.pid is not None
        names = ("one", "two", "share", "one_cpu", "leader_cpu", "follower_cpu")
        found: dict[str, list[float]] = {name: [] for name in names}
        timed.num_bytes = 0
        for _ in range(rounds):
            rate, cpu_s = block(one, num_steps)
            found["one"].append(rate)
            found["one_cpu"].append(cpu_s)
            timed.seconds = 0.0
            before_s = cpu_s_of(process.pid)
            rate, cpu_s = block(two, num_steps)
            found["two"].append(rate)
            found["share"].append(timed.seconds * rate / num_steps)
            found["leader_cpu"].append(cpu_s)
            own_s = cpu_s_of(process.pid) - before_s
            found["follower_cpu"].append(own_s / num_steps)
        ratios = [b / a for a, b in zip(found["one"], found["two"], strict=True)]
        server.close()
        team.close()
        process.join()
        host.remove()
        for learner in (one, two):
            learner.close()
    medians = {key: statistics.median(values) for key, values in found.items()}
    shape = next(iter(memory._columns.values())).shape
    length = shape[1] - 1 if isinstance(config.agent, EnvironmentAgent) else 1
    per_step = case.batch_size * length
    return {
        "case": name,
        "what": case.what,
        "one_steps_per_s": medians["one"],
        "two_steps_per_s": medians["two"],
        "one_rows_per_s": medians["one"] * per_step,
        "two_rows_per_s": medians["two"] * per_step,
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
        "greatest_ratio": max(ratios),
        "collectives_share": medians["share"],
        "one_cpu_ms_per_step": 1000 * medians["one_cpu"],
        "leader_cpu_ms_per_step": 1000 * medians["leader_cpu"],
        "follower_cpu_ms_per_step": 1000 * medians["follower_cpu"],
        "kilobytes_per_step": timed.num_bytes / (rounds * num_steps) / 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        measure(name, args.rounds, args.seconds)
        for name in ([args.case] if args.case else CASES)
    ]
    print(machine_line())
    for row in rows:
        print(
            f"{row['what']}: {row['one_steps_per_s']:.2f} steps/s of one learner, "
            f"{row['two_steps_per_s']:.2f} of two ({row['ratio']:.2f} times, "
            f"{row['least_ratio']:.2f} to {row['greatest_ratio']:.2f}); "
            f"{row['one_rows_per_s']:,.0f} and {row['two_rows_per_s']:,.0f} rows/s; "
            f"collectives {row['collectives_share']:.0%} of the time, "
            f"{row['kilobytes_per_step']:,.0f} kB a step; processor "
            f"{row['one_cpu_ms_per_step']:.1f} ms a step of one, "
            f"{row['leader_cpu_ms_per_step']:.1f} and "
            f"{row['follower_cpu_ms_per_step']:.1f} ms of two"
        )
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
