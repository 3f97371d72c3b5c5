"""The network for environments: a torso, perhaps an LSTM, and a layer for each output.

Legend: B batch, T time, N numbers of a torso's output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tengen.nets.memory import MemoryConfig
from tengen.nets.modules.frames import FrameStack
from tengen.nets.modules.layers import make_small, shaped
from tengen.nets.modules.lstm import Lstm
from tengen.nets.modules.net import Net, Tensors, unflat
from tengen.nets.modules.quantiles import QuantileHead
from tengen.tensors import FRACTIONS, QUANTILES, Signature

__all__ = ["Torso", "TorsoNet"]


class Torso(nn.Module):
    """Base of torsos, which turn named inputs ``[B, ...]`` into ``[B, N]`` float32.

    Attributes:
        num_outputs: Number N of outputs.
    """

    def __init__(self, num_outputs: int) -> None:
        """Begins a torso."""
        super().__init__()
        self.num_outputs = num_outputs

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Stores the weights as inference needs them; see ``Net.fix_dtype``."""


class TorsoNet(Net):
    """Linear layers for any outputs, float32 and unbounded, on top of a torso."""

    def __init__(
        self,
        wanted: Signature,
        config: MemoryConfig,
        make_torso: Callable[[Signature], Torso],
    ) -> None:
        """Makes a network with random weights from torch's generator.

        Args:
            wanted: The wanted signature.
            config: The kind of network, and its size.
            make_torso: Makes the torso for checked inputs, with stacked images.

        Raises:
            UsageError: The network cannot have these inputs or outputs.
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
        """Returns outputs and next state; see ``Net.answer``."""
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
        """Returns outputs, and the state after the last step; see ``Net.unroll``."""
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
