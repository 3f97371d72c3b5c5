"""Level-based foraging: tasks such as ``lbf/8x8-2p-3f``, for teams of agents.

All agents share one reward, the sum of the package's rewards, as in EPyMARL.

Source: Papoudakis et al. 2021, "Benchmarking Multi-Agent Deep Reinforcement Learning
Algorithms in Cooperative Tasks" (arXiv:2006.07869).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tengen.envs.env import Env
from tengen.envs.parallel_env import ParallelEnv
from tengen.envs.suites.suite import PackagedSuite

__all__ = ["SUITE"]

_LISTED = (
    *("8x8-2p-2f-coop", "2s-8x8-2p-2f-coop", "8x8-2p-3f"),
    *("10x10-3p-3f", "2s-10x10-3p-3f", "15x15-4p-3f"),
)


class _Team:
    """A ``gymnasium.Env`` of a team, whose spaces are tuples, as a parallel one."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.metadata, self.render, self.close = env.metadata, env.render, env.close
        self.possible_agents = tuple(range(len(env.action_space)))
        self.observation_space = env.observation_space.__getitem__
        self.action_space = env.action_space.__getitem__
        self.agents: list[int] = []

    def reset(
        self, seed: int | None = None, options: Any = None
    ) -> tuple[dict[int, Any], dict[int, Any]]:
        seen, _ = self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return dict(enumerate(seen)), {}

    def step(self, actions: dict[int, Any]) -> tuple[dict[int, Any], ...]:
        chosen = [actions[agent] for agent in self.possible_agents]
        seen, rewards, ended, was_cut, _ = self._env.step(chosen)
        shared = [float(sum(rewards)), ended, was_cut]
        if ended or was_cut:
            self.agents = []
        every = (dict.fromkeys(self.possible_agents, one) for one in shared)
        return dict(enumerate(seen)), *every, {}


class _Foraging(PackagedSuite):
    def known(self) -> Iterable[str]:
        """Returns the published tasks, because the package registers thousands."""
        return _LISTED

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        return ParallelEnv(self.maker_of_one(name), num_envs, seed, name=name)


SUITE = _Foraging(
    prefix="lbf/", package="lbforaging", pattern=r"Foraging-(.+)-v(\d+)", wrap=_Team
)
"""The suite of the tasks ``lbf/*``."""
