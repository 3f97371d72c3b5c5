"""Actors give new items the priorities that the learner would compute.

The reference is the learner's update with the acting network as both online and target
network.
"""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.q_agent import acting_errors
from tengen.agents.dqn import Dqn, DqnUpdate
from tengen.agents.iqn import Iqn, IqnUpdate
from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.experience import FirstPriorities, ReplayConfig, StepClient
from tengen.inference import drive
from tengen.tensors import FRACTIONS, QUANTILES
from tengen.transport import NetDoor
from tests.unit.agents.agent_fakes import (
    CountingEnv,
    LeakyNet,
    NetRunner,
    TableNet,
    port_of,
    table_of,
)

NUM_ENVS = 3
# Some shorter and some longer than an item; every second episode is truncated.
LENGTHS = (3, 11, 1, 6)
NUM_STATES = max(LENGTHS) + 1
STORE = ReplayConfig(
    sampler="prioritized",
    max_items=10_000,
    samples_per_item=1_000.0,
    max_ahead=10_000,
    priority_exponent=1.0,
)
ACTOR = EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=15)

rng = np.random.default_rng(4)


def dqn(is_duelling):
    agent = Dqn(is_duelling=is_duelling, num_steps=3, discount=0.9, actor=ACTOR)
    tables = {"q": rng.normal(size=(NUM_STATES, 3))}
    if is_duelling:
        tables = {"value": rng.normal(size=NUM_STATES), "advantage": tables["q"]}
    net = TableNet(**tables)
    return agent, net, DqnUpdate(agent, net, STORE)


def iqn():
    # The table returns the same quantiles for any requested fractions.
    agent = Iqn(num_quantiles=5, num_steps=2, discount=0.9, actor=ACTOR)
    net = TableNet(**{QUANTILES: rng.normal(size=(NUM_STATES, 5, 3))})
    return agent, net, IqnUpdate(agent, net, STORE)


def r2d2():
    agent = R2d2(
        is_duelling=False,
        sees_last_step=False,
        burn_in=4,
        unroll_length=10,
        period=6,
        num_steps=3,
        discount=0.9,
        eta=0.7,
        rescaling_epsilon=0.01,
        actor=ACTOR,
    )
    net = LeakyNet(0.7, rng.normal(size=NUM_STATES), rng.normal(size=(NUM_STATES, 3)))
    return agent, net, R2d2Update(agent, net, STORE)


@pytest.fixture
def memory():
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        yield Path(folder) / "table"


def of_learner(update, net, columns):
    """Returns ``[B]``, the priorities that the learner computes for a batch."""
    tensors = {name: torch.from_numpy(c.copy()) for name, c in columns.items()}
    tensors[FRACTIONS] = torch.rand(len(tensors["action"]), 2, 5)
    found = update.loss(net, tensors).priorities
    return found.detach().numpy()


@pytest.mark.parametrize("over", ["process", "folder", "tcp"])
@pytest.mark.parametrize("kind", ["dqn", "duelling", "iqn", "r2d2"])
def test_new_items_have_the_learner_s_priority(kind, over, tmp_path, memory):
    made = {"dqn": lambda: dqn(False), "duelling": lambda: dqn(True), "iqn": iqn}
    agent, net, update = made.get(kind, r2d2)()
    door = NetDoor(listen="127.0.0.1:0") if over == "tcp" else None
    directory = None if over == "process" else memory
    layout = agent.layout(net.signature.state)
    table = table_of(
        agent, layout, tmp_path, NUM_ENVS, STORE, directory=directory, net=door
    )
    sink = table
    if over != "process":
        sink = StepClient(table.address or str(memory), table.layout, STORE)
    env = CountingEnv(NUM_ENVS, LENGTHS)
    port = port_of(agent, net, env, sink)
    for version in range(5):
        port.begin(version)
        drive(port, NetRunner(net, port))
    assert port.stats.num_items > 20
    batch = table.sample(3_000)
    columns = dict(batch.columns)
    flags = [columns[name][:, :-1].any() for name in ("terminated", "truncated")]
    assert all(flags)
    assert columns["is_reset"][:, 1:].any()
    expected = of_learner(update, net, columns)
    # The priorities differ, so that no match is accidental.
    assert len(set(expected.round(4).tolist())) > 8
    chance = batch.probabilities
    total = 1 / chance.max() * expected.max()
    np.testing.assert_allclose(chance * total, expected, rtol=1e-4)
    greatest = max(1.0, float(expected.max()))
    assert table.max_priority == pytest.approx(greatest, rel=1e-4)
    batch.ack()
    if isinstance(sink, StepClient):
        sink.close()
    table.close()


def test_nothing_is_asked_where_draws_are_even(tmp_path):
    agent, _, _ = dqn(False)
    spec = CountingEnv(1, LENGTHS).spec

    def never(steps):
        pytest.fail("priorities are of no use here")

    even = ReplayConfig(sampler="uniform", max_items=100)
    table = table_of(agent, agent.layout({}), tmp_path, 1, even, batch_size=1)
    told = tuple(agent.priority_tensors(spec.actions))
    writer = table.writer("actor-0", 1, FirstPriorities(told, never))
    block = agent.make_block(spec, table.layout, agent.actor.num_envs)
    tensors = {**agent.columns(spec), **agent.priority_tensors(spec.actions)}
    zeros = {name: np.zeros((1, 8, *t.shape), t.dtype) for name, t in tensors.items()}
    assert block.is_empty
    assert writer.append(zeros, {}) == 5
    table.close()


def test_a_terminal_value_that_is_not_finite_is_in_no_error():
    steps = {
        "q_taken": np.array([[1.0, 1.0, 0.0]]),
        "q_best": np.array([[1.0, np.inf, 0.0]]),
        "reward": np.array([[3.0, 0.0, 0.0]]),
        "is_reset": np.array([[0, 1, 0]]),
        "terminated": np.array([[1, 0, 0]]),
    }
    found = acting_errors(steps, num_steps=1, discount=0.9)
    assert found.tolist() == [[2.0, 0.0]]
