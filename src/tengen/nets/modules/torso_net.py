"""The network for environments: a torso, perhaps an LSTM, and a layer for each output.

Legend: B batch, T time, N numbers of a torso's output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tengen.nets.inputs import images_of
from tengen.nets.memory import MemoryConfig
from tengen.nets.modules.layers import make_small, shaped
from tengen.nets.modules.lstm import Lstm
from tengen.nets.modules.net import Net, Tensors, unflat
from tengen.nets.modules.quantiles import QuantileHead
from tengen.tensors import FRACTIONS, FRAMES, QUANTILES, Signature, TensorSpec

__all__ = ["FrameStack", "Torso", "TorsoNet"]


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


class FrameStack:
    """Stacks of the last S images, along their channels.

    Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning",
    methods (S = 4).
    """

    def __init__(self, wanted: Signature, num_frames: int) -> None:
        """Finds the images among the inputs.

        Args:
            wanted: The signature wanted of the network.
            num_frames: Number S of images, at least 1.
        """
        self._num_frames = num_frames
        self._images = images_of(wanted) if num_frames > 1 else {}

    def seen(self, wanted: Signature) -> dict[str, TensorSpec]:
        """Returns the inputs as the layers see them, with stacked images."""
        seen = dict(wanted.inputs)
        for name, image in self._images.items():
            channels = image.num_channels * self._num_frames
            sides = (image.height, image.width)
            first = image.is_channel_first
            shape = (channels, *sides) if first else (*sides, channels)
            seen[name] = TensorSpec(dtype=seen[name].dtype, shape=shape)
        return seen

    def push(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the inputs with stacked images, and the next state.

        Args:
            inputs: ``[B, ...]`` each.
            state: ``[B, S - 1, ...]`` for each image, the past images.
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
        """Returns consecutive steps' inputs with stacked images, and the next state.

        Args:
            inputs: ``[T, B, ...]`` each.
            state: ``[B, S - 1, ...]`` for each image, before the first step.
            is_first: ``[T, B]`` bool, steps before which all images are black.
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
        """Returns the states before each step, ``[T, B, S - 1, ...]`` each.

        Args:
            inputs: As for ``unroll``.
            state: As for ``unroll``.
            is_first: As for ``unroll``.
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
        """Returns S images ``[B, ...]``, oldest first, as one of S times the channels.

        Channels are last in memory, as convolutions on CPUs read them.
        """
        if not self._images[name].is_channel_first:
            return torch.cat(frames, dim=3)
        return torch.cat([f.permute(0, 2, 3, 1) for f in frames], dim=3).permute(
            0, 3, 1, 2
        )
