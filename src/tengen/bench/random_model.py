"""A model with random weights: speed does not depend on them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from tengen.config import check, to_dict
from tengen.games import open_game
from tengen.nets import NetConfig, board_of, parse_net, parse_size
from tengen.nets.minigo import MinigoConfig
from tengen.run import RunDirectory
from tengen.tensors import Signature

__all__ = ["bench_net", "publish_random", "write_random_model"]

_MINIGO = "minigo:"


def write_random_model(
    path: Path, asked: Signature, config: NetConfig, *, with_graph: bool = False
) -> None:
    """Writes the files of a model that backends read.

    Args:
        path: The model directory, made here.
        asked: What the network must take and answer.
        config: The network.
        with_graph: Whether there is an ONNX graph beside the weights.
    """
    import torch
    from safetensors.torch import save_file

    from tengen.models import ModelExporter

    path.mkdir()
    torch.manual_seed(0)
    signature = config.signature(asked)
    state = config.build(signature).state_dict()
    if with_graph:
        weights = {name: tensor.numpy() for name, tensor in state.items()}
        graph = ModelExporter().export(signature, config, weights)
        (path / "model.onnx").write_bytes(graph)
    save_file(state, path / "weights.safetensors")
    meta = {"net": to_dict(config), "signature": to_dict(signature)}
    (path / "meta.json").write_text(json.dumps(meta))


def publish_random(run: RunDirectory, game: str, net: str) -> Path:
    """Publishes a model with random weights; speed does not depend on them.

    Args:
        run: A new run; the model is its candidate 0.
        game: Its name.
        net: As for ``bench_net``.

    Returns:
        The model's directory.

    Raises:
        UsageError: As ``bench_net``, or the network does not fit the game.
    """
    import torch

    from tengen.models import ModelExporter, ModelMeta, publish_model

    torch.manual_seed(0)
    rules = open_game(game)
    config = bench_net(net)
    signature = config.signature(board_of(rules).signature)
    weights = config.build(signature).state_dict()
    meta = ModelMeta(
        task=game,
        agent="alphazero",
        net=config,
        signature=signature,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in weights.items()}
    return publish_model(run.candidates, 0, meta, tensors, ModelExporter()).path


def bench_net(net: str, *, auxiliary: bool = False) -> NetConfig:
    """Returns the config for a text like ``6x96`` or ``minigo:6x64``.

    Args:
        net: The text.
        auxiliary: Whether the network has auxiliary heads.

    Raises:
        UsageError: The text is neither, a number is out of range, or the network
            cannot have auxiliary heads.
    """
    if not net.startswith(_MINIGO):
        return dataclasses.replace(parse_net(net), auxiliary=auxiliary)
    check(not auxiliary, "net", net, "has no auxiliary heads; leave --auxiliary out")
    num_blocks, num_channels = parse_size(net.removeprefix(_MINIGO))
    return MinigoConfig(num_blocks=num_blocks, num_channels=num_channels)
