"""Rewards and steps of an environment's copies, computed from the rows of agents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import EnvSpec, Step

__all__ = ["joint_step", "team_rewards"]


def team_rewards(
    reward: NDArray[np.float32], spec: EnvSpec
) -> dict[str, NDArray[np.float32]]:
    """Returns the reward of each team in each copy, ``[N / num_agents]``, by team.

    The reward of a team is the mean over its agents. It is equal to the reward that all
    agents of the team share, if they share one. Absent agents count with reward 0.

    Args:
        reward: ``[N]`` float32, a reward per row.
        spec: The spec of the environment; teams are in the order of their first agent.
    """
    if not spec.agents:
        return {"": reward}
    rows = reward.reshape(-1, spec.num_agents)
    members: dict[str, list[int]] = {}
    for agent, team in enumerate(spec.teams):
        members.setdefault(team, []).append(agent)
    return {
        # In float64, the mean of equal rewards is exactly that reward.
        team: rows[:, agents].mean(axis=1, dtype=np.float64).astype(np.float32)
        for team, agents in members.items()
    }


def joint_step(step: Step, spec: EnvSpec) -> Step:
    """Returns a step with a row per copy, in place of a row per agent.

    The reward is that of the first team. An episode that ended has terminated, unless
    it was truncated for one of the agents. The observations are not changed.

    Args:
        step: The step of all rows.
        spec: The environment's spec.
    """
    if not spec.agents:
        return step
    ended, truncated, is_reset = (
        rows.reshape(-1, spec.num_agents)
        for rows in (step.terminated | step.truncated, step.truncated, step.is_reset)
    )
    is_over = np.all(ended, axis=1) if step.is_over is None else step.is_over
    is_cut = np.logical_and(is_over, np.any(truncated, axis=1))
    reward, *_ = team_rewards(step.reward, spec).values()
    terminated, all_reset = is_over & ~is_cut, np.all(is_reset, axis=1)
    return Step(step.observation, reward, terminated, is_cut, all_reset)
