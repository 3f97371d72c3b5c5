"""The memory of a network for environments.

Source: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory", as in torch, except
the forget gate's initial bias: Gers et al. 2000, "Learning to Forget".

Legend: B batch, T time, N inputs, U units.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from tengen.nets.modules.net import Tensors

__all__ = ["Lstm"]

_HIDDEN, _CELL = "lstm/hidden", "lstm/cell"


class Lstm(nn.Module):
    """One layer of LSTM, whose state is zeroed where an episode begins."""

    def __init__(self, num_inputs: int, num_units: int, forget_bias: float) -> None:
        """Makes the layer with random weights.

        Args:
            num_inputs: Number N of inputs.
            num_units: Number U of units.
            forget_bias: Added to the forget gate's initial bias, which torch draws.
        """
        super().__init__()
        self.layer = nn.LSTM(num_inputs, num_units)
        ((_, _, bias, _),) = self.layer.all_weights
        with torch.no_grad():
            # Torch's order of the gates: input, forget, cell, output.
            bias[num_units : 2 * num_units] += forget_bias

    def step(self, x: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        """Returns outputs ``[B, U]`` for inputs ``[B, N]``, and the next state."""
        # The layer's arithmetic without the overhead of calling the layer.
        (weights,) = self.layer.all_weights
        before = [state[_HIDDEN], state[_CELL]]
        hidden, cell = torch.lstm_cell(x, before, *weights)
        return hidden, {_HIDDEN: hidden, _CELL: cell}

    def forward(
        self, x: Tensor, state: Tensors, is_first: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Returns ``[T, B, U]``, and the state after the last step.

        Args:
            x: ``[T, B, N]`` float32.
            state: ``[B, U]`` float32 each, before the first step.
            is_first: ``[T, B]`` bool: the state is zeroed before this step.
        """
        ((of_input, of_hidden, bias, other_bias),) = self.layer.all_weights
        gates = functional.linear(x, of_input, bias + other_bias)
        seen, cell = _Steps.apply(  # type: ignore[no-untyped-call]
            gates, state[_HIDDEN], state[_CELL], of_hidden, is_first
        )
        return seen, {_HIDDEN: seen[-1], _CELL: cell}


class _Steps(torch.autograd.Function):
    """All steps of a layer, given the part of the gates that depends on the inputs.

    Episodes begin at different steps in each row, so that torch's layer would have to
    be called anew at nearly every step. Here the beginning of an episode costs only a
    mask. All that does not depend on the step before, which is most of the gradient, is
    computed for all steps at once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        hidden: Tensor,
        cell: Tensor,
        weight: Tensor,
        is_first: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns ``[T, B, U]``, and the cell after the last step ``[B, U]``.

        Args:
            ctx: torch's context.
            gates: ``[T, B, 4 U]``, the contribution of inputs and biases to the gates.
            hidden: ``[B, U]`` before the first step.
            cell: ``[B, U]`` before the first step.
            weight: ``[4 U, U]``, the weights of the hidden state.
            is_first: ``[T, B]`` bool.
        """
        num_units = cell.shape[-1]
        begins = is_first.any(1).tolist()
        gates = gates.clone()
        before_h, before_c = hidden, cell
        seen = gates.new_empty(*is_first.shape, num_units)
        cells, squashed = torch.empty_like(seen), torch.empty_like(seen)
        for t, begin in enumerate(begins):
            if begin:
                # Not multiplied by 0, since an old state may have infinite numbers.
                before_h = before_h.masked_fill(is_first[t, :, None], 0)
                before_c = before_c.masked_fill(is_first[t, :, None], 0)
            now = gates[t].addmm_(before_h, weight.t())
            now[:, : 2 * num_units].sigmoid_()
            into, keep, new, out = torch.chunk(now, 4, 1)
            new.tanh_()
            out.sigmoid_()
            before_c = torch.mul(keep, before_c, out=cells[t]).addcmul_(into, new)
            torch.tanh(before_c, out=squashed[t])
            before_h = torch.mul(out, squashed[t], out=seen[t])
        ctx.save_for_backward(
            gates, hidden, cell, weight, is_first, seen, cells, squashed
        )
        ctx.begins = begins
        return seen, cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, of_seen: Tensor, of_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Returns the gradients of ``forward``'s arguments."""
        gates, hidden, cell, weight, is_first, seen, cells, squashed = ctx.saved_tensors
        num_units = cell.shape[-1]
        into, keep, new, out = torch.chunk(gates, 4, 2)
        begun = is_first[..., None]
        before_h = torch.cat([hidden[None], seen[:-1]]).masked_fill_(begun, 0)
        before_c = torch.cat([cell[None], cells[:-1]]).masked_fill_(begun, 0)
        # Derivatives of the cell by the first three gates, then those of the hidden
        # state by the last gate and by the cell.
        by_cell = torch.stack(
            [
                new * into * (1.0 - into),
                before_c * keep * (1.0 - keep),
                into * (1.0 - new * new),
            ],
            2,
        )
        by_hidden = squashed * out * (1.0 - out)
        to_cell = out * (1.0 - squashed * squashed)
        of_gates = torch.empty_like(gates)
        of_hidden, of_cell = torch.zeros_like(cell), of_cell.clone()
        for t in range(len(gates) - 1, -1, -1):
            of_hidden = of_hidden + of_seen[t]
            of_cell.addcmul_(of_hidden, to_cell[t])
            parts = of_gates[t].view(-1, 4, num_units)
            torch.mul(of_cell[:, None], by_cell[t], out=parts[:, :3])
            torch.mul(of_hidden, by_hidden[t], out=parts[:, 3])
            of_cell.mul_(keep[t])
            of_hidden = of_gates[t] @ weight
            if ctx.begins[t]:
                of_cell.masked_fill_(begun[t], 0)
                of_hidden.masked_fill_(begun[t], 0)
        of_weight = of_gates.flatten(0, 1).t() @ before_h.flatten(0, 1)
        return of_gates, of_hidden, of_cell, of_weight, None
