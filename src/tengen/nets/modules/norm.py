"""Batch normalisation over the cells that are on the board.

Source: Ioffe and Szegedy 2015, "Batch Normalization". With equal CPU time, networks
with norms became stronger than networks with scaled residual branches instead.

Differs from the paper: statistics exclude cells beyond the board.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional


class BoardNorm(nn.Module):
    """Normalises each channel with its statistics over batch and board.

    Training mode uses the batch's statistics and updates the running statistics;
    evaluation mode uses the running statistics.

    Attributes:
        weight: Scale of each channel, ``[C]`` float32.
        bias: Shift of each channel, ``[C]`` float32.
        running_mean: Running mean of each channel, ``[C]`` float32 buffer.
        running_var: Running variance of each channel, ``[C]`` float32 buffer.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, num_channels: int, *, momentum: float = 0.1, epsilon: float = 1e-5
    ) -> None:
        """Creates a norm, initially with scale 1 and shift 0.

        Args:
            num_channels: Number C of channels.
            momentum: Weight of a batch in the running statistics.
            epsilon: Number added to the variance.
        """
        super().__init__()
        self.momentum = momentum
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))
        self.register_buffer("running_mean", torch.zeros(num_channels))
        self.register_buffer("running_var", torch.ones(num_channels))

    def folded_into(self, weight: Tensor) -> FoldedConv:
        """Returns a module for a convolution with ``weight``, this norm and a ReLU.

        Args:
            weight: The convolution's weights, as for ``FoldedConv``.
        """
        return FoldedConv(
            weight,
            mean=self.running_mean,
            var=self.running_var,
            epsilon=self.epsilon,
            scale=self.weight.detach(),
            shift=self.bias.detach(),
        )

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Returns ``x`` normalised, with the same shape and dtype.

        Args:
            x: ``[B, C, H, W]`` float32 or bfloat16.
            mask: ``[B, 1, H, W]`` float32, 1 on the board; None if all cells are on the
                board. Outputs beyond the board are unspecified; the caller masks them.
        """
        if mask is None or not self.training:
            return functional.batch_norm(
                x,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                self.training,
                self.momentum,
                self.epsilon,
            )
        num_cells = mask.sum()
        wide = x.float()
        mean = (wide * mask).sum((0, 2, 3)) / num_cells
        centred = wide - mean[:, None, None]
        var = (centred.square() * mask).sum((0, 2, 3)) / num_cells
        with torch.no_grad():
            # Use the unbiased variance, as functional.batch_norm does.
            unbiased = var * (num_cells / (num_cells - 1))
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        scale = self.weight * (var + self.epsilon).rsqrt()
        y = centred * scale[:, None, None] + self.bias[:, None, None]
        return y.to(x.dtype)


# The number of input channels must be a multiple of this number for cuDNN's tensor-core
# kernels. Otherwise cuDNN uses a kernel that takes four times as long.
_CHANNELS_AT_ONCE = 8
_ONES = (1, 1)


class FoldedConv(nn.Module):
    """``relu(norm(conv(x)) + residual)`` for a convolution of stride 1.

    In evaluation mode a norm multiplies each channel by a constant and adds a constant,
    so both constants can be folded into the preceding convolution. On a GPU cuDNN then
    computes convolution, residual and ReLU in one kernel instead of three passes over
    the activations. This doubles the evaluations per second of a small network
    (docs/explanation/performance_inference.md).

    Attributes:
        weight: Folded weights ``[C', C, K, K]``, with zeros for padded input channels.
        shift: Folded shift ``[C']``, of the same dtype.
    """

    weight: Tensor
    shift: Tensor

    def __init__(
        self,
        weight: Tensor,
        *,
        mean: Tensor,
        var: Tensor,
        epsilon: float,
        scale: Tensor,
        shift: Tensor,
    ) -> None:
        """Folds a norm's constants into the weights of the preceding convolution.

        Args:
            weight: ``[C', C, K, K]`` float32, K odd. The convolution pads its input, so
                that the output has the same height and width.
            mean: ``[C']`` float32, the norm's running mean.
            var: ``[C']`` float32, the norm's running variance.
            epsilon: Number that the norm adds to the variance.
            scale: ``[C']`` float32, the norm's scale.
            shift: ``[C']`` float32, the norm's shift.
        """
        super().__init__()
        factor = (var + epsilon).rsqrt() * scale
        added = shift - mean * factor
        folded = weight.detach() * factor[:, None, None, None]
        self._num_pads = -folded.shape[1] % _CHANNELS_AT_ONCE
        if self._num_pads:
            folded = functional.pad(folded, (0, 0, 0, 0, 0, self._num_pads))
        self.register_buffer(
            "weight", folded.contiguous(memory_format=torch.channels_last)
        )
        self.register_buffer("shift", added.detach())
        self._padding = weight.shape[2] // 2

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Casts weights and shift to ``dtype`` permanently; see ``Net.fix_dtype``."""
        self.weight = self.weight.to(dtype)
        self.shift = self.shift.to(dtype)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Returns the activations, ``[B, C', H, W]`` in the dtype of the weights.

        Args:
            x: ``[B, C, H, W]`` in the weights' dtype and in layout ``channels_last``.
            residual: Tensor of the result's shape and dtype; None for 0.
        """
        if self._num_pads:
            x = functional.pad(x, (0, 0, 0, 0, 0, self._num_pads))
        padding = (self._padding, self._padding)
        if not _has_fused(x.device, x.dtype, self.weight.shape):
            y = functional.conv2d(x, self.weight, self.shift, padding=padding)
            return (y if residual is None else y + residual).relu()
        if residual is None:
            return torch.cudnn_convolution_relu(
                x, self.weight, self.shift, _ONES, padding, _ONES, 1
            )
        return torch.cudnn_convolution_add_relu(
            x, self.weight, residual, 1.0, self.shift, _ONES, padding, _ONES, 1
        )


@functools.lru_cache
def _has_fused(device: torch.device, dtype: torch.dtype, shape: torch.Size) -> bool:
    """Returns whether cuDNN has fused kernels for weights of ``shape`` on a device.

    Tries the kernels on a 3 x 3 board and caches the result. The trial is never
    captured in a CUDA graph, because the network runs without capture first.

    Raises:
        torch.OutOfMemoryError: The device has too little memory to try the kernels.
    """
    if device.type != "cuda":
        return False
    num_outputs, num_inputs, side, _ = shape

    def zeros(*sizes: int) -> Tensor:
        made = torch.zeros(sizes, dtype=dtype, device=device)
        return made.contiguous(memory_format=torch.channels_last)

    x, residual = zeros(1, num_inputs, 3, 3), zeros(1, num_outputs, 3, 3)
    weight, shift = zeros(*shape), torch.zeros(num_outputs, dtype=dtype, device=device)
    padding = (side // 2, side // 2)
    try:
        torch.cudnn_convolution_relu(x, weight, shift, _ONES, padding, _ONES, 1)
        torch.cudnn_convolution_add_relu(
            x, weight, residual, 1.0, shift, _ONES, padding, _ONES, 1
        )
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, RuntimeError):
        return False
    return True
