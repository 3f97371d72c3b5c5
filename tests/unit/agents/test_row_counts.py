"""Observation statistics count each row of a batch once, even if it is reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tengen import envs
from tengen.actors import step_tensors
from tengen.agents.bases.unrolls import unroll_of_all
from tengen.games import allow
from tengen.learners import Learner
from tengen.learners.group import ALONE
from tengen.nets import MlpConfig
from tengen.nets.modules.standard import Standard
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.store import Batch
from tengen.tensors import Signature, TensorSpec

TASK = "tests.environments:Reach"


class Rows:
    """An experience that returns one random batch."""

    config = None

    def __init__(self, agent, num_steps):
        spec = envs.env_spec(TASK)
        own = agent.own_tensors(spec.actions)
        self._specs = step_tensors(agent.inputs_of(spec), spec.actions, own)
        self._num_steps = num_steps

    def sample(self, num_samples):
        rng = np.random.default_rng(0)
        shape = (num_samples, self._num_steps)
        columns: dict[str, Any] = {
            name: rng.normal(size=(*shape, *spec.shape)).astype(spec.dtype)
            if spec.dtype == "float32"
            else np.zeros((*shape, *spec.shape), spec.dtype)
            for name, spec in self._specs.items()
        }
        keys, share = np.arange(num_samples), np.full(num_samples, 0.1)
        return Batch(0, keys, share, columns, 10, lambda *_: None)


@pytest.mark.parametrize("num_shards", [1, 2])
@pytest.mark.parametrize("kind", ["a2c", "ppo", "sac", "vtrace"])
def test_a_row_counts_once(kind, num_shards):
    pytest.importorskip("gymnasium")
    allow(TASK)
    settings = ("net.standardizes=true", f"learner.num_shards={num_shards}")
    config = override(make_config(TASK, kind, None), settings)
    agent = config.agent
    signature = config.signature
    num_steps = agent.layout(signature.state).num_steps
    net = config.net.build(signature)
    rows = Rows(agent, num_steps)
    with Learner(
        config.learner,
        net,
        agent.make_update(config.task, net, config.store),
        rows,
        num_threads=1,
    ) as learner:
        for _ in learner.steps(1):
            pass
        (standard,) = (one for one in net.modules() if isinstance(one, Standard))
        # An item of SAC is one transition; its next state is the first of another item.
        seen = 1 if kind == "sac" else num_steps
        # The count is the mean over the shards, which each count their own rows.
        share = 1 if kind == "ppo" else num_shards
        batch_size = config.learner.batch_size
        assert standard.num_rows.item() == seen * batch_size / share


class Four:
    """A group of four learners with identical items."""

    size = 4

    def add(self, tensor):
        tensor.mul_(4)


def test_full_statistics_take_in_the_rows_of_several_learners_as_of_one():
    observation = torch.randn(10_000, 3, 3, generator=torch.Generator().manual_seed(1))
    columns = {
        "observation": 2.0 + observation,
        "is_reset": torch.zeros(observation.shape[:2], dtype=torch.uint8),
    }
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(3,))}, outputs={"value": TensorSpec()}
    )
    found = []
    for group, repeats in ((Four(), 1), (ALONE, 4)):
        net = MlpConfig(standardizes=True).build(wanted).train()
        (standard,) = (one for one in net.modules() if isinstance(one, Standard))
        standard.num_rows.fill_(1e6)
        standard.squares.fill_(1e6)
        items = {n: torch.cat([c] * repeats) for n, c in columns.items()}
        any_group = group
        for _ in range(2):
            unroll_of_all(net, items, any_group)
        found.append([buffer.double() for buffer in standard.buffers()])
    for several, alone in zip(*found, strict=True):
        torch.testing.assert_close(several, alone)
