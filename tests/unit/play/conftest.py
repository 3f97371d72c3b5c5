import dataclasses

import pytest
import torch

from tengen import games
from tengen.models import ModelExporter, ModelMeta, publish_model
from tengen.nets import ResNetConfig, build_net, game_features
from tengen.play import Player
from tengen.run import RunDirectory


@pytest.fixture
def make_player(hash_player):
    """Makes a player of a game without a model."""

    def make(task, backend=None, *, mixed_sizes=False):
        model = hash_player(task, backend=backend)
        return Player(dataclasses.replace(model, mixed_sizes=mixed_sizes))

    return make


@pytest.fixture(scope="package")
def publish_run():
    """Makes a run of a game whose models are untrained."""

    def make(path, task, numbers=(0,), *, auxiliary=False, mixed_sizes=False):
        run = RunDirectory.create_or_resume(path)
        run.write_run({"config": {}})
        game = games.make(task)
        features = game_features(game)
        net = ResNetConfig(
            num_blocks=2,
            num_channels=8,
            head_channels=4,
            auxiliary=auxiliary,
            mixed_sizes=mixed_sizes,
        )
        exporter = ModelExporter()
        for number in numbers:
            torch.manual_seed(number)
            state = build_net(features, net).state_dict()
            meta = ModelMeta(
                task=task,
                agent="alphazero",
                net=net,
                features=features,
                generation=number,
                num_steps=number,
                num_samples=0,
                sha256={},
            )
            tensors = {name: tensor.numpy() for name, tensor in state.items()}
            publish_model(run.models, number, meta, tensors, exporter)
        return run

    return make
