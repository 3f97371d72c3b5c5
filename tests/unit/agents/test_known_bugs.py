"""Known bugs of other projects that no other test covers.

docs/explanation/known_bugs.md lists all of them.
"""

import ast
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from tengen.actors import EnvironmentActorConfig
from tengen.agents import Agent, EnvironmentAgent
from tengen.agents.r2d2 import R2d2
from tengen.envs import env_spec
from tengen.inference import drive
from tengen.recipes import make_config
from tengen.tensors import TensorSpec
from tests.unit.agents.agent_fakes import (
    CountingEnv,
    LeakyNet,
    NetRunner,
    port_of,
    table_of,
)

ROOT = Path(__file__).resolve().parents[3]


def test_the_first_sequence_burns_in_over_steps_that_were_made(tmp_path):
    """SEED RL's first unroll of each copy burns in over zeros instead of real steps."""
    agent = R2d2(
        is_duelling=False,
        sees_last_step=False,
        burn_in=5,
        unroll_length=6,
        period=4,
        actor=EnvironmentActorConfig(num_envs=2, turn_steps=40),
    )
    net = LeakyNet(1.0, np.ones(100), np.zeros((100, 3)))
    env = CountingEnv(2, [90])
    table = table_of(agent, agent.layout(net.signature.state), tmp_path, 2)
    port = port_of(agent, net, env, table)
    port.begin(7)
    drive(port, NetRunner(net, port))
    batch = table.sample(port.stats.num_items)
    columns = dict(batch.columns)
    # Every real step has model version 7 and reward 1; a padding step has zeros.
    assert (columns["model_version"] == 7).all()
    assert (columns["reward"] == 1).all()
    # The first item of each copy begins with the first step and a zero state.
    begins = columns["observation"][:, 0]
    assert sorted(begins.tolist())[:2] == [0, 0]
    assert (columns["state/memory"][begins == 0] == 0).all()
    assert (np.diff(columns["observation"], axis=1) == 1).all()
    batch.ack()
    table.close()


def test_r2d2_burns_in_from_a_stored_state_unless_it_is_told_otherwise():
    """RLlib's R2D2 by default began with a zero state and had no burn-in."""
    agent = R2d2()
    state = {"lstm/hidden": TensorSpec(shape=(8,))}
    layout = agent.layout(state)
    assert agent.burn_in > 0
    assert layout.memory == state
    assert layout.num_steps == agent.burn_in + agent.unroll_length + 1


KINDS = [
    kind
    for kind, agent in Agent.kinds().items()
    if issubclass(agent, EnvironmentAgent) and not agent.needs_agents
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_agent_lets_actors_run_ahead_for_ever(kind):
    """RLlib's learner could not make actors wait, so its memory grew."""
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", kind, None)
    agent = config.agent
    spec = env_spec(config.task)
    store = agent.table_config(config.store, config.learner, 1, spec)
    bound = store.limits.max_cursor
    assert bound <= 100 * config.learner.batch_size * max(1.0, store.samples_per_item)


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_of_a_queue_learns_from_nothing_of_long_ago(kind):
    """Sample Factory's models did not reach the actors, so policy lag kept growing."""
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", kind, None)
    agent, store = config.agent, config.store
    net = config.net.build(agent.signature(config.task))
    bound = agent.make_update(config.task, net, config.store).max_lag
    if not store.is_queue:
        assert bound is None  # a replay buffer contains old steps by design
        return
    assert bound == 1000
    fewer = dataclasses.replace(agent, max_lag=7)
    assert fewer.make_update(config.task, net, config.store).max_lag == 7


def test_nothing_that_comes_over_a_wire_or_from_a_file_is_unpickled():
    """SEED RL's learner sends its flags pickled, and ``torch.load`` unpickles."""
    banned = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
    wrong = []
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                settings = {word.arg for word in node.keywords}
                is_pickle = called == "torch.load" or "allow_pickle" in settings
                names = ["pickle"] if is_pickle else []
            if banned & {name.split(".")[0] for name in names}:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert wrong == []


def listed():
    """Returns file and name of every test that the page lists."""
    page = (ROOT / "docs" / "explanation" / "known_bugs.md").read_text()
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)


@pytest.mark.parametrize(("path", "name"), sorted(set(listed())))
def test_every_test_that_the_page_names_exists(path, name):
    source = (ROOT / path).read_text()
    assert f"\ndef {name}(" in source


def test_every_row_of_the_page_has_a_test():
    page = (ROOT / "docs" / "explanation" / "known_bugs.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row != "| bug | where | test |"]
    assert len(rows) > 25
    assert [row for row in rows if "::" not in row] == []
