"""Trains PPO in an environment of one's own, made by a function."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tengen

Observation = NDArray[np.float32]


class Balance(gymnasium.Env[Observation, np.int64]):
    """Keeps a number near zero that drifts at random."""

    def __init__(self, drift: float = 0.1) -> None:
        self.observation_space = spaces.Box(-10.0, 10.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.drift = drift
        self.value = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        self.value = 0.0
        return self.observation(), {}

    def step(
        self, action: np.int64
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Pushes the number up or down."""
        self.value += (0.2 if action else -0.2) + self.np_random.normal(0, self.drift)
        is_over = abs(self.value) > 2.0
        return self.observation(), 1.0 - abs(self.value), is_over, False, {}

    def observation(self) -> Observation:
        """Returns the number."""
        return np.array([self.value], np.float32)


def make() -> gymnasium.Env[Observation, np.int64]:
    """Returns an environment with a time limit."""
    return gymnasium.wrappers.TimeLimit(Balance(drift=0.3), 200)


if __name__ == "__main__":
    run = tengen.train(make, agent="ppo", frames=50_000, out="runs/balance")
    print(run.evaluate(10)["mean_return"])
