"""The network for environments: a torso, an optional LSTM, and a layer per output.

Legend: B batch, T time, N outputs of a torso.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from tengen.nets.memory import MemoryConfig, images_of
from tengen.nets.modules.layers import QuantileHead, make_small, shaped
from tengen.nets.modules.net import Net, Tensors, unflat
from tengen.tensors import FRACTIONS, FRAMES, QUANTILES, Signature, TensorSpec

_HIDDEN, _CELL = "lstm/hidden", "lstm/cell"


class Lstm(nn.Module):
    """An LSTM layer, whose state is set to 0 at the start of each episode.

    Source: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory", as in torch,
    except the forget gate's initial bias: Gers et al. 2000, "Learning to Forget".

    Legend: N inputs, U units.
    """

    def __init__(self, num_inputs: int, num_units: int, forget_bias: float) -> None:
        """Creates an LSTM layer with random weights.

        Args:
            num_inputs: Number N of inputs of the layer.
            num_units: Number U of units.
            forget_bias: Number added to torch's random initial forget-gate bias.
        """
        super().__init__()
        self.layer = nn.LSTM(num_inputs, num_units)
        ((_, _, bias, _),) = self.layer.all_weights
        with torch.no_grad():
            # The order of the gates in torch is input, forget, cell, output.
            bias[num_units : 2 * num_units] += forget_bias

    def step(self, x: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        """Returns outputs ``[B, U]`` for inputs ``[B, N]``, and the next state."""
        # Not a call of self.layer, which has the same result but more overhead.
        (weights,) = self.layer.all_weights
        before = [state[_HIDDEN], state[_CELL]]
        hidden, cell = torch.lstm_cell(x, before, *weights)
        return hidden, {_HIDDEN: hidden, _CELL: cell}

    def forward(
        self, x: Tensor, state: Tensors, is_first: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Returns outputs ``[T, B, U]``, and the state after the last step.

        Args:
            x: ``[T, B, N]`` float32.
            state: Tensors ``[B, U]`` float32, the state before the first step.
            is_first: ``[T, B]`` bool, the steps before which the state is zeroed.
        """
        ((of_input, of_hidden, bias, other_bias),) = self.layer.all_weights
        gates = functional.linear(x, of_input, bias + other_bias)
        seen, cell = _Steps.apply(  # type: ignore[no-untyped-call]
            gates, state[_HIDDEN], state[_CELL], of_hidden, is_first
        )
        return seen, {_HIDDEN: seen[-1], _CELL: cell}


class _Steps(torch.autograd.Function):
    """Computes all steps of an LSTM layer, given the inputs' contribution to the gates.

    Episodes begin at different steps in each row, so torch's layer would need a
    separate call for nearly every step. Here the start of an episode costs only a mask.
    Most terms of the gradient do not depend on the previous step and are computed for
    all steps together.
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
        """Returns outputs ``[T, B, U]``, and the cell ``[B, U]`` after the last step.

        Args:
            ctx: The autograd context of torch.
            gates: ``[T, B, 4 U]``, the contribution of inputs and biases to the gates.
            hidden: ``[B, U]``, the hidden state before the first step.
            cell: ``[B, U]``, the cell before the first step.
            weight: ``[4 U, U]``, the weights of the hidden state.
            is_first: ``[T, B]`` bool, the steps before which the state is zeroed.
        """
        num_units = cell.shape[-1]
        begins = is_first.any(1).tolist()
        gates = gates.clone()
        before_h, before_c = hidden, cell
        seen = gates.new_empty(*is_first.shape, num_units)
        cells, squashed = torch.empty_like(seen), torch.empty_like(seen)
        for t, begin in enumerate(begins):
            if begin:
                # Use a mask, not a factor of 0: the old state may contain infinity.
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
        """Returns the gradients with respect to the arguments of ``forward``."""
        gates, hidden, cell, weight, is_first, seen, cells, squashed = ctx.saved_tensors
        num_units = cell.shape[-1]
        into, keep, new, out = torch.chunk(gates, 4, 2)
        begun = is_first[..., None]
        before_h = torch.cat([hidden[None], seen[:-1]]).masked_fill_(begun, 0)
        before_c = torch.cat([cell[None], cells[:-1]]).masked_fill_(begun, 0)
        # Derivatives of the cell with respect to the inputs of the first three gates,
        # then of the hidden state with respect to the last gate's input and the cell.
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


class Torso(nn.Module):
    """Base class of torsos, which map named inputs ``[B, ...]`` to ``[B, N]`` float32.

    Attributes:
        num_outputs: Number N of the torso's outputs.
    """

    def __init__(self, num_outputs: int) -> None:
        """Initializes the base class of a torso with ``num_outputs`` outputs."""
        super().__init__()
        self.num_outputs = num_outputs

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Prepares the weights for inference in ``dtype``; see ``Net.fix_dtype``."""


class TorsoNet(Net):
    """A network of a torso, an optional LSTM, and a linear layer per output."""

    def __init__(
        self,
        wanted: Signature,
        config: MemoryConfig,
        make_torso: Callable[[Signature], Torso],
    ) -> None:
        """Creates a network with random weights from torch's generator.

        Args:
            wanted: The requested signature.
            config: The network's config.
            make_torso: Creates the torso for a signature with stacked images.

        Raises:
            UsageError: The network does not support the signature ``wanted``.
        """
        super().__init__(wanted, config)
        self.frames = FrameStack(wanted, config.num_frames)
        seen = dataclasses.replace(wanted, inputs=self.frames.seen(wanted))
        self.torso = torso = make_torso(seen)
        self.lstm: Lstm | None = None
        num_seen = torso.num_outputs
        if config.lstm_units:
            self.lstm = Lstm(num_seen, config.lstm_units, config.lstm_forget_bias)
            num_seen = config.lstm_units
        self.heads = nn.ModuleDict()
        for name, spec in self.signature.outputs.items():
            if name == QUANTILES:
                self.heads[name] = QuantileHead(num_seen, spec.shape)
                continue
            head = nn.Linear(num_seen, spec.num_entries)
            make_small(head)
            self.heads[name] = head

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the outputs and the next state; see ``Net.answer``."""
        fractions = inputs.get(FRACTIONS)
        inputs, kept = self.frames.push(inputs, state)
        seen = self._seen(inputs)
        if self.lstm is not None:
            seen, memory = self.lstm.step(seen, state)
            kept |= memory
        return self._answers(seen, fractions), kept

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs and the state after the last step; see ``Net.unroll``."""
        steps = is_first.shape
        inputs, kept = self.frames.unroll(inputs, state, is_first)
        rows = {name: tensor.flatten(0, 1) for name, tensor in inputs.items()}
        seen = self._seen(rows)
        if self.lstm is not None:
            seen, memory = self.lstm(unflat(seen, steps), state, is_first)
            seen = seen.flatten(0, 1)
            kept |= memory
        answers = self._answers(seen, None)
        return {name: unflat(x, steps) for name, x in answers.items()}, kept

    def states_of_inputs(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> Tensors:
        """Returns the past images before each step; see ``Net.states_of_inputs``."""
        return self.frames.before(inputs, state, is_first)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """See ``Net.fix_dtype``."""
        super().fix_dtype(dtype)
        self.torso.fix_dtype(dtype)

    def _seen(self, inputs: Tensors) -> Tensor:
        with self.arithmetic(next(iter(inputs.values()))):
            seen: Tensor = self.torso(inputs)
        return seen.float()

    def _answers(self, seen: Tensor, fractions: Tensor | None) -> Tensors:
        answers = {}
        for name, spec in self.signature.outputs.items():
            if name == QUANTILES:
                answers[name] = self.heads[name](seen, fractions)
            else:
                answers[name] = shaped(self.heads[name](seen), spec.shape)
        return answers


class FrameStack:
    """Stacks the newest S images along their channel axis.

    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning",
    methods (S = 4).
    """

    def __init__(self, wanted: Signature, num_frames: int) -> None:
        """Creates a stack for all image inputs in ``wanted``.

        Args:
            wanted: The signature requested from the network.
            num_frames: Number S of images, at least 1.
        """
        self._num_frames = num_frames
        self._images = images_of(wanted) if num_frames > 1 else {}

    def seen(self, wanted: Signature) -> dict[str, TensorSpec]:
        """Returns the specs of the torso's inputs, with stacked images."""
        seen = dict(wanted.inputs)
        for name, image in self._images.items():
            channels = image.num_channels * self._num_frames
            sides = (image.height, image.width)
            first = image.is_channel_first
            shape = (channels, *sides) if first else (*sides, channels)
            seen[name] = TensorSpec(dtype=seen[name].dtype, shape=shape)
        return seen

    def push(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the inputs of a step with stacked images, and the next state.

        Args:
            inputs: The network's inputs ``[B, ...]``, by name.
            state: The past images ``[B, S - 1, ...]``, by name.
        """
        seen, kept = dict(inputs), {}
        for name in self._images:
            before, newest = state[FRAMES + name], inputs[name]
            seen[name] = self._stacked(name, [*before.unbind(1), newest])
            kept[FRAMES + name] = torch.cat([before[:, 1:], newest[:, None]], dim=1)
        return seen, kept

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the inputs of all steps with stacked images, and the next state.

        Args:
            inputs: The network's inputs ``[T, B, ...]``, by name.
            state: The past images ``[B, S - 1, ...]`` before the first step, by name.
            is_first: ``[T, B]`` bool, the steps before which all images are black.
        """
        seen, kept = dict(inputs), {}
        for name in self._images:
            windows = self._windows(name, inputs, state, is_first)
            frames = [*windows, inputs[name]]
            stacked = self._stacked(name, [frame.flatten(0, 1) for frame in frames])
            seen[name] = unflat(stacked, is_first.shape)
            kept[FRAMES + name] = torch.stack([f[-1] for f in frames[1:]], dim=1)
        return seen, kept

    def before(self, inputs: Tensors, state: Tensors, is_first: Tensor) -> Tensors:
        """Returns the past images before each step, tensors ``[T, B, S - 1, ...]``.

        Args:
            inputs: See ``unroll``.
            state: See ``unroll``.
            is_first: See ``unroll``.
        """
        return {
            FRAMES + name: torch.stack(
                self._windows(name, inputs, state, is_first), dim=2
            )
            for name in self._images
        }

    def _windows(
        self, name: str, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> list[Tensor]:
        """Returns the images S - 1, ..., 1 steps before each step, ``[T, B, ...]``."""
        num_steps, most = len(is_first), self._num_frames - 1
        frames = torch.cat([state[FRAMES + name].transpose(0, 1), inputs[name]])
        has_begun = torch.zeros_like(is_first)
        has_any = bool(is_first.any())
        windows = []
        for age in range(1, most + 1):
            window = frames[most - age : most - age + num_steps]
            if has_any:
                has_begun[age - 1 :] |= is_first[: max(0, num_steps - age + 1)]
                black = has_begun.reshape(*has_begun.shape, *[1] * (window.ndim - 2))
                window = window.masked_fill(black, 0)
            windows.append(window)
        return windows[::-1]

    def _stacked(self, name: str, frames: list[Tensor]) -> Tensor:
        """Returns S images ``[B, ...]``, oldest first, concatenated along channels.

        The result has channels last in memory, which is fastest for CPU convolutions.
        """
        if not self._images[name].is_channel_first:
            return torch.cat(frames, dim=3)
        return torch.cat([f.permute(0, 2, 3, 1) for f in frames], dim=3).permute(
            0, 3, 1, 2
        )
