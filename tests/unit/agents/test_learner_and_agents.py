"""The learner's guarantees to an agent's update: order, threads, device, state."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from tengen.agents.bases.q_agent import TargetUpdate
from tengen.agents.dqn import Dqn
from tengen.errors import RunError
from tengen.experience import ReplayConfig
from tengen.learners import AdamWConfig, Learner, LearnerConfig, LossParts, Update
from tengen.recipes import make_config
from tengen.roles import RoleContext, write_config
from tengen.roles.learning.learn import LearnRole
from tengen.run import RunDirectory
from tengen.store import Batch
from tests.refusals import refused
from tests.unit.agents.agent_fakes import TableNet


class QLoss:
    """A mixin for updates: the mean of squared network outputs as the loss."""

    def loss(self, net, columns):
        q = net.answer({"observation": columns["observation"]}, {})[0]["q"]
        return LossParts(q.square().mean(), {})


class LateTable:
    """A table that delays a batch until the first is acknowledged, at most 0.2 s."""

    config = None

    def __init__(self):
        self.events: list[str] = []
        self._acknowledged = threading.Event()

    def sample(self, num_samples):
        self._acknowledged.wait(0.2)
        self.events.append("draw")
        return Batch(
            0,
            np.arange(num_samples),
            np.full(num_samples, 0.1),
            {"observation": np.zeros(num_samples, np.int64)},
            10,
            self._ack,
        )

    def _ack(self, lease, priorities):
        self.events.append("acknowledge")
        self._acknowledged.set()


def learner_of(update, num_threads=1, table=None, **fields):
    config = LearnerConfig(
        **{"batch_size": 4, "num_shards": 2, **fields},
        optimizer=AdamWConfig(num_warmup_steps=0),
    )
    net = TableNet(q=[[1.0, 2.0, 3.0]])
    return Learner(config, net, update, table or LateTable(), num_threads=num_threads)


class Plain(QLoss, Update):
    """An update with one loss and no state."""


def test_the_next_batch_is_drawn_before_this_one_changes_priorities():
    table = LateTable()
    learner = learner_of(Plain(), table=table)
    for _ in learner.steps(3):
        pass
    learner.close()
    assert table.events == [
        "draw",
        "draw",
        "acknowledge",
        "draw",
        "acknowledge",
        "acknowledge",
    ]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_minibatches_are_made_on_one_intra_op_thread(num_threads):
    found = []

    class Epochs(QLoss, Update):
        def minibatches(self, net, columns):
            for first in (0, 2):
                found.append(torch.get_num_threads())
                yield {name: c[first : first + 2] for name, c in columns.items()}

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        learner = learner_of(Epochs(), num_threads)
        metrics = learner.step()
        learner.close()
    finally:
        torch.set_num_threads(before)
    assert found == [1, 1]
    assert learner.num_steps == 2
    assert learner.num_samples == 4
    assert metrics["loss"] < 14 / 3  # mean of two steps; the first loss is 14 / 3


class WithTarget(QLoss, TargetUpdate):
    """An update with a target network, which a checkpoint must contain."""

    def __init__(self):
        net = TableNet(q=[[1.0, 2.0, 3.0]])
        super().__init__(Dqn(target_period=2), net, ReplayConfig())


def test_a_target_goes_through_a_checkpoint():
    update, again = WithTarget(), WithTarget()
    learner, other = learner_of(update), learner_of(again)
    for _ in learner.steps(3):
        pass
    state = learner.state()
    assert "agent.target.tables.q" in state.tensors
    other.load_state(
        state._replace(tensors={n: t.clone() for n, t in state.tensors.items()})
    )
    # The target was copied after the second step, but not after the third.
    q = again.target.tables["q"]
    assert torch.equal(q, update.target.tables["q"])
    assert not torch.equal(q, other.net.tables["q"])
    # The next copy comes at the same step as without the checkpoint.
    other.step()
    assert torch.equal(again.target.tables["q"], other.net.tables["q"])
    for each in (learner, other):
        each.close()


@pytest.mark.parametrize("what", ["absent", "unknown", "of another shape"])
def test_a_state_of_another_agent_is_refused_and_changes_nothing(what):
    update = WithTarget()
    learner = learner_of(update)
    learner.step()
    tensors = {n: t.clone() for n, t in learner.state().tensors.items()}
    if what == "absent":
        del tensors["agent.target.tables.q"]
    elif what == "unknown":
        tensors["agent.target.tables.other"] = torch.zeros(1)
    else:
        tensors["agent.target.tables.q"] = torch.zeros(2, 3)
    tensors["net.tables.q"] += 1.0
    before = learner.net.tables["q"].clone()
    with refused(RunError, "agent.target.tables."):
        learner.load_state(learner.state()._replace(tensors=tensors))
    assert torch.equal(learner.net.tables["q"], before)
    learner.close()


def test_a_target_is_made_on_the_device_of_the_learner(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    made = []

    class Recorder:
        def __init__(self, config, net, update, *rest, **_):
            made.append((net, update))

        def close(self):
            pass

    monkeypatch.setattr("tengen.roles.learning.learn.Learner", Recorder)
    monkeypatch.setattr(
        "tengen.roles.learning.learn.learner_device", lambda config: "meta"
    )
    config = make_config("CartPole-v1", "dqn", None)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    LearnRole(config, run, RoleContext()).close()
    ((net, update),) = made
    for network in (net, update.target):
        assert {p.device.type for p in network.parameters()} == {"meta"}
