"""Layers and helpers shared by the networks for environments.

Legend: B batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.nets.memory import MAX_UINT8
from tengen.nets.modules.net import Tensors
from tengen.tensors import Signature


def _as_float(tensor: Tensor) -> Tensor:
    """Returns the tensor as float32; scales uint8 (images) to [0, 1]."""
    if tensor.dtype == torch.uint8:
        return tensor.float().div_(MAX_UINT8)
    return tensor.float()


def flat_inputs(inputs: Tensors, names: Iterable[str]) -> Tensor:
    """Returns the inputs ``names``, flattened and concatenated, ``[B, N]`` float32."""
    rows = [_as_float(inputs[name]) for name in names]
    flat = [row.flatten(1) if row.ndim > 1 else row[:, None] for row in rows]
    return flat[0] if len(flat) == 1 else torch.cat(flat, dim=1)


def num_flat(wanted: Signature, names: Iterable[str]) -> int:
    """Returns the number N of columns that ``flat_inputs`` returns."""
    return sum(wanted.inputs[name].num_entries for name in names)


def make_relu(layer: nn.Linear | nn.Conv2d) -> None:
    """Initializes a layer before a ReLU, so that it preserves the variance.

    Source: He et al. 2015, "Delving Deep into Rectifiers".
    """
    assert layer.bias is not None
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)


def make_small(layer: nn.Linear) -> None:
    """Scales down the weights of an output layer, so that its outputs are nearly 0.

    The initial policy is then nearly uniform, which helps exploration, and the initial
    values are nearly 0, which avoids a bias.
    """
    with torch.no_grad():
        layer.weight.mul_(0.01)
        layer.bias.zero_()


def shaped(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns ``rows``, ``[B, N]``, reshaped to ``[B, *shape]``."""
    if shape == ():
        return rows.squeeze(1)
    return rows if len(shape) == 1 else torch.unflatten(rows, 1, shape)


class LayerNorm(nn.Module):
    """Layer normalization over all units of a row, or all channels and pixels.

    Source: Ba et al. 2016, "Layer Normalization" (arXiv:1607.06450).

    Legend: C units or channels.
    """

    def __init__(self, num_channels: int) -> None:
        """Creates a layer with scale 1 and shift 0 for each of the C channels."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalized tensor, ``[B, C]`` or ``[B, C, H, W]`` like ``x``."""
        return functional.group_norm(x, 1, self.weight, self.bias)


_NUM_COSINES = 64


class QuantileHead(nn.Module):
    """IQN's head: quantiles at given fractions, or at K fixed midpoints in (0, 1).

    Source: Dabney et al. 2018, "Implicit Quantile Networks for Distributional
    Reinforcement Learning" (arXiv:1806.06923), section 3.1.
    Differs from the paper: the embedding of the fractions is multiplied with the
    torso's output after its dense layer, not before it, and a layer of the same size
    follows; the frequencies of the cosines are pi to 64 pi, not 0 to 63 pi, because a
    cosine of frequency 0 is 1 at every fraction.

    Legend: N outputs of the torso, M fractions, A actions.
    """

    def __init__(self, num_seen: int, shape: tuple[int, ...]) -> None:
        """Creates a quantile head with random weights.

        Args:
            num_seen: Number N of outputs of the torso.
            shape: Shape of the quantiles in one row, ``(K, A)``.
        """
        super().__init__()
        num_quantiles, num_actions = shape
        self._middles = (torch.arange(num_quantiles) + 0.5) / num_quantiles
        self._waves = math.pi * torch.arange(1, _NUM_COSINES + 1)
        self.embedding = nn.Linear(_NUM_COSINES, num_seen)
        self.hidden = nn.Linear(num_seen, num_seen)
        self.last = nn.Linear(num_seen, num_actions)
        make_relu(self.embedding)
        make_relu(self.hidden)
        make_small(self.last)

    def forward(self, seen: Tensor, fractions: Tensor | None) -> Tensor:
        """Returns the quantiles, ``[B, M, A]``; M is K if ``fractions`` is None.

        Args:
            seen: ``[B, N]``, the torso's output.
            fractions: ``[B, M]`` in (0, 1), or None for the midpoints.
        """
        if fractions is None:
            fractions = self._middles.to(seen).expand(len(seen), -1)
        cosines = (fractions[..., None] * self._waves.to(seen)).cos()
        embedded = self.embedding(cosines).relu()
        quantiles: Tensor = self.last(self.hidden(seen[:, None] * embedded).relu())
        return quantiles
