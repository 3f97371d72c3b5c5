import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tengen.config import to_dict
from tengen.models import ModelExporter, can_quantise, quantise
from tengen.nets import ResNetConfig
from tengen.tensors import BoardSpec

FEATURES = BoardSpec(
    num_planes=4, height=5, width=5, num_actions=25, policy_layout="cells"
)
CONFIG = ResNetConfig(num_blocks=2, num_channels=16, head_channels=8)
SIGNATURE = CONFIG.signature(FEATURES.signature)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The three files of a model, of which backends read no more than they need."""
    path = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    net = CONFIG.build(SIGNATURE)
    state = net.state_dict()
    for name, tensor in state.items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0)
        elif tensor.ndim == 1:
            tensor.uniform_(-0.5, 0.5).add_(name.endswith("weight"))
    save_file(state, path / "weights.safetensors")
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    graph = ModelExporter().export(SIGNATURE, CONFIG, weights)
    (path / "model.onnx").write_bytes(graph)
    meta = {"net": to_dict(CONFIG), "signature": to_dict(SIGNATURE)}
    (path / "meta.json").write_text(json.dumps(meta))
    return path


@pytest.fixture(scope="session")
def int8_model(model, planes, tmp_path_factory):
    """The same model with an int8 graph."""
    if not can_quantise():
        pytest.skip("this CPU has no int8")
    path = tmp_path_factory.mktemp("int8") / "model"
    shutil.copytree(model, path)
    quantise(path, planes)
    return Path(path)


@pytest.fixture(scope="session")
def planes():
    """``[60, 4, 5, 5]`` boards with stones of two colours; plane 0 is the board."""
    cells = np.random.default_rng(0).integers(0, 3, (60, 5, 5))
    planes = np.zeros((60, 4, 5, 5), np.float32)
    planes[:, 0] = 1
    planes[:, 1] = cells == 1
    planes[:, 2] = cells == 2
    return planes
