import dataclasses

import pytest
import torch

from tengen import games
from tengen.agents import Agent
from tengen.models import ModelExporter, ModelMeta, publish_model
from tengen.nets import MlpConfig, ResNetConfig, board_of
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
def publish_run():
    """Makes a run of a game whose models are untrained."""

    def make(
        path, task, numbers=(0,), *, play=None, auxiliary=False, mixed_sizes=False
    ):
        run = RunDirectory.create_or_resume(path)
        run.write_run({"config": {}})
        game = games.make(task)
        features = board_of(game)
        net = ResNetConfig(
            num_blocks=2,
            num_channels=8,
            head_channels=4,
            auxiliary=auxiliary,
            mixed_sizes=mixed_sizes,
        )
        signature = net.signature(features.signature)
        exporter = ModelExporter()
        for number in numbers:
            torch.manual_seed(number)
            state = net.build(signature).state_dict()
            meta = ModelMeta(
                task=task,
                agent="alphazero",
                net=net,
                signature=signature,
                generation=number,
                num_steps=number,
                num_samples=0,
                play=play,
                sha256={},
            )
            tensors = {name: tensor.numpy() for name, tensor in state.items()}
            publish_model(run.models, number, meta, tensors, exporter)
        return run

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
