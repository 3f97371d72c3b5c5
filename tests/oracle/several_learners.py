"""Learners in several processes that run the same steps on synthetic batches.

A batch is a function of its index, so any number of learners sees equal batches.
"""

from __future__ import annotations

import functools
import multiprocessing
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tengen import envs, games
from tengen.actors import INTRINSIC
from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.envs import EnvSpec
from tengen.experience import Divided, ExperiencePart, ItemLayout, ReplayConfig
from tengen.learners import Learner, LearnerConfig, SgdConfig, Update
from tengen.learners.follower import Follower
from tengen.learners.peer import LEARNERS, greeting
from tengen.learners.team import Team
from tengen.nets import Net, ResNetConfig
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.store import Batch
from tengen.tensors import POLICY, BoardSpec
from tengen.transport import Client, HostFolder, Server
from tests.unit.learners.learner_fakes import NUM_PLANES, SIDE, FakeTable

NUM_PARTS = 4
BATCH = 18
Priorities = dict[int, tuple[int, NDArray[np.float64]]]

TEAM = "tests.team_environments:Signals"

# Agents for environments: the task and settings. ``recorded`` is a dqn whose learner
# records its steps while it is alone.
ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "vtrace": ("CartPole-v1", {"unroll_length": 6}),
    "a2c": ("CartPole-v1", {"unroll_length": 6}),
    "ppo": ("CartPole-v1", {"unroll_length": 6, "num_epochs": 2, "max_lag": 9}),
    "rnd": ("CartPole-v1", {"unroll_length": 6, "num_epochs": 2}),
    "pqn": ("CartPole-v1", {"unroll_length": 6, "num_epochs": 2}),
    "dqn": ("CartPole-v1", {"target_period": 3}),
    "iqn": ("CartPole-v1", {"target_period": 3}),
    "r2d2": (
        "CartPole-v1",
        {"burn_in": 2, "unroll_length": 6, "period": 4, "sees_last_step": False},
    ),
    **dict.fromkeys(
        ("ngu", "agent57"),
        (
            "CartPole-v1",
            {"burn_in": 2, "unroll_length": 6, "period": 4, "sees_last_step": False},
        ),
    ),
    "sac": ("Pendulum-v1", {}),
    "masac": (TEAM, {}),
    "recorded": ("CartPole-v1", {"target_period": 3}),
}
CASES = ("alphazero", *ENVIRONMENTS)


@dataclass
class Tape:
    """Synthetic batches for a learner, which may be alone, a leader or a follower.

    Attributes:
        priorities: By batch index, the first updated row and the new priorities.
    """

    case: str
    num_drawn: int = 0
    priorities: Priorities = field(default_factory=dict)

    def sample(self, num_samples: int) -> Batch:
        return self.divide(num_samples, 0, num_samples).draw()

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        order = {"number": self.num_drawn}
        self.num_drawn += 1
        return Divided(order, lambda: self.draw(order, num_samples, first, last))

    def shared(self, *, begins: bool) -> dict[str, Any]:
        return {}

    def follow(self, shared: Mapping[str, Any]) -> bool:
        return True

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        number = order["number"]
        columns = columns_of(self.case, number, num_samples)
        chances = np.random.default_rng([7, number]).uniform(0.01, 0.3, num_samples)

        def ack(lease: int, priorities: NDArray[np.float64] | None) -> None:
            if priorities is not None:
                self.priorities[number] = first, priorities

        return Batch(
            number,
            np.arange(first, last),
            chances[first:last],
            {name: column[first:last] for name, column in columns.items()},
            1000,
            ack,
        )

    def close(self) -> None:
        pass


def columns_of(case: str, number: int, num_samples: int) -> dict[str, Any]:
    if case == "alphazero":
        return dict(FakeTable(number).sample(num_samples).columns)
    games.allow(TEAM)
    spec, layout = _items(case)
    rng = np.random.default_rng([11, number])
    shape = num_samples, layout.num_steps
    actions = spec.actions
    action: NDArray[Any] = rng.integers(2, size=shape)
    if not actions.is_discrete:
        action = rng.uniform(-1, 1, (*shape, len(actions.low))).astype(np.float32)
    observation = spec.observations["observation"].shape
    columns: dict[str, Any] = {
        "observation": rng.normal(3.0, 2.0, (*shape, *observation)).astype(np.float32),
        "action": action,
        "reward": rng.normal(size=shape).astype(np.float32) * 3,
        "terminated": (rng.random(shape) < 0.1).astype(np.uint8),
        "truncated": np.zeros(shape, np.uint8),
        "is_reset": np.zeros(shape, np.uint8),
        "behaviour_log_prob": np.log(rng.uniform(0.2, 0.9, shape)).astype(np.float32),
    }
    # The step after the end of an episode is a reset step.
    columns["is_reset"][:, 1:] = columns["terminated"][:, :-1]
    if case == "ppo":
        # Six optimizer steps per batch. In each third batch the first rows are too old,
        # more than one learner's share; in the tenth batch all rows are.
        oldest = 8 * number - 20 + 30 * (number % 3 > 0) - 99 * (number == 10)
        lag = np.where(np.arange(num_samples) < 7, oldest, 8 * number)
        lag = lag - 99 * (number == 10)
        columns["model_version"] = np.repeat(lag[:, None], shape[1], axis=1)
    if case == "masac":
        columns |= _team_columns(spec, shape, rng)
    if case in ("ngu", "agent57"):
        number = rng.integers(8, size=num_samples)[:, None].repeat(shape[1], axis=1)
        columns[POLICY] = np.eye(8, dtype=np.float32)[number]
        columns[INTRINSIC] = rng.uniform(0, 5, shape).astype(np.float32)
    for name, tensor in layout.memory.items():
        state = rng.normal(size=(num_samples, *tensor.shape))
        columns[f"state/{name}"] = state.astype(np.float32)
    return columns


def _team_columns(
    spec: EnvSpec, shape: tuple[int, int], rng: np.random.Generator
) -> dict[str, Any]:
    """Returns the columns of a team's steps that have an entry for each agent."""
    each = (*shape, spec.num_agents)
    assert spec.global_state is not None
    sizes = {
        "observation": (*each, *spec.observations["observation"].shape),
        "global_state": (*shape, *spec.global_state.shape),
    }
    return {
        **{n: rng.normal(3.0, 2.0, x).astype(np.float32) for n, x in sizes.items()},
        "agent_id": np.broadcast_to(np.eye(each[-1]) > 0, (*each, each[-1])),
        "action": rng.integers(2, size=each),
        "is_present": (rng.random(each) < 0.8).astype(np.uint8),
    }


def make_learner(case: str, experience: Tape | None, team: Team | None) -> Learner:
    """Returns a new learner; a follower starts with different weights."""
    games.allow(TEAM)
    torch.manual_seed(4 if experience is not None else 5)
    update: Update
    net: Net
    if case == "alphazero":
        features = BoardSpec(
            num_planes=NUM_PLANES,
            height=SIDE,
            width=SIDE,
            num_actions=SIDE * SIDE,
            policy_layout="cells",
        )
        config = ResNetConfig(num_blocks=2, num_channels=8, head_channels=8)
        net = config.build(features.signature)
        update = AlphaZeroUpdate(AlphaZeroLossConfig())
        # At ten times this rate, a rounding error of 1e-7 grows to 1 in a hundred
        # steps, even with a single learner.
        learning = LearnerConfig(
            batch_size=BATCH, optimizer=SgdConfig(learning_rate=0.02)
        )
    else:
        run = _config(case)
        net = run.net.build(run.agent.signature(run.task))
        update = run.agent.make_update(run.task, net, run.store)
        learning = run.learner
        # Adam's normalisation amplifies the rounding errors of small gradients.
        optimizer: Any = learning.optimizer
        learning = replace(learning, optimizer=replace(optimizer, epsilon=1e-3))
    num_shards = 1 if case == "recorded" else NUM_PARTS
    learning = replace(
        learning, batch_size=BATCH, num_shards=num_shards, precision="float32"
    )
    given: Any = experience
    return Learner(learning, net, update, given, team=team)


@functools.cache
def _config(case: str) -> RunConfig:
    task, settings = ENVIRONMENTS[case]
    run = make_config(task, "dqn" if case == "recorded" else case, None)
    fields: dict[str, Any] = {"num_units": 8}
    if case in ("r2d2", "ngu", "agent57"):
        fields["lstm_units"] = 8
    elif case != "recorded":
        fields["standardizes"] = True
    assert isinstance(run.store, ReplayConfig)
    return replace(
        run,
        agent=replace(run.agent, **settings),
        net=replace(run.net, **fields),
        store=replace(run.store, max_items=10_000),
    )


@functools.cache
def _items(case: str) -> tuple[EnvSpec, ItemLayout]:
    run = _config(case)
    assert isinstance(run.agent, EnvironmentAgent)
    layout = run.agent.layout(run.signature.state)
    return envs.env_spec(run.task), layout


@dataclass
class Learned:
    """The result of learning."""

    tensors: dict[str, torch.Tensor]
    num_steps: int
    num_samples: int
    metrics: list[dict[str, float]]
    priorities: list[Priorities]
    """One entry per learner."""


def learned_alone(case: str, num_steps: int) -> Learned:
    tape = Tape(case)
    with make_learner(case, tape, None) as learner:
        metrics = list(learner.steps(num_steps))
        return _learned(learner, metrics, [tape.priorities])


class Followers:
    """Processes that follow one leader after another."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._pipes: list[Connection] = []
        self.processes = []
        for index in range(1, count + 1):
            here, there = context.Pipe()
            process = context.Process(target=_follow, args=(there, index), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self.processes.append(process)

    def learned(
        self, case: str, num_steps: int, size: int, folder: Path, min_size: int = 0
    ) -> Learned:
        """Learns with ``size`` learners, including one in this process."""
        tape = Tape(case)
        made: Any = tape
        team = Team(made, 1 + len(self._pipes), patience_s=20.0)
        host = HostFolder("learners", folder)
        server = Server(host.listen(), team.service)
        try:
            for pipe in self._pipes[: size - 1]:
                pipe.send((case, str(folder)))
            with make_learner(case, tape, team) as learner:
                while team.size < size:
                    team.settle(learner)
                    time.sleep(0.005)
                metrics = list(learner.steps(num_steps))
                team.check_same()
                assert team.size == size
                assert team.num_lost == 0
                server.close()
                team.close()
                each = [pipe.recv() for pipe in self._pipes[: size - 1]]
                return _learned(learner, metrics, [tape.priorities, *each])
        finally:
            server.close()
            team.close()
            host.remove()

    def close(self) -> None:
        for pipe, process in zip(self._pipes, self.processes, strict=True):
            pipe.close()
            process.join(900)
            process.kill()


def _follow(pipe: Connection, index: int) -> None:
    torch.set_num_threads(1)
    while True:
        try:
            case, folder = pipe.recv()
        except EOFError:
            return
        client = Client(LEARNERS, folder)
        connection, _ = client.open(greeting(index, ""))
        tape = Tape(case)
        follower = Follower(
            connection,
            ExperiencePart(lambda shared, tape=tape: tape),  # type: ignore[misc]
            lambda stage, case=case: make_learner(case, None, None),  # type: ignore[misc]
            threading.Event(),
            patience_s=20.0,
        )
        follower.begin()
        follower.work()
        follower.close()
        pipe.send(tape.priorities)


def _learned(
    learner: Learner, metrics: list[dict[str, float]], each: list[Priorities]
) -> Learned:
    state = learner.state()
    tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
    return Learned(tensors, state.num_steps, state.num_samples, metrics, each)
