"""Unrolls: what environments did, in pieces of one length.

An unroll of T transitions has these columns, A actions::

    observation       [T + 1, ...]  float32 or uint8, as the environment's spec says
    action            [T]     int64
    reward            [T]     float32
    terminated        [T]     uint8, observation t + 1 ended the task
    truncated         [T]     uint8, observation t + 1 is where a limit cut it short
    is_reset          [T]     uint8, no transition: t began the next episode
    behaviour_logits  [T, A]  float32, the policy that drew the action

Observation t + 1 is always what action t reached, so the final observation of an
episode is in its unroll and a truncated episode is bootstrapped from it. The row
after it, marked ``is_reset``, holds an action that nobody took; it leads to the first
observation of the next episode and is not to be learned from. An unroll's last
observation is the next one's first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs import EnvSpec, Step
from tengen.store import Column

__all__ = ["Unrolls", "unroll_columns", "unroll_counts"]


def unroll_columns(spec: EnvSpec, unroll_length: int) -> dict[str, Column]:
    """Returns the columns of one unroll, as the module docstring lists them.

    Args:
        spec: The environment's.
        unroll_length: Transitions T.
    """
    length, observation = unroll_length, spec.observation_shape
    columns: dict[str, tuple[str, tuple[int, ...]]] = {
        "observation": (spec.observation_dtype, (length + 1, *observation)),
        "action": ("int64", (length,)),
        "reward": ("float32", (length,)),
        "terminated": ("uint8", (length,)),
        "truncated": ("uint8", (length,)),
        "is_reset": ("uint8", (length,)),
        "behaviour_logits": ("float32", (length, spec.num_actions)),
    }
    return {
        name: Column(dtype=dtype, shape=shape)
        for name, (dtype, shape) in columns.items()
    }


def unroll_counts(columns: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Returns ``num_rows``, transitions, and ``num_episodes``, ends, of an unroll."""
    ends = columns["terminated"] | columns["truncated"]
    return {
        "num_rows": int((columns["is_reset"] == 0).sum()),
        "num_episodes": int((ends != 0).sum()),
    }


class Unrolls:
    """The unrolls of N copies of an environment, growing by a step at a time.

    Arrays have the copy as first axis, so that one copy's unroll is one piece of
    memory, and are never written again once full: the table may keep them.
    """

    def __init__(self, columns: Mapping[str, Column], first: NDArray[Any]) -> None:
        """Makes empty unrolls.

        Args:
            columns: Of one copy's unroll.
            first: ``[N, ...]``, the observations that they begin with.
        """
        self._declared = columns
        self._num_steps = 0
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros((len(first), *column.shape), column.dtype)
            for name, column in columns.items()
        }
        self._columns["observation"][:, 0] = first

    @property
    def newest_observation(self) -> NDArray[Any]:
        """``[N, ...]``, what the next actions are for."""
        newest: NDArray[Any] = self._columns["observation"][:, self._num_steps]
        return newest

    @property
    def is_full(self) -> bool:
        """Whether all T transitions are there."""
        length: int = self._columns["action"].shape[1]
        return self._num_steps == length

    def append(
        self, logits: NDArray[np.float32], actions: NDArray[np.int64], step: Step
    ) -> None:
        """Adds a transition of every copy.

        Args:
            logits: ``[N, A]`` float32, the policy that drew the actions.
            actions: ``[N]`` int64.
            step: What they led to.
        """
        t = self._num_steps
        self._columns["observation"][:, t + 1] = step.observation
        self._columns["action"][:, t] = actions
        self._columns["reward"][:, t] = step.reward
        self._columns["terminated"][:, t] = step.terminated
        self._columns["truncated"][:, t] = step.truncated
        self._columns["is_reset"][:, t] = step.is_reset
        self._columns["behaviour_logits"][:, t] = logits
        self._num_steps += 1

    def following(self) -> Unrolls:
        """Returns the empty unrolls that begin where these end."""
        return Unrolls(self._declared, self.newest_observation)

    def of(self, env: int) -> dict[str, NDArray[Any]]:
        """Returns one copy's unroll, views of the arrays."""
        return {name: column[env] for name, column in self._columns.items()}
