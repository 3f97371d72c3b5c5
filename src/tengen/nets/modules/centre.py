"""Pictures without what they all have in common.

Legend: B batch, C channels, H W image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Centre", "without_mean"]

_MAX_ROWS = 1_000_000.0
_NAMES = re.compile(r"(.*\.)?centres\.\d+\.(total|num_rows)")


def without_mean(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns what weights of before networks had a mean lack, by name.

    With it they answer as they did, and go on so.

    Args:
        state: Of a network of now, or of several.
    """
    return {
        name: torch.full_like(tensor, _MAX_ROWS if found[2] == "num_rows" else 0.0)
        for name, tensor in state.items()
        if (found := _NAMES.fullmatch(name))
    }


class Centre(nn.Module):
    """Subtracts from pictures of bytes the mean picture, rounded to whole numbers.

    Screens of a game differ by a few objects on a background that fills the rest. What
    layers answer to the background is then far larger than what they answer to the
    objects (in Pong 13 times, by the norm of the 512 features of the untrained Nature
    network; less the grey of Pong's background 3 times), and a step of the optimizer
    moves the answers to all screens alike more than it tells screens apart: with the
    grey subtracted, PPO's values explained half of Pong's returns after 28,000 steps
    and not 58,000 (one seed).

    The mean is of the pictures that the network was trained on, each as often as it
    was, up to a million for each part of a batch (``LearnerConfig.num_shards``); then
    it stays. Whole numbers, so that differences of bytes are exact in bfloat16 too.

    Source: the means of observations that are subtracted before networks of vectors
    see them, as in Engstrom et al. 2020, "Implementation Matters in Deep Policy
    Gradients" (arXiv:2005.12729), section 3. Differs from it: pictures are not divided
    by their deviation, which is 0 where nothing moves.
    """

    total: Tensor
    num_rows: Tensor

    def __init__(self, num_channels: int, height: int, width: int) -> None:
        """Begins with a mean of 0, which changes nothing."""
        super().__init__()
        # A sum, so that the mean over several copies is one over all their rows.
        self.register_buffer("total", torch.zeros(1, num_channels, height, width))
        self.register_buffer("num_rows", torch.zeros(()))

    @property
    def mean(self) -> Tensor:
        """The mean picture, ``[1, C, H, W]`` float32."""
        return self.total / self.num_rows.clamp(min=1.0)

    def forward(self, planes: Tensor) -> Tensor:
        """Returns the pictures less the mean; in training the mean has them in it.

        Args:
            planes: ``[B, C, H, W]`` of whole numbers, float32 or bfloat16; may be
                overwritten.
        """
        if self.training and len(planes):
            self._observe(planes)
        # As channels lie in a batch of pictures.
        mean = self.mean.round().to(planes.dtype, memory_format=torch.channels_last)
        return planes.sub_(mean)

    @torch.no_grad()
    def _observe(self, planes: Tensor) -> None:
        if self.num_rows >= _MAX_ROWS:
            return
        self.num_rows += len(planes)
        self.total += planes.sum(0, keepdim=True, dtype=torch.float32)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> None:
        """Takes weights of before, which had no mean."""
        own = {prefix + name: buffer for name, buffer in self.named_buffers()}
        for name, tensor in without_mean(own).items():
            state_dict.setdefault(name, tensor)
        super()._load_from_state_dict(state_dict, prefix, *args)
