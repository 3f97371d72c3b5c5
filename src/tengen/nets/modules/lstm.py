"""The memory of a network for environments.

Source: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory", as torch has it.

Legend: B batch, T time, N inputs, U units.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from tengen.nets.modules.net import Tensors, zeroed

__all__ = ["Lstm"]

_HIDDEN, _CELL = "lstm/hidden", "lstm/cell"


class Lstm(nn.Module):
    """One layer of LSTM, whose state is zeroed where an episode begins."""

    def __init__(self, num_inputs: int, num_units: int) -> None:
        """Makes the layer with random weights.

        Args:
            num_inputs: N.
            num_units: U.
        """
        super().__init__()
        self.layer = nn.LSTM(num_inputs, num_units)

    def step(self, x: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        """Returns ``[B, U]`` of ``[B, N]``, and the next state, ``[B, U]`` each."""
        # The layer's arithmetic without what a call of the layer costs.
        (weights,) = self.layer.all_weights
        before = [state[_HIDDEN], state[_CELL]]
        hidden, cell = torch.lstm_cell(x, before, *weights)
        return hidden, {_HIDDEN: hidden, _CELL: cell}

    def forward(
        self, x: Tensor, state: Tensors, is_first: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Returns ``[T, B, U]``, and the state after the last step.

        The steps between two beginnings of episodes, of whichever rows, are one call
        of torch's layer, which is several times as fast as a call a step.

        Args:
            x: ``[T, B, N]`` float32.
            state: ``[B, U]`` float32 each, before the first step.
            is_first: ``[T, B]`` bool: the state is zeroed before this step.
        """
        begins = is_first.any(1).tolist()
        bounds = [t for t, begin in enumerate(begins) if begin or t == 0]
        parts = []
        for first, last in itertools.pairwise([*bounds, len(begins)]):
            part, state = self._run(x[first:last], zeroed(state, is_first[first]))
            parts.append(part)
        return parts[0] if len(parts) == 1 else torch.cat(parts), state

    def _run(self, x: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        """Returns ``[T, B, U]`` of ``[T, B, N]`` within episodes, and the state."""
        if len(x) == 1:
            hidden, state = self.step(x[0], state)
            return hidden[None], state
        before = state[_HIDDEN][None], state[_CELL][None]
        seen, (hidden, cell) = self.layer(x, before)
        return seen, {_HIDDEN: hidden[0], _CELL: cell[0]}
