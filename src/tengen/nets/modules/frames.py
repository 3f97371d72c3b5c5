"""Stacks of past images, which a network sees beside the newest image.

Legend: T time, B batch, S images seen at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tengen.nets.inputs import images_of
from tengen.nets.modules.net import Tensors, unflat
from tengen.tensors import FRAMES, Signature, TensorSpec

__all__ = ["FrameStack"]


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
