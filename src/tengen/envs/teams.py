"""Rewards and steps of an environment's copies, computed from the rows of agents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import EnvSpec, Step


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
    return {team: _team_reward(reward, spec, team) for team in spec.team_members}


def _team_reward(
    reward: NDArray[np.float32], spec: EnvSpec, team: str
) -> NDArray[np.float32]:
    members, rows = spec.team_members[team], reward.reshape(-1, spec.num_agents)
    if len(members) < spec.num_agents:
        rows = rows[:, members]
    # In float64, the mean of equal rewards is exactly that reward.
    mean: NDArray[np.float64] = np.add.reduce(rows, 1, np.float64) / len(members)
    return mean.astype(np.float32)


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
    num_agents = spec.num_agents
    is_over = step.is_over
    if is_over is None:
        ended = step.terminated | step.truncated
        is_over = np.logical_and.reduce(ended.reshape(-1, num_agents), 1)
    all_reset = np.logical_and.reduce(step.is_reset.reshape(-1, num_agents), 1)
    reward = _team_reward(step.reward, spec, spec.teams[0])
    terminated = is_cut = is_over
    if is_over.any():
        cuts = np.logical_or.reduce(step.truncated.reshape(-1, num_agents), 1)
        is_cut, terminated = is_over & cuts, is_over & ~cuts
    return Step(step.observation, reward, terminated, is_cut, all_reset)
