"""Models with random weights, for benchmarks: speed does not depend on weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tengen.config import check
from tengen.nets import NetConfig, parse_net, parse_size
from tengen.nets.lines import LinesConfig
from tengen.nets.minigo import MinigoConfig
from tengen.tensors import Signature

_MINIGO = "minigo:"
_LINES = "lines"


def write_random_model(
    path: Path,
    asked: Signature,
    config: NetConfig,
    *,
    task: str = "",
    with_graph: bool = False,
) -> Path:
    """Publishes a model with random weights; returns its directory.

    Args:
        path: The model directory to create. Its parent folder must exist.
        asked: The inputs and outputs that the network must have.
        config: The network's config.
        task: The model's game or environment.
        with_graph: Whether to export an ONNX graph as well.

    Raises:
        UsageError: The network does not support the inputs or outputs in ``asked``.
    """
    import torch

    from tengen.models import ModelExporter, ModelMeta, publish_model

    torch.manual_seed(0)
    signature = config.signature(asked)
    weights = config.build(signature).state_dict()
    meta = ModelMeta(
        task=task,
        agent="alphazero",
        net=config,
        signature=signature,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in weights.items()}
    exporter = ModelExporter() if with_graph else None
    return publish_model(path, meta, tensors, exporter).path


def bench_net(net: str, *, auxiliary: bool = False) -> NetConfig:
    """Returns the config of a network: ``6x96``, ``minigo:6x64`` or ``lines``.

    Args:
        net: The description of the network, as in ``--net``.
        auxiliary: Whether the network has auxiliary heads.

    Raises:
        UsageError: The string has no such form, a number is out of range, or the
            network cannot have auxiliary heads.
    """
    is_lines = net == _LINES
    if not is_lines and not net.startswith(_MINIGO):
        return dataclasses.replace(parse_net(net), auxiliary=auxiliary)
    check(not auxiliary, "net", net, "has no auxiliary heads; leave --auxiliary out")
    if is_lines:
        return LinesConfig()
    num_blocks, num_channels = parse_size(net.removeprefix(_MINIGO))
    return MinigoConfig(num_blocks=num_blocks, num_channels=num_channels)
