"""Finds environments by task name, in the table of suites.

Each suite is a module with an object ``SUITE``, or an object of the module ``suite``.
The table lists these objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from warnings import warn

from tengen.envs.env import Env, EnvSpec, GroupEnv
from tengen.envs.filmed import FilmedEnv
from tengen.envs.suites import (
    atari,
    dmlab,
    football,
    gobigger,
    gymnasium_ids,
    minatar,
    minigrid,
    mujoco,
    popgym,
    smax,
    vizdoom,
)
from tengen.envs.suites.suite import LBF, MPE, PETTINGZOO, Suite
from tengen.envs.timely import TimelyEnv
from tengen.errors import RunError, TengenWarning, UsageError
from tengen.games import check_allowed, is_program, load_program

# Time limits for creating an environment to get its spec, and for closing it. A run's
# step_timeout_s is not known yet.
_SPEC_TIMEOUT_S, _CLOSE_TIMEOUT_S = 300.0, 30.0


SUITES: tuple[Suite, ...] = (
    atari.SUITE,
    dmlab.SUITE,
    football.SUITE,
    LBF,
    gobigger.SUITE,
    minatar.SUITE,
    minigrid.SUITE,
    mujoco.SUITE,
    MPE,
    PETTINGZOO,
    popgym.SUITE,
    smax.SUITE,
    vizdoom.SUITE,
    gymnasium_ids.SUITE,
)
"""All suites; a task belongs to the first suite whose prefix its name begins with."""


def names() -> list[str]:
    """Returns the names of all installed tasks, sorted.

    The first call takes about 0.1 s, or 1 s if the packages of all suites are
    installed, because it imports them.
    """
    return sorted(name for suite in SUITES for name in suite.names())


def prefixes() -> list[str]:
    """Returns the prefixes of all suites, installed or not, such as ``atari/``."""
    return [suite.prefix for suite in SUITES if suite.prefix]


def is_known(name: str) -> bool:
    """Returns whether a name begins with a suite's prefix or is a Gymnasium id.

    A prefix suffices, even if the suite is not installed or has no such environment.
    """
    return name.startswith(tuple(prefixes())) or name in gymnasium_ids.SUITE.names()


def make(name: str, num_envs: int, seed: int) -> Env:
    """Creates copies of an environment; call ``reset`` before ``step``.

    Args:
        name: A Gymnasium id such as ``CartPole-v1``, a name in a suite such as
            ``minatar/Breakout``, or ``module:Env`` for a user's environment, see
            ``make_own``. The module is imported only if the user typed the name
            (`tengen.games.typed`).
        num_envs: Number of vectorized copies, at least 1. The result has a row for each
            agent of each copy.
        seed: At least 0; the same seed and actions lead to the same steps.

    Raises:
        UsageError: The name is unknown or was not typed, a package is missing, or the
            environment has spaces that are not supported.
    """
    if is_program(name):
        check_allowed(name)
        return gymnasium_ids.make_own(load_program(name), name, num_envs, seed)
    return _suite_of(name).make(name, num_envs, seed)


def maker_of_one(name: str) -> Callable[[], Any] | None:
    """Returns a function that creates one environment for a task.

    Args:
        name: As for ``make``.

    Returns:
        The function, whose result is a ``gymnasium.Env`` or has PettingZoo's parallel
        interface; None if the suite's environments are neither.

    Raises:
        UsageError: As ``make``, except that the environment is not created yet.
    """
    if is_program(name):
        check_allowed(name)
        return load_program(name)
    return _suite_of(name).maker_of_one(name)


def make_groups(
    name: str, sizes: Sequence[int], seeds: Sequence[int]
) -> Sequence[Env | GroupEnv]:
    """Creates groups of environment copies, which an actor steps in turn.

    Args:
        name: As for ``make``.
        sizes: Number of copies in each group, at least 1.
        seeds: Seed of each group; ``make`` with this seed creates the same copies.

    Raises:
        UsageError: As ``make``.
    """
    if len(sizes) == 2 and sizes[0] == sizes[1] and not is_program(name):
        groups = _suite_of(name).make_groups(name, sizes[0], seeds)
        if groups is not None:
            return groups
    made: list[Env] = []
    try:
        for num_envs, seed in zip(sizes, seeds, strict=True):
            made.append(make(name, num_envs, seed))
    except BaseException:
        for env in made:
            env.close()
        raise
    return made


def make_filmed(name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
    """Creates the same copies as ``make``, and a camera for the first ``num_filmed``.

    Args:
        name: As for ``make``.
        num_envs: As for ``make``.
        seed: As for ``make``.
        num_filmed: Number of copies to film, 1 to ``num_envs``.

    Raises:
        UsageError: As ``make``, or the environment cannot be rendered.
    """
    if is_program(name):
        check_allowed(name)
        program = load_program(name)
        env = gymnasium_ids.film_own(program, name, num_envs, seed, num_filmed)
    else:
        env = _suite_of(name).film(name, num_envs, seed, num_filmed)
    try:
        env.reset()
        try:
            env.picture(0)
        except RunError as error:
            # Raise a UsageError, because the machine or the environment cannot render
            # frames, and no step has been taken yet.
            raise UsageError(str(error)) from error
    except BaseException:
        env.close()
        raise
    return env


def with_protocol(name: str, protocol: str) -> str:
    """Returns the name of the task with the same environment and a different protocol.

    Args:
        name: As for ``make``.
        protocol: The protocol's name; for Atari ``v5``, ``classic`` or ``r2d2``.

    Raises:
        UsageError: The protocol is unknown, or changes the number of actions.
    """
    task = None
    if not is_program(name):
        task = _suite_of(name).with_protocol(name, protocol)
    if task is None:
        raise UsageError(
            f"protocol ({protocol}) does not exist for {name}, which has only one; "
            "leave it out"
        )
    have, wanted = (env_spec(one).actions.num_choices for one in (name, task))
    if have != wanted:
        raise UsageError(
            f"protocol ({protocol}) of {name} has {wanted} actions, and the model was "
            f"trained with {have}; choose another one"
        )
    return task


def env_spec(name: str) -> EnvSpec:
    """Returns an environment's spec.

    Creates the environment only once per process, because creation can be slow, and
    never steps it, but may reset it. Warns if the environment's ``close`` hangs or
    raises.

    Raises:
        UsageError: As ``make``.
        RunError: The environment hangs when it is created.
    """
    if not is_program(name):
        return _spec(name, None)
    check_allowed(name)
    return _spec(name, load_program(name))


def _suite_of(name: str) -> Suite:
    return next(suite for suite in SUITES if name.startswith(suite.prefix))


@cache
def _spec(name: str, program: object) -> EnvSpec:
    # The cache key includes the user's class, which may change under the same name.
    env = TimelyEnv(lambda: make(name, 1, 0), _SPEC_TIMEOUT_S, name, _CLOSE_TIMEOUT_S)
    spec = env.spec
    try:
        env.close()
    except RunError as error:
        warn(str(error), TengenWarning, stacklevel=3)
    return spec
