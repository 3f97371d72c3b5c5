"""Global pooling and the policy and value heads of a board network.

Legend: B batch, C channels, H W board, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.tensors import BoardSpec

__all__ = ["NUM_VALUE_UNITS", "GlobalPool", "PolicyHead", "PolicyLogits", "ValueHead"]

NUM_VALUE_UNITS = 64
"""Number of units in the value head's hidden layer."""


class GlobalPool(nn.Module):
    """Pools each channel: the mean, the mean scaled by the board size, and the maximum.

    Source: Wu 2019, "Accelerating Self-Play Learning in Go", section 3.3.
    """

    def forward(self, x: Tensor, area: Tensor) -> Tensor:
        """Returns ``[B, 3C]`` float32.

        Args:
            x: ``[B, C, H, W]``, not negative and zero off the board, so that neither
                the sum nor the maximum needs a mask.
            area: ``[B, 1]`` float32, number of cells on each board.
        """
        wide = x.float()
        mean = wide.sum((2, 3)) / area
        # Zero for 10x10 boards, so that the two means are not nearly proportional.
        side = area.sqrt() / 10.0 - 1.0
        top = _largest(wide, self.training)
        return torch.cat([mean, mean * side, top], dim=1)


def _largest(x: Tensor, training: bool, *, of_columns: bool = False) -> Tensor:
    """Returns the maximum over the board ``[B, C]``, or over each column ``[B, C, W]``.

    In training, uses max pooling, whose forward pass stores the cell of each maximum.
    The backward pass of ``amax`` compares all cells again, at six times the cost.
    """
    if not training:
        return x.amax(2) if of_columns else x.amax((2, 3))
    if of_columns:
        return functional.adaptive_max_pool2d(x, (1, x.shape[3])).squeeze(2)
    return functional.adaptive_max_pool2d(x, 1).flatten(1)


class PolicyLogits(nn.Module):
    """Converts a policy head's activations to logits in one of the policy layouts."""

    def __init__(self, board: BoardSpec, num_channels: int) -> None:
        """Creates the last layer.

        Args:
            board: The board, which defines the layout.
            num_channels: Number of channels in the head.
        """
        super().__init__()
        self._make_layers(board, num_channels)

    def _make_layers(self, board: BoardSpec, num_channels: int) -> None:
        self.layout = board.policy_layout
        self.out: nn.Module
        if self.layout == "flat":
            num_flat = num_channels * board.height * board.width
            self.out = nn.Linear(num_flat, board.num_actions)
        elif self.layout == "columns":
            self.out = nn.Linear(2 * num_channels, 1)
        else:
            self.out = nn.Conv2d(num_channels, 1, 1)
        if self.layout == "cells_and_pass":
            self.out_pass = nn.Linear(3 * num_channels, 1)

    def forward(self, local: Tensor, context: Tensor) -> Tensor:
        """Returns logits ``[B, A]`` float32; those off the board are unspecified.

        Args:
            local: ``[B, C, H, W]`` float32, activations per cell, zero off the board.
            context: ``[B, 3C]`` float32, pooled activations of the board.
        """
        if self.layout == "flat":
            logits: Tensor = self.out(local.flatten(1))
        elif self.layout == "columns":
            # Pools columns, because an action's logit depends on its complete column.
            top = _largest(local, self.training, of_columns=True)
            column = torch.cat([local.mean(2), top], dim=1)
            logits = self.out(column.transpose(1, 2)).squeeze(2)
        else:
            logits = self.out(local).flatten(1)
        if self.layout == "cells_and_pass":
            logits = torch.cat([logits, self.out_pass(context)], dim=1)
        return logits


class PolicyHead(PolicyLogits):
    """Policy logits from the trunk's activations."""

    def __init__(self, board: BoardSpec, num_inputs: int, num_channels: int):
        """Creates the head.

        Args:
            board: The board, which defines the layout.
            num_inputs: Number of channels of the trunk.
            num_channels: Number of channels in the head.
        """
        nn.Module.__init__(self)
        self.local = nn.Conv2d(num_inputs, num_channels, 1)
        self.pooled = nn.Conv2d(num_inputs, num_channels, 1)
        self.pool = GlobalPool()
        self.bias = nn.Linear(3 * num_channels, num_channels, bias=False)
        # Created last, so that weights are initialized in the order of their use.
        self._make_layers(board, num_channels)

    def see(
        self, x: Tensor, mask: Tensor | None, area: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the arguments of ``forward``.

        Args:
            x: ``[B, C, H, W]`` float32, the trunk's activations.
            mask: ``[B, 1, H, W]`` float32, or None if the board fills the planes.
            area: ``[B, 1]`` float32, number of cells on each board.
        """
        pooled = self.pooled(x).relu()
        local = self.local(x)
        if mask is not None:
            pooled = pooled * mask
        context = self.pool(pooled, area)
        local = (local + self.bias(context)[:, :, None, None]).relu()
        if mask is not None:
            local = local * mask
        return local, context


class ValueHead(nn.Module):
    """Logits of win, draw and loss for the side to move."""

    def __init__(self, num_inputs: int, num_channels: int) -> None:
        """Creates the head.

        Args:
            num_inputs: Number of channels of the trunk.
            num_channels: Number of channels that are pooled.
        """
        super().__init__()
        self.pooled = nn.Conv2d(num_inputs, num_channels, 1)
        self.pool = GlobalPool()
        self.hidden = nn.Linear(3 * num_channels, NUM_VALUE_UNITS)
        self.out = nn.Linear(NUM_VALUE_UNITS, 3)

    def see(
        self, x: Tensor, mask: Tensor | None, area: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns cells' activations ``[B, C, H, W]``, and ``[B, NUM_VALUE_UNITS]``.

        Takes the arguments of ``PolicyHead.see``.
        """
        pooled = self.pooled(x).relu()
        if mask is not None:
            pooled = pooled * mask
        return pooled, self.hidden(self.pool(pooled, area)).relu()

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns logits ``[B, 3]`` float32 for the second result of ``see``."""
        logits: Tensor = self.out(hidden)
        return logits
