"""Helpers that networks of any inputs and outputs share.

Legend: B batch.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from tengen.nets.inputs import MAX_UINT8
from tengen.nets.modules.net import Tensors
from tengen.tensors import Signature

__all__ = [
    "flat_inputs",
    "make_relu",
    "make_small",
    "num_flat",
    "shaped",
]


def _as_float(tensor: Tensor) -> Tensor:
    """Returns floats; uint8, which images are, as numbers in [0, 1]."""
    if tensor.dtype == torch.uint8:
        return tensor.float().div_(MAX_UINT8)
    return tensor.float()


def flat_inputs(inputs: Tensors, names: Iterable[str]) -> Tensor:
    """Returns ``[B, N]`` float32: the named inputs, flattened, one after the other."""
    rows = [_as_float(inputs[name]) for name in names]
    flat = [row.flatten(1) if row.ndim > 1 else row[:, None] for row in rows]
    return flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)


def num_flat(wanted: Signature, names: Iterable[str]) -> int:
    """Returns N of ``flat_inputs``."""
    return sum(wanted.inputs[name].num_entries for name in names)


def make_relu(layer: nn.Linear | nn.Conv2d) -> None:
    """Draws the weights of a layer before a ReLU, so that signals keep their size.

    Source: He et al. 2015, "Delving Deep into Rectifiers".
    """
    assert layer.bias is not None
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)


def make_small(layer: nn.Linear) -> None:
    """Makes the weights of a last layer small, so that it answers nearly 0.

    The first policy is then nearly uniform, which explores, and the first values are
    nearly 0, which is unbiased.
    """
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.bias.zero_()


def shaped(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns ``[B, N]`` as ``[B, *shape]``."""
    if shape == ():
        return rows.squeeze(1)
    return rows if len(shape) == 1 else rows.reshape(-1, *shape)
