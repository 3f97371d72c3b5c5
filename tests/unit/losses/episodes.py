"""Synthetic episodes in rows, and the position of each, for readable references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


@dataclass(frozen=True)
class Piece:
    """Consecutive transitions of one episode in one column."""

    start: int
    stop: int
    """One past the last transition; also the row of the final observation."""
    terminated: bool


@dataclass(frozen=True)
class Rows:
    """T rows and a final row that only bootstraps, time-major."""

    v: Array
    """``[T + 1, B]``"""
    reward: Array
    """``[T, B]``, 0 on reset rows."""
    terminated: NDArray[np.bool_]
    """``[T, B]``"""
    is_reset: NDArray[np.bool_]
    """``[T + 1, B]``"""

    def pieces(self, column):
        """Returns the pieces of ``column`` by walking from row to row."""
        found, start = [], None
        num_steps = len(self.reward)
        for t in range(num_steps):
            if self.is_reset[t, column]:
                start = None
                continue
            start = t if start is None else start
            terminated = bool(self.terminated[t, column])
            if terminated or self.is_reset[t + 1, column] or t + 1 == num_steps:
                found.append(Piece(start, t + 1, terminated))
                start = None
        return found


def random_rows(seed, num_steps=40, num_columns=6):
    """Returns rows in which about every fifth ends an episode, by either flag."""
    rng = np.random.default_rng(seed)
    shape = (num_steps + 1, num_columns)
    terminated = np.zeros(shape, bool)
    truncated = np.zeros(shape, bool)
    is_reset = np.zeros(shape, bool)
    is_reset[0] = rng.random(num_columns) < 0.3
    for t in range(num_steps + 1):
        if t > 0:
            is_reset[t] = terminated[t - 1] | truncated[t - 1]
        terminated[t] = (rng.random(num_columns) < 0.1) & ~is_reset[t]
        truncated[t] = (rng.random(num_columns) < 0.1) & ~is_reset[t] & ~terminated[t]
    reward = rng.normal(size=shape) * ~is_reset
    rows = Rows(rng.normal(size=shape), reward[:-1], terminated[:-1], is_reset)
    kinds = [piece for column in range(num_columns) for piece in rows.pieces(column)]
    assert sum(piece.terminated for piece in kinds) > 5
    assert sum(not piece.terminated for piece in kinds) > num_columns + 5
    return rows


def tensors(rows):
    """Returns the rows as inputs of the losses, with flags as a store returns them."""
    return {
        "reward": tensor(rows.reward),
        "terminated": torch.from_numpy(rows.terminated.astype(np.uint8)),
        "is_reset": torch.from_numpy(rows.is_reset.astype(np.uint8)),
    }
