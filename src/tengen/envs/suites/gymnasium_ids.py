"""Gymnasium's environments by id, and anyone's own ``gymnasium.Env``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tengen.envs.env import Env
from tengen.envs.gymnasium_env import GymnasiumEnv, import_gymnasium
from tengen.envs.gymnasium_vector import GymnasiumVectorEnv, is_proven
from tengen.errors import UsageError, did_you_mean

__all__ = ["make", "make_own", "names"]


def names() -> list[str]:
    """Returns the ids that Gymnasium knows, in order; empty when not installed."""
    try:
        return sorted(import_gymnasium().registry)
    except UsageError:
        return []


def make(name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of the environment with a Gymnasium id.

    Args:
        name: The id, ``CartPole-v1``.
        num_envs: Copies, at least 1.
        seed: At least 0.

    Raises:
        UsageError: Gymnasium or a package that the environment needs is missing, the
            id is unknown, or a space is of a kind that is not handled.
    """
    gymnasium = import_gymnasium()
    # Gymnasium itself would import the module that an id names before a colon.
    if name not in gymnasium.registry:
        lister = "gymnasium.pprint_registry() lists the ids"
        advice = did_you_mean(name, gymnasium.registry, lister)
        raise UsageError(f'environment ("{name}") is not known to Gymnasium; {advice}')
    if is_proven(gymnasium.registry[name]):
        return GymnasiumVectorEnv(name, num_envs, seed)
    make_one = functools.partial(gymnasium.make, name, disable_env_checker=True)
    return GymnasiumEnv(make_one, num_envs, seed, name=name)


def make_own(make_one: Callable[[], Any], name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of an environment that has no id.

    Args:
        make_one: A class of ``gymnasium.Env``, or a function that returns one; called
            without arguments, once a copy. A time limit is the environment's matter,
            ``gymnasium.wrappers.TimeLimit``.
        name: The task, for messages and the spec.
        num_envs: Copies, at least 1.
        seed: At least 0.

    Raises:
        UsageError: Gymnasium is missing, a copy cannot be made or is no
            ``gymnasium.Env``, or a space is of a kind that is not handled.
    """
    return GymnasiumEnv(make_one, num_envs, seed, name=name)
