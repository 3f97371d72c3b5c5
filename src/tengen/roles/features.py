"""What a task's network reads and answers."""

from __future__ import annotations

from tengen import games
from tengen.actors import features_of
from tengen.envs import env_spec
from tengen.nets import FeatureSpec, game_features
from tengen.roles.config import RunConfig

__all__ = ["task_features"]


def task_features(config: RunConfig) -> FeatureSpec:
    """Returns the shapes of a run's observations and actions.

    Raises:
        UsageError: The task is unknown, or what it needs is not installed.
    """
    if config.actor.kind == "environment":
        return features_of(env_spec(config.task))
    return game_features(games.make(config.task))
