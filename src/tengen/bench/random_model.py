"""A model with random weights: speed does not depend on them."""

from __future__ import annotations

import json
from pathlib import Path

from tengen.config import to_dict
from tengen.nets.spec import FeatureSpec, NetConfig

__all__ = ["write_random_model"]


def write_random_model(path: Path, features: FeatureSpec, config: NetConfig) -> None:
    """Writes what backends read of a model.

    Args:
        path: The model directory, made here.
        features: What the network sees and how its actions lie.
        config: The network.
    """
    from safetensors.torch import save_file

    from tengen.models import ModelExporter
    from tengen.nets import build_net

    path.mkdir()
    state = build_net(features, config).state_dict()
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    graph = ModelExporter().export(features, config, weights)
    (path / "model.onnx").write_bytes(graph)
    save_file(state, path / "weights.safetensors")
    meta = {"net": to_dict(config), "features": to_dict(features)}
    (path / "meta.json").write_text(json.dumps(meta))
