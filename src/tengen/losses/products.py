"""A product in which a factor of 0 hides a value that is not finite."""

from __future__ import annotations

import torch
from torch import Tensor


def product_or_zero(factor: Tensor, values: Tensor) -> Tensor:
    """Returns products ``[...]``, 0 where ``factor`` is 0; gradients may be NaN."""
    return torch.where(factor != 0, factor * values, 0.0)
