"""Actions as environments take them, and as a network's inputs encode them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs import ActionSpec

__all__ = ["clip_actions", "encode_actions", "encoded_length"]


def clip_actions(spec: ActionSpec, actions: NDArray[Any]) -> NDArray[Any]:
    """Returns real numbers clipped to their bounds, and choices as they are.

    A policy draws real numbers from a Gaussian, which has no bounds. The number drawn
    is stored, in the environment's units, and the environment gets the clipped number.

    Args:
        spec: The environment's action space.
        actions: ``[N, ...]``.
    """
    if spec.is_discrete:
        return actions
    low = np.asarray(spec.low, np.float32).reshape(spec.shape)
    high = np.asarray(spec.high, np.float32).reshape(spec.shape)
    clipped: NDArray[Any] = np.clip(actions, low, high)
    return clipped


def encoded_length(spec: ActionSpec) -> int:
    """Returns how many numbers ``encode_actions`` returns for an action."""
    return sum(spec.num_choices) if spec.is_discrete else len(spec.low)


def encode_actions(
    spec: ActionSpec, actions: NDArray[Any], *, is_scaled: bool = False
) -> NDArray[np.float32]:
    """Returns ``[N, encoded_length]`` float32: choices one-hot, numbers clipped.

    Args:
        spec: The environment's action space.
        actions: ``[N, ...]``.
        is_scaled: Whether numbers with bounds are scaled to [-1, 1].
    """
    num_rows = len(actions)
    if not spec.is_discrete:
        numbers = clip_actions(spec, actions).reshape(num_rows, -1)
        if is_scaled:
            numbers = spec.scale.to_unit(numbers)
        return numbers.astype(np.float32)
    starts = np.cumsum((0, *spec.num_choices[:-1]))
    encoded = np.zeros((num_rows, encoded_length(spec)), np.float32)
    np.put_along_axis(encoded, actions.reshape(num_rows, -1) + starts, 1.0, axis=1)
    return encoded
