"""A simple numpy reference for the outputs of an int8 residual network.

Arithmetic is exact: uint8 times int8, summed in int64, scaled once at the end. It
shares only the rounding rule with the graph that the product writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tensors = Mapping[str, Array]

EPSILON = 1e-5


def answer(
    weights: Tensors, planes: Array, peaks: list[float], pools: list[bool]
) -> tuple[Array, Array, list[float]]:
    """Returns logits ``[B, A]``, values ``[B]`` and the observed activation peaks.

    Args:
        weights: The state of a network whose policy layout is ``cells``.
        planes: ``[B, C, H, W]``; every board fills its planes.
        peaks: The maximum input of each convolution in the blocks, in order. If empty,
            computes in floats and measures them.
        pools: Whether each block has a pooling branch.
    """
    met: list[float] = []

    def trunk_convolution(x: Array, name: str) -> Array:
        met.append(float(x.max()))
        weight = weights[name]
        if not peaks:
            return convolution(x, weight)
        return int8_convolution(x, weight, peaks[len(met) - 1])

    x = convolution(planes, weights["stem.weight"])
    for index, has_pool in enumerate(pools):
        name = f"blocks.{index}"
        y = np.maximum(norm(x, weights, f"{name}.norm1"), 0)
        y = norm(trunk_convolution(y, f"{name}.conv1.weight"), weights, f"{name}.norm2")
        if has_pool:
            matrix = weights[f"{name}.pool.weight"]
            pooled = np.maximum(y[:, : matrix.shape[1] // 3], 0)
            y = y + (pool(pooled) @ matrix.T)[:, :, None, None]
        x = x + trunk_convolution(np.maximum(y, 0), f"{name}.conv2.weight")
    x = np.maximum(norm(x, weights, "tip"), 0)
    return policy_head(x, weights), value_head(x, weights), met


def int8_convolution(x: Array, weight: Array, peak: float) -> Array:
    """Returns a convolution of quantized inputs and weights, rescaled to floats."""
    step = np.float32(peak / 255)
    levels = np.clip(np.rint(x / step), 0, 255).astype(np.int64)
    steps = np.array([largest_pair(channel) for channel in weight]) / np.float32(127)
    rounded = np.rint(weight / steps[:, None, None, None]).astype(np.int64)
    total = convolution(levels, rounded)
    assert total.dtype == np.int64
    return total * (step * steps)[:, None, None]


def largest_pair(channel: Array) -> np.float32:
    """Returns the largest sum of two weights of one sign among four input channels."""
    found = np.float32(0)
    num_inputs, height, width = channel.shape
    for first in range(0, num_inputs, 4):
        for row in range(height):
            for column in range(width):
                four = channel[first : first + 4, row, column]
                for sign in (1, -1):
                    two = sorted(max(sign * w, np.float32(0)) for w in four)[-2:]
                    found = max(found, sum(two, np.float32(0)))
    return found


def convolution(x: Array, weight: Array) -> Array:
    """Returns a convolution ``[B, O, H, W]`` with zero padding; odd kernels only."""
    reach = weight.shape[2] // 2
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    total = np.zeros((len(x), len(weight), height, width), x.dtype)
    for row in range(weight.shape[2]):
        for column in range(weight.shape[3]):
            window = padded[:, :, row : row + height, column : column + width]
            tap = weight[:, :, row, column].astype(x.dtype)
            total += np.einsum("bihw,oi->bohw", window, tap)
    return total


def norm(x: Array, weights: Tensors, name: str) -> Array:
    """Returns ``x`` normalized with the running statistics."""
    mean, var = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    scale = weights[f"{name}.weight"] / np.sqrt(var + EPSILON)
    shift = weights[f"{name}.bias"] - mean * scale
    return x * scale[:, None, None] + shift[:, None, None]


def pool(x: Array) -> Array:
    """Returns mean, mean scaled by board size, and maximum, as ``[B, 3C]``."""
    mean = x.mean(axis=(2, 3))
    side = np.sqrt(x.shape[2] * x.shape[3]) / 10 - 1
    return np.concatenate([mean, mean * side, x.max(axis=(2, 3))], axis=1)


def policy_head(x: Array, weights: Tensors) -> Array:
    """Returns one logit per cell."""
    pooled = np.maximum(pointwise(x, weights, "policy_head.pooled"), 0)
    bias = pool(pooled) @ weights["policy_head.bias.weight"].T
    local = pointwise(x, weights, "policy_head.local") + bias[:, :, None, None]
    return pointwise(np.maximum(local, 0), weights, "policy_head.out").reshape(
        len(x), -1
    )


def value_head(x: Array, weights: Tensors) -> Array:
    """Returns the probability of a win minus that of a loss."""
    pooled = pool(np.maximum(pointwise(x, weights, "value_head.pooled"), 0))
    hidden = np.maximum(linear(pooled, weights, "value_head.hidden"), 0)
    powers = np.exp(linear(hidden, weights, "value_head.out"))
    outcome = powers / powers.sum(axis=1, keepdims=True)
    return np.asarray(outcome[:, 0] - outcome[:, 2])


def pointwise(x: Array, weights: Tensors, name: str) -> Array:
    """Returns a 1x1 convolution with bias."""
    bias = weights[f"{name}.bias"][:, None, None]
    return convolution(x, weights[f"{name}.weight"]) + bias


def linear(x: Array, weights: Tensors, name: str) -> Array:
    """Returns a linear layer with bias."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
