import dataclasses

import pytest
import torch

from tengen import games
from tengen.agents import Agent
from tengen.models import ModelMeta, publish_model
from tengen.nets import MlpConfig
from tengen.play import Player
from tengen.run import RunDirectory
from tengen.search import PlayConfig


@pytest.fixture
def make_player(hash_player):
    """Makes a player of a game without a model."""

    def make(task, backend=None, *, mixed_sizes=False, keeps_tree=False):
        model = dataclasses.replace(
            hash_player(task, backend=backend),
            mixed_sizes=mixed_sizes,
            play=PlayConfig(keeps_tree=keeps_tree),
        )
        return Player(model)

    return make


@pytest.fixture(scope="package")
def publish_agent():
    """Makes a run of an environment whose models have random weights.

    What they do differs from one observation to the next, as that of new ones hardly
    does.
    """

    def make(path, task, kind="ppo", numbers=(0,), *, lstm_units=0, **settings):
        agent = Agent.of_kind(kind, "agent")(**settings)
        games.allow(task)
        net = MlpConfig(num_layers=1, num_units=16, lstm_units=lstm_units)
        signature = net.signature(agent.signature(task))
        run = RunDirectory.create_or_resume(path)
        run.write_run({"config": {"task": task}})
        for number in numbers:
            rng = torch.Generator().manual_seed(number)
            state = net.build(signature).state_dict()
            meta = ModelMeta(
                task=task,
                agent=kind,
                net=net,
                signature=signature,
                generation=number,
                num_steps=number,
                num_samples=0,
                sha256={},
            )
            tensors = {
                name: 2 * torch.randn(tensor.shape, generator=rng).numpy()
                for name, tensor in state.items()
            }
            publish_model(run.models, number, meta, tensors, None)
        return run

    return make
