"""Global pooling and the policy and value heads of a board network.

Legend: B batch, C channels, H W board, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.tensors import BoardSpec

NUM_VALUE_UNITS = 64
"""Number of units in the hidden layer of ``ValueHead``."""


class GlobalPool(nn.Module):
    """Global pooling: each channel's mean, mean times board side, and maximum.

    Source: Wu 2019, "Accelerating Self-Play Learning in Go", section 3.3.
    """

    def forward(self, x: Tensor, area: Tensor) -> Tensor:
        """Returns the pooled channels, ``[B, 3C]`` float32.

        Args:
            x: ``[B, C, H, W]``, not negative and zero beyond the board, so that neither
                the sum nor the maximum needs a mask.
            area: ``[B, 1]`` float32, number of cells on each board.
        """
        wide = x.float()
        mean = wide.sum((2, 3)) / area
        # Centre the scale at 10x10 boards, where it is 0, so that the two means differ.
        side = area.sqrt() / 10.0 - 1.0
        top = _largest(wide, self.training)
        return torch.cat([mean, mean * side, top], dim=1)


def _largest(x: Tensor, training: bool, *, of_columns: bool = False) -> Tensor:
    """Returns the maximum over the board ``[B, C]``, or over each column ``[B, C, W]``.

    In training, uses max pooling, whose forward pass stores the index of each maximum.
    The backward pass of ``amax`` compares all cells again and takes six times as long.
    """
    if not training:
        return x.amax(2) if of_columns else x.amax((2, 3))
    if of_columns:
        return functional.adaptive_max_pool2d(x, (1, x.shape[3])).squeeze(2)
    return functional.adaptive_max_pool2d(x, 1).flatten(1)


class PolicyLogits(nn.Module):
    """The last layer of a policy head, which computes logits in a policy layout."""

    def __init__(self, board: BoardSpec, num_channels: int) -> None:
        """Creates the last layer of a policy head.

        Args:
            board: The board, which defines the policy layout.
            num_channels: Number of channels in the policy head.
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
        """Returns policy logits ``[B, A]`` float32, unspecified beyond the board.

        Args:
            local: ``[B, C, H, W]`` float32, activations per cell, 0 beyond the board.
            context: ``[B, 3C]`` float32, pooled activations of the board.
        """
        if self.layout == "flat":
            logits: Tensor = self.out(local.flatten(1))
        elif self.layout == "columns":
            # Pool each column, because an action is a column.
            top = _largest(local, self.training, of_columns=True)
            column = torch.cat([local.mean(2), top], dim=1)
            logits = self.out(column.transpose(1, 2)).squeeze(2)
        else:
            logits = self.out(local).flatten(1)
        if self.layout == "cells_and_pass":
            logits = torch.cat([logits, self.out_pass(context)], dim=1)
        return logits


class PolicyHead(PolicyLogits):
    """The policy head, which computes policy logits from the trunk's activations."""

    def __init__(self, board: BoardSpec, num_inputs: int, num_channels: int):
        """Creates a policy head.

        Args:
            board: The board, which defines the policy layout.
            num_inputs: Number of channels of the trunk.
            num_channels: Number of channels in the policy head.
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
        """Returns the policy head's activations, the arguments of ``forward``.

        Args:
            x: ``[B, C, H, W]`` float32, the trunk's activations.
            mask: ``[B, 1, H, W]`` float32 on-board mask; None if boards fill planes.
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
    """The value head, which computes WDL logits for the side to move."""

    def __init__(self, num_inputs: int, num_channels: int) -> None:
        """Creates a value head.

        Args:
            num_inputs: Number of channels of the trunk.
            num_channels: Number of channels that the value head pools.
        """
        super().__init__()
        self.pooled = nn.Conv2d(num_inputs, num_channels, 1)
        self.pool = GlobalPool()
        self.hidden = nn.Linear(3 * num_channels, NUM_VALUE_UNITS)
        self.out = nn.Linear(NUM_VALUE_UNITS, 3)

    def see(
        self, x: Tensor, mask: Tensor | None, area: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns cells ``[B, C, H, W]`` and hidden units ``[B, NUM_VALUE_UNITS]``.

        The arguments are those of ``PolicyHead.see``.
        """
        pooled = self.pooled(x).relu()
        if mask is not None:
            pooled = pooled * mask
        return pooled, self.hidden(self.pool(pooled, area)).relu()

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns WDL logits ``[B, 3]`` float32, given ``see``'s second result."""
        logits: Tensor = self.out(hidden)
        return logits
