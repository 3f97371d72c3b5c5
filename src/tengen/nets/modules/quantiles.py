"""The head that answers any quantile of the returns of actions.

Source: Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement
Learning" (arXiv:1806.06923), section 3.1.
Differs from the paper: the fractions' embedding is multiplied with the torso's output
after its dense layer, not before it, and a layer of the same size follows; the
frequencies of the cosines are pi to 64 pi, not 0 to 63 pi, because a cosine of
frequency 0 is 1 at every fraction.

Legend: B batch, N numbers of the torso's output, M fractions, A actions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tengen.nets.modules.layers import make_relu, make_small

__all__ = ["QuantileHead"]

_NUM_COSINES = 64


class QuantileHead(nn.Module):
    """Quantiles at given fractions, or at the middles of K equal parts of (0, 1)."""

    def __init__(self, num_seen: int, shape: tuple[int, ...]) -> None:
        """Makes the layers with random weights.

        Args:
            num_seen: Number N of inputs.
            shape: Shape of the output: K and A.
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
        """Returns ``[B, M, A]``; M is K where no fractions are given.

        Args:
            seen: ``[B, N]``.
            fractions: ``[B, M]`` in (0, 1), or None.
        """
        if fractions is None:
            fractions = self._middles.to(seen).expand(len(seen), -1)
        cosines = (fractions[..., None] * self._waves.to(seen)).cos()
        embedded = self.embedding(cosines).relu()
        quantiles: Tensor = self.last(self.hidden(seen[:, None] * embedded).relu())
        return quantiles
