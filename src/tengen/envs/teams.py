"""Rewards and steps of an environment's copies, computed from the rows of agents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import EnvSpec, Step


def team_rewards(step: Step, spec: EnvSpec) -> dict[str, NDArray[np.float32]]:
    """Returns the reward of each team in each copy, ``[N / num_agents]``, by team.

    The reward of a team is the mean over its agents that acted in the step, and 0 if
    none did. It is equal to the reward that the agents share, if they share one.

    Args:
        step: The step of all rows.
        spec: The spec of the environment; teams are in the order of their first agent.
    """
    if not spec.agents:
        return {"": step.reward}
    return {team: _team_reward(step, spec, team) for team in spec.team_members}


def _team_reward(step: Step, spec: EnvSpec, team: str) -> NDArray[np.float32]:
    members = spec.team_members[team]
    rows = step.reward.reshape(-1, spec.num_agents)
    is_reset = step.is_reset.reshape(rows.shape)
    if len(members) < spec.num_agents:
        rows, is_reset = rows[:, members], is_reset[:, members]
    num_acting: Any = len(members)
    if np.count_nonzero(is_reset):
        num_acting = np.maximum(num_acting - np.add.reduce(is_reset, 1), 1)
    # In float64, the mean of equal rewards is exactly that reward.
    mean: NDArray[np.float64] = np.add.reduce(rows, 1, np.float64) / num_acting
    return mean.astype(np.float32)


def joint_step(step: Step, spec: EnvSpec) -> Step:
    """Returns a step with a row per copy, in place of a row per agent.

    The reward is that of the first team, see ``team_rewards``. An episode that ended
    has terminated, unless it was truncated for one of the agents. The observations are
    not changed.

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
    reward = _team_reward(step, spec, spec.teams[0])
    terminated = is_cut = is_over
    if np.count_nonzero(is_over):
        cuts = np.logical_or.reduce(step.truncated.reshape(-1, num_agents), 1)
        is_cut, terminated = is_over & cuts, is_over & ~cuts
    return Step(step.observation, reward, terminated, is_cut, all_reset)
