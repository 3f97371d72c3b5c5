"""A model with random weights: speed does not depend on them."""

from __future__ import annotations

import json
from pathlib import Path

from tengen.config import to_dict
from tengen.games import make
from tengen.nets.spec import FeatureSpec, NetConfig, game_features, parse_net
from tengen.run import RunDirectory

__all__ = ["publish_random", "write_random_model"]


def write_random_model(path: Path, features: FeatureSpec, config: NetConfig) -> None:
    """Writes what backends read of a model.

    Args:
        path: The model directory, made here.
        features: What the network sees and how its actions lie.
        config: The network.
    """
    import torch
    from safetensors.torch import save_file

    from tengen.models import ModelExporter
    from tengen.nets import build_net

    path.mkdir()
    torch.manual_seed(0)
    state = build_net(features, config).state_dict()
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    graph = ModelExporter().export(features, config, weights)
    (path / "model.onnx").write_bytes(graph)
    save_file(state, path / "weights.safetensors")
    meta = {"net": to_dict(config), "features": to_dict(features)}
    (path / "meta.json").write_text(json.dumps(meta))


def publish_random(run: RunDirectory, game: str, net: str) -> Path:
    """Publishes a model with random weights; speed does not depend on them.

    Args:
        run: A fresh one; the model is its candidate 0.
        game: Its name.
        net: ``BLOCKSxCHANNELS``.

    Returns:
        The model's directory.
    """
    import torch

    from tengen.models import ModelExporter, ModelMeta, publish_model
    from tengen.nets import build_net

    torch.manual_seed(0)
    rules = make(game)
    features = game_features(rules)
    config = parse_net(net)
    weights = build_net(features, config).state_dict()
    meta = ModelMeta(
        task=game,
        agent="alphazero",
        net=config,
        features=features,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in weights.items()}
    return publish_model(run.candidates, 0, meta, tensors, ModelExporter()).path
