"""How an agent chooses actions in evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.actors import Policy, Slots
from tengen.config import check, check_literals
from tengen.envs import ActionSpec, Arrays

__all__ = ["Acting", "ActingMode", "Draws"]

ActingMode = Literal["greedy", "sampled", "epsilon"]


@dataclass(frozen=True, kw_only=True)
class Acting:
    """How an agent turns a network's answers into actions in evaluation."""

    mode: ActingMode = "greedy"
    """``greedy``: the best action. ``sampled``: drawn from the policy, as in training;
    not for agents without a policy. ``epsilon``: epsilon-greedy."""
    epsilon: float = 0.001
    """Probability of a random action with ``epsilon``, in [0, 1]. Continuous actions
    are always greedy."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: One is out of its range.
        """
        check_literals(self)
        rule = "must be in [0, 1]; use 0.001"
        check(0 <= self.epsilon <= 1, "epsilon", self.epsilon, rule)

    def __str__(self) -> str:
        if self.mode == "epsilon":
            return f"greedy but for epsilon {self.epsilon:g}"
        return self.mode

    def choose(
        self, policy: Policy, outputs: Arrays, actions: ActionSpec, draw: Draws
    ) -> NDArray[Any]:
        """Returns the actions ``[N, ...]`` to take.

        Args:
            policy: The agent.
            outputs: The network's answers, ``[N, ...]`` each.
            actions: The action space.
            draw: The random numbers.
        """
        if self.mode == "sampled":
            num_rows = len(next(iter(outputs.values())))
            uniforms = draw.uniforms(num_rows, policy.num_uniforms(actions))
            slots = Slots(0, num_rows, num_rows)
            drawn: NDArray[Any] = policy.act(outputs, actions, uniforms, slots)[
                "action"
            ]
            return drawn
        action: NDArray[Any] = policy.act_greedily(outputs, actions)["action"]
        if self.mode == "greedy" or not actions.is_discrete:
            return action
        num_parts = max(1, len(actions.num_choices))
        uniforms = draw.uniforms(len(action), 1 + num_parts)
        any_of = (uniforms[:, 1:] * actions.num_choices).astype(action.dtype)
        is_any = uniforms[:, 0] < self.epsilon
        is_any = is_any.reshape(-1, *[1] * (action.ndim - 1))
        taken: NDArray[Any] = np.where(is_any, any_of.reshape(action.shape), action)
        return taken


class Draws:
    """Uniform random numbers, a function of a seed and the number of the call.

    Args:
        seed: 0 to 2^64 - 1.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._step = 0

    def uniforms(self, num_rows: int, num_each: int) -> NDArray[np.float64]:
        """Returns ``[num_rows, num_each]`` float64 in [0, 1), new ones at each call."""
        self._step += 1
        stream = np.random.Philox(key=self._seed, counter=[0, self._step, 0, 0])
        return np.random.Generator(stream).random((num_rows, num_each))
