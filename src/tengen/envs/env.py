"""What an environment is to tengen: many copies stepped together.

The convention of time, which every adapter keeps::

    env.reset()                 -> o_0
    env.step(a_0)               -> o_1, r_1      o_1 is the state that a_0 reached
    ...
    env.step(a_k)               -> o_k+1, r_k+1, terminated or truncated
                                                 o_k+1 is the episode's final state
    env.step(anything)          -> o_0 of the next episode, reward 0, is_reset

So the final observation of an episode is never lost and never replaced by the next
episode's first, and the one row that leads from an episode to the next is marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Env", "EnvSpec", "Step"]


@dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """What is known of an environment before it runs."""

    name: str
    """The task, as in ``tengen train``."""
    observation_shape: tuple[int, ...]
    """Shape of one observation, without the axis of copies."""
    observation_dtype: str
    """``float32`` or ``uint8``."""
    num_actions: int
    """Discrete actions A; an action is 0 to A - 1."""
    max_episode_steps: int | None
    """Steps after which an episode is truncated; None where there is no limit."""
    reward_threshold: float | None
    """Mean return over 100 episodes that counts as solved; None where unknown."""


class Step(NamedTuple):
    """What one step of N copies gave; the arrays are the caller's to keep."""

    observation: NDArray[Any]
    """``[N, ...]`` the states reached, of the spec's dtype."""
    reward: NDArray[np.float32]
    """``[N]`` float32, 0 where the step was a reset."""
    terminated: NDArray[np.bool_]
    """``[N]`` bool, the task itself ended: nothing follows the state reached."""
    truncated: NDArray[np.bool_]
    """``[N]`` bool, cut short: the state reached would have had a future."""
    is_reset: NDArray[np.bool_]
    """``[N]`` bool, the copy was at its end and the step began its next episode; the
    action was ignored. No transition to learn from, and no frame."""


class Env(Protocol):
    """N copies of one environment stepped together, by one thread."""

    @property
    def spec(self) -> EnvSpec:
        """What is known of it."""

    @property
    def num_envs(self) -> int:
        """Copies N."""

    def reset(self) -> NDArray[Any]:
        """Begins all episodes anew from the seed; returns ``[N, ...]``.

        Two calls return the same observations, and the same actions after them give
        the same steps.
        """

    def step(self, actions: NDArray[np.int64]) -> Step:
        """Steps every copy; one at the end of its episode is reset instead. Blocks.

        Args:
            actions: ``[N]`` int64, each 0 to ``num_actions`` - 1.
        """

    def close(self) -> None:
        """Releases what the copies hold. Safe to call twice."""
