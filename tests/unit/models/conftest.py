from typing import Any

import numpy as np
import pytest
import torch

from tengen.models import ModelExporter, ModelMeta, publish_model
from tengen.nets import ResNetConfig
from tengen.run import NumberedFolder
from tengen.tensors import BoardSpec, Signature, TensorSpec

Arrays = dict[str, np.ndarray[Any, Any]]
VECTORS = Signature(
    inputs={"observation": TensorSpec(shape=(6,))},
    outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
)


def signature_of(features, config):
    """Returns the signature of a network for a board, or for other tensors."""
    wanted = features if isinstance(features, Signature) else features.signature
    return config.signature(wanted)


@pytest.fixture(scope="session")
def features():
    return BoardSpec(
        num_planes=4, height=5, width=5, num_actions=25, policy_layout="cells"
    )


@pytest.fixture(scope="session")
def config():
    return ResNetConfig(num_blocks=2, num_channels=8, head_channels=4)


@pytest.fixture(scope="session")
def random_weights():
    """Returns a function that creates random weights, with no two tensors equal."""

    def make(features, config, seed):
        torch.manual_seed(seed)
        state = config.build(signature_of(features, config)).state_dict()
        for name, tensor in state.items():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2.0)
            elif tensor.ndim == 1:
                tensor.uniform_(-0.5, 0.5).add_(name.endswith("weight"))
            else:
                tensor.normal_(0.0, tensor[0].numel() ** -0.5)
        return {name: tensor.numpy() for name, tensor in state.items()}

    return make


@pytest.fixture(scope="session")
def random_planes():
    """Returns a function that creates random planes; plane 0 marks the board."""

    def make(features, num_rows):
        shape = (num_rows, features.num_planes, features.height, features.width)
        cells = np.random.default_rng(0).integers(0, 3, (num_rows, *shape[2:]))
        planes = np.zeros(shape, np.float32)
        planes[:, 0] = 1
        planes[:, 1] = cells == 1
        planes[:, 2] = cells == 2
        return planes

    return make


@pytest.fixture(scope="session")
def exporter():
    return ModelExporter()


@pytest.fixture
def candidates(tmp_path):
    folder = NumberedFolder(tmp_path / "candidates")
    folder.path.mkdir()
    return folder


@pytest.fixture
def publish(exporter, candidates, features, config, random_weights):
    def publish(number=0, **options):
        meta = ModelMeta(
            task="gomoku/5",
            agent="alphazero",
            net=config,
            signature=signature_of(features, config),
            generation=3,
            num_steps=200,
            num_samples=1000,
            sha256={},
        )
        weights = random_weights(features, config, number)
        folder = options.pop("folder", candidates)
        made_by = options.pop("exporter", exporter)
        if check := options.pop("check", None):
            options["complete"] = lambda path: (check(path), meta)[1]
        return publish_model(folder.entry(number), meta, weights, made_by, **options)

    return publish
