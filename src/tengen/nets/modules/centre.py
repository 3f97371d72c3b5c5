"""A module that subtracts the mean image from images.

Legend: B batch, C channels, H W image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen import _core
from tengen.nets.modules.exporting import is_exporting
from tengen.nets.modules.standard import WINDOW_ROWS, RunningSums

_NAMES = re.compile(r"(.*\.)?centres\.\d+\.(total|num_rows)")


def without_mean(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors of ``Centre`` modules, by name, which older weights lack.

    The tensors represent a mean of 0, so older weights give the same outputs as before.

    Args:
        state: The state dictionary of one or several networks with ``Centre``.
    """
    return {
        name: torch.full_like(tensor, WINDOW_ROWS if found[2] == "num_rows" else 0.0)
        for name, tensor in state.items()
        if (found := _NAMES.fullmatch(name))
    }


class Centre(RunningSums):
    """Subtracts the mean image, rounded to integers, from uint8 images.

    The screens of a game differ only in a few objects on a background. So a layer's
    response to the background is far larger than its response to the objects, and an
    optimizer step shifts the outputs for all screens more than it separates them. In
    Pong the ratio of the two responses, as norms of the untrained Nature network's 512
    features, is 13, but 3 if the background's grey is subtracted. With the grey
    subtracted, PPO's values explained half of the variance of Pong's returns after
    28,000 steps, not 58,000 (one seed).

    The mean is over the images of the batches that the network was trained on; beyond
    ``WINDOW_ROWS`` images, older images have less weight. The mean is rounded to
    integers, so that differences of uint8 values are exact even in bfloat16.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"
    (arXiv:2005.12729), section 3, for subtracting the mean observation from vectors.
    Differs from the source: images are not divided by their standard deviation, which
    is 0 for pixels that never change.
    """

    total: Tensor

    def __init__(self, num_channels: int, height: int, width: int) -> None:
        """Creates a module with a mean of 0, which leaves images unchanged."""
        super().__init__()
        self.register_buffer("total", torch.zeros(1, num_channels, height, width))
        self.register_buffer("num_rows", torch.zeros(()))

    @property
    def mean(self) -> Tensor:
        """The mean image, ``[1, C, H, W]`` float32."""
        return self.total / self.num_rows.clamp(min=1.0)

    def forward(self, pictures: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns the images minus the mean; in training, first updates the mean.

        Args:
            pictures: ``[B, C, H, W]`` uint8.
            dtype: Dtype of the result, float32 or bfloat16.

        Returns:
            ``[B, C, H, W]`` with integer values, channels last in memory. This layout
            makes convolutions faster on CPUs, and in bfloat16 on GPUs.
        """
        # Reorder before the conversion, whose result has two or four bytes per pixel.
        pictures = pictures.contiguous(memory_format=torch.channels_last)
        in_core = _is_for_the_core(pictures, dtype)
        if self.is_counting(pictures):
            self._observe(pictures, in_core)
        mean = self.mean.round()
        if in_core:
            return _centred_in_core(pictures, mean, dtype)
        mean = mean.to(dtype, memory_format=torch.channels_last)
        return pictures.to(dtype).sub_(mean)

    @torch.no_grad()
    def _observe(self, pictures: Tensor, in_core: bool) -> None:
        self.forget()
        self.num_rows += len(pictures)
        if not in_core:
            self.total += pictures.sum(0, keepdim=True, dtype=torch.float32)
            return
        rows = _rows(pictures)
        total = np.zeros(rows.shape[1], np.uint32)
        _core.add_pictures(rows, total)
        beside = torch.from_numpy(total.astype(np.float32))
        self.total += beside.view(1, *_beside(pictures).shape[1:]).permute(0, 3, 1, 2)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> None:
        """Loads the module's state; accepts older weights without a mean image."""
        own = {prefix + name: buffer for name, buffer in self.named_buffers()}
        for name, tensor in without_mean(own).items():
            state_dict.setdefault(name, tensor)
        super()._load_from_state_dict(state_dict, prefix, *args)


def _is_for_the_core(pictures: Tensor, dtype: torch.dtype) -> bool:
    """Returns whether the kernels of the C++ core can process the images.

    The kernels read the images once for the sum and once for the difference. torch
    would also copy the images.
    """
    return (
        pictures.device.type == "cpu"
        and dtype in (torch.float32, torch.bfloat16)
        and not is_exporting()
    )


def _centred_in_core(pictures: Tensor, mean: Tensor, dtype: torch.dtype) -> Tensor:
    rows = _rows(pictures)
    out = torch.empty(_beside(pictures).shape, dtype=dtype)
    whole = mean.to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy().reshape(-1)
    if dtype == torch.float32:
        _core.centre_float(rows, whole, out.numpy().reshape(rows.shape))
    else:
        bits = out.view(torch.int16).numpy().view(np.uint16)
        _core.centre_bfloat16(rows, whole, bits.reshape(rows.shape))
    return out.permute(0, 3, 1, 2)


def _beside(pictures: Tensor) -> Tensor:
    """Returns the images as ``[B, H, W, C]``, with channels last in memory."""
    return pictures.permute(0, 2, 3, 1)


def _rows(pictures: Tensor) -> NDArray[np.uint8]:
    """Returns the images as rows of bytes, ``[B, H * W * C]``."""
    beside: NDArray[np.uint8] = _beside(pictures).numpy()
    return beside.reshape(len(pictures), -1)
