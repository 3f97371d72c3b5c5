"""Runs whose models meet a target: made sure of before anything starts."""

from __future__ import annotations

import dataclasses

from tengen.agents.alphazero import AlphaZero
from tengen.evaluation.targets.opponent import checked_opponent
from tengen.roles.config import RunConfig

__all__ = ["checked_target"]


def checked_target(config: RunConfig) -> RunConfig:
    """Returns the config with ``agent.target.opponent`` as the full path of a model.

    A RUN becomes its newest model, as of now.

    Raises:
        UsageError: There is no such opponent, or it cannot play the task.
    """
    if not config.agent.target.opponent:
        return config
    agent = AlphaZero.of(config, "eval")
    target = checked_opponent(agent.target, config.task)
    return dataclasses.replace(config, agent=dataclasses.replace(agent, target=target))
