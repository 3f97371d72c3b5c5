"""From a task's name to an environment."""

from __future__ import annotations

from tengen.envs.env import Env, EnvSpec
from tengen.envs.gymnasium_env import gymnasium_names, make_gymnasium

__all__ = ["env_spec", "make", "names"]


def names() -> list[str]:
    """Returns every task that ``make`` would try, in order.

    Empty when Gymnasium is not installed. Takes about 0.1 s the first time.
    """
    return gymnasium_names()


def make(name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of an environment; ``reset`` it first.

    Args:
        name: A Gymnasium id, ``CartPole-v1``.
        num_envs: Copies that are stepped together, at least 1.
        seed: At least 0; the same seed and actions give the same steps.

    Raises:
        UsageError: The name is unknown, a package is missing, or the environment has
            spaces that this version does not handle.
    """
    return make_gymnasium(name, num_envs, seed)


def env_spec(name: str) -> EnvSpec:
    """Returns what an environment shows and takes, without stepping it.

    Raises:
        UsageError: As ``make``.
    """
    env = make(name, 1, 0)
    try:
        return env.spec
    finally:
        env.close()
