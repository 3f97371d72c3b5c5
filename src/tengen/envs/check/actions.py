"""Actions to try an environment with: every choice, both bounds, then random ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import ActionSpec

__all__ = ["agents_actions", "own_actions"]

# Up to so many choices are each tried once; with more, random ones are tried.
_MAX_TRIED = 64


def own_actions(space: Any, seed: int) -> Iterator[Any]:
    """Yields actions of a space, in the environment's own form, without end.

    Args:
        space: The action space, which is not changed.
        seed: Seed of the random actions.
    """
    from gymnasium import spaces

    space = copy.deepcopy(space)
    space.seed(seed)
    if isinstance(space, spaces.Discrete) and space.n <= _MAX_TRIED:
        for choice in range(space.n):
            yield space.start + space.dtype.type(choice)
    elif isinstance(space, spaces.Box):
        for bound in (space.low, space.high):
            if np.isfinite(bound).all():
                yield bound.copy()
    while True:
        yield space.sample()


def agents_actions(
    spec: ActionSpec, num_steps: int, num_envs: int, seed: int
) -> NDArray[Any]:
    """Returns random actions ``[T, N, ...]`` as agents give them.

    Args:
        spec: The action space.
        num_steps: Number T of steps.
        num_envs: Number N of copies.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    shape = (num_steps, num_envs, *spec.shape)
    if spec.is_discrete:
        choices = np.reshape(spec.num_choices, spec.shape)
        return rng.integers(0, choices, size=shape, dtype=np.int64)
    drawn = rng.standard_normal(shape)
    low, high = np.array(spec.low), np.array(spec.high)
    bounded = np.isfinite(low) & np.isfinite(high)
    drawn[..., bounded] = rng.uniform(
        low[bounded], high[bounded], size=(*shape[:-1], int(bounded.sum()))
    )
    return np.clip(drawn, low, high).astype(np.float32)
