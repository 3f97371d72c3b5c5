"""Gymnasium's environments by id, and a user's own ``gymnasium.Env``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tengen.envs.env import Env
from tengen.envs.filmed import FilmedEnv
from tengen.envs.gymnasium_env import GymnasiumEnv, import_gymnasium
from tengen.envs.gymnasium_film import RENDER_MODE, RenderCamera, film_copies
from tengen.envs.gymnasium_vector import GymnasiumVectorEnv, is_proven
from tengen.errors import UsageError, did_you_mean

__all__ = ["film", "film_own", "make", "make_own", "maker_of_one", "names"]


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
    if is_proven(_registered(name)):
        return GymnasiumVectorEnv(name, num_envs, seed)
    return GymnasiumEnv(_maker(name), num_envs, seed, name=name)


def maker_of_one(name: str) -> Callable[..., Any]:
    """Returns a function that makes one; see ``tengen.envs.maker_of_one``.

    Raises:
        UsageError: Gymnasium is missing, or the id is unknown.
    """
    _registered(name)
    return _maker(name)


def film(name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
    """Returns copies with pictures; see ``tengen.envs.make_filmed``.

    Raises:
        UsageError: As ``make``, or the environment has no pictures.
    """
    if is_proven(_registered(name)):
        env = GymnasiumVectorEnv(name, num_envs, seed, RENDER_MODE)
        return FilmedEnv(env, RenderCamera(env.render, name, env.metadata))
    return film_copies(_maker(name), num_envs, seed, num_filmed=num_filmed, name=name)


def make_own(make_one: Callable[[], Any], name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of an environment that has no id.

    Args:
        make_one: A subclass of ``gymnasium.Env``, or a function that returns an
            environment; called without arguments, once for each copy. For a time limit
            the environment itself must use ``gymnasium.wrappers.TimeLimit``.
        name: The task, for messages and the spec.
        num_envs: Copies, at least 1.
        seed: At least 0.

    Raises:
        UsageError: Gymnasium is missing, a copy cannot be made or is no
            ``gymnasium.Env``, or a space is of a kind that is not handled.
    """
    return GymnasiumEnv(make_one, num_envs, seed, name=name)


def film_own(
    make_one: Callable[..., Any], name: str, num_envs: int, seed: int, num_filmed: int
) -> FilmedEnv:
    """Returns the copies of ``make_own`` with pictures.

    Args:
        make_one: As for ``make_own``; it gets ``render_mode`` if it takes it.
        name: See ``make_own``.
        num_envs: See ``make_own``.
        seed: See ``make_own``.
        num_filmed: See ``tengen.envs.make_filmed``.

    Raises:
        UsageError: As ``make_own``, or the environment has no pictures.
    """
    try:
        inspect.signature(make_one).bind(render_mode=RENDER_MODE)
    except (TypeError, ValueError):
        plain = make_one

        def make_one(**_: Any) -> Any:
            return plain()

    return film_copies(make_one, num_envs, seed, num_filmed=num_filmed, name=name)


def _registered(name: str) -> Any:
    """Returns Gymnasium's registered spec of an id.

    Raises:
        UsageError: The id is unknown.
    """
    registry = import_gymnasium().registry
    # Checked here, because Gymnasium would import a module named before a colon.
    if name not in registry:
        lister = "gymnasium.pprint_registry() lists the ids"
        advice = did_you_mean(name, registry, lister)
        raise UsageError(f'environment ("{name}") is not known to Gymnasium; {advice}')
    return registry[name]


def _maker(name: str) -> Callable[..., Any]:
    return functools.partial(import_gymnasium().make, name, disable_env_checker=True)
