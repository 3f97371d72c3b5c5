"""Finds the environment of a task's name, in the table of suites.

Each suite is one file, and one entry of ``SUITES``: the prefix of its names, and
functions of its file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from warnings import warn

from tengen.envs.env import Env, EnvSpec, GroupEnv
from tengen.envs.filmed import FilmedEnv
from tengen.envs.suites import (
    atari,
    atari_film,
    atari_groups,
    dmlab,
    football,
    gymnasium_ids,
    minatar,
    minigrid,
    mujoco,
    popgym,
    vizdoom,
)
from tengen.envs.suites.packaged import PackagedSuite
from tengen.envs.timely import TimelyEnv
from tengen.errors import RunError, TengenWarning, UsageError
from tengen.games import check_allowed, is_program, load_program

__all__ = [
    "SUITES",
    "Suite",
    "env_spec",
    "in_suite",
    "make",
    "make_filmed",
    "make_groups",
    "maker_of_one",
    "names",
    "prefixes",
    "with_protocol",
]

# Seconds to make an environment, as no run's step_timeout_s is known yet, and to close
# it: each process of a run waits so long for one that hangs there, and then goes on.
_SPEC_TIMEOUT_S, _CLOSE_TIMEOUT_S = 300.0, 30.0


@dataclass(frozen=True)
class Suite:
    """Environments of one origin. Making the table imports none of their packages."""

    prefix: str
    """Prefix of their names, such as ``minatar/``; empty for Gymnasium's ids."""
    names: Callable[[], list[str]]
    """Returns the full names that are installed, in order."""
    make: Callable[[str, int, int], Env]
    """As ``make`` below, for a full name with the prefix and without a colon."""
    film: Callable[[str, int, int, int], FilmedEnv]
    """As ``make_filmed`` below, which also checks the first picture."""
    with_protocol: Callable[[str, str], str] | None = None
    """As ``with_protocol`` below; None where there is only one way to play."""
    make_groups: Callable[[str, int, Sequence[int]], list[GroupEnv]] | None = None
    """Returns two groups that step beside their caller, from the number of copies in
    each and both seeds; None where the suite has no such groups."""
    maker_of_one: Callable[[str], Callable[..., Any]] | None = None
    """As ``maker_of_one`` below; None where no environment is a ``gymnasium.Env``."""


def _packaged(suite: PackagedSuite) -> Suite:
    return Suite(
        suite.prefix,
        suite.names,
        suite.make,
        suite.film,
        maker_of_one=suite.maker_of_one,
    )


SUITES = (
    Suite(
        "atari/",
        atari.names,
        atari.make,
        atari_film.film,
        atari.with_protocol,
        atari_groups.make_groups,
    ),
    Suite(
        "dmlab/",
        dmlab.names,
        dmlab.make,
        dmlab.film,
        maker_of_one=dmlab.maker_of_one,
    ),
    Suite("football/", football.names, football.make, football.film),
    Suite("minatar/", minatar.names, minatar.make, minatar.film),
    _packaged(minigrid.SUITE),
    _packaged(mujoco.SUITE),
    _packaged(popgym.SUITE),
    Suite(
        "vizdoom/",
        vizdoom.names,
        vizdoom.make,
        vizdoom.film,
        maker_of_one=vizdoom.maker_of_one,
    ),
    Suite(
        "",
        gymnasium_ids.names,
        gymnasium_ids.make,
        gymnasium_ids.film,
        maker_of_one=gymnasium_ids.maker_of_one,
    ),
)
"""All suites; a name belongs to the first suite whose prefix fits."""


def names() -> list[str]:
    """Returns every task that is installed, in order.

    The first call takes about 0.1 s, or 1 s where the packages of all suites are
    installed, because it imports them.
    """
    return sorted(name for suite in SUITES for name in suite.names())


def prefixes() -> list[str]:
    """Returns the prefixes of all suites, such as ``atari/``, installed or not."""
    return [suite.prefix for suite in SUITES if suite.prefix]


def in_suite(name: str) -> bool:
    """Returns whether a name has a suite's prefix; the suite may not be installed."""
    return name.startswith(tuple(prefixes()))


def make(name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of an environment; ``reset`` it first.

    Args:
        name: A Gymnasium id such as ``CartPole-v1``, a suite's name such as
            ``minatar/Breakout``, or ``module:Env`` for an environment of one's own, see
            ``make_own``. The module is imported only if the user typed the name in this
            process's call (`tengen.games.typed`).
        num_envs: Copies that are stepped together, at least 1.
        seed: At least 0; the same seed and actions give the same steps.

    Raises:
        UsageError: The name is unknown or was not typed, a package is missing, or the
            environment has spaces that are not handled.
    """
    if is_program(name):
        check_allowed(name)
        return gymnasium_ids.make_own(load_program(name), name, num_envs, seed)
    suite = next(suite for suite in SUITES if name.startswith(suite.prefix))
    return suite.make(name, num_envs, seed)


def maker_of_one(name: str) -> Callable[[], Any] | None:
    """Returns a function that makes one ``gymnasium.Env`` of a task.

    Args:
        name: As for ``make``.

    Returns:
        The function, or None where the suite's environments are no ``gymnasium.Env``.

    Raises:
        UsageError: As ``make``, except errors of making the environment.
    """
    if is_program(name):
        check_allowed(name)
        return load_program(name)
    suite = next(suite for suite in SUITES if name.startswith(suite.prefix))
    return suite.maker_of_one(name) if suite.maker_of_one is not None else None


def make_groups(
    name: str, sizes: Sequence[int], seeds: Sequence[int]
) -> Sequence[Env | GroupEnv]:
    """Returns groups of copies that an actor steps in turns.

    Args:
        name: As for ``make``.
        sizes: Copies in each group, at least 1.
        seeds: Seed of each group; its copies are those of ``make`` with this seed.

    Raises:
        UsageError: As ``make``.
    """
    if len(sizes) == 2 and sizes[0] == sizes[1] and not is_program(name):
        suite = next(suite for suite in SUITES if name.startswith(suite.prefix))
        if suite.make_groups is not None:
            return suite.make_groups(name, sizes[0], seeds)
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
    """Returns the same copies as ``make``, the first of which have pictures.

    Args:
        name: As for ``make``.
        num_envs: As for ``make``.
        seed: As for ``make``.
        num_filmed: How many copies have pictures, 1 to ``num_envs``.

    Raises:
        UsageError: As ``make``, or pictures cannot be made here.
    """
    if is_program(name):
        check_allowed(name)
        program = load_program(name)
        env = gymnasium_ids.film_own(program, name, num_envs, seed, num_filmed)
    else:
        suite = next(suite for suite in SUITES if name.startswith(suite.prefix))
        env = suite.film(name, num_envs, seed, num_filmed)
    try:
        env.reset()
        try:
            env.picture(0)
        except RunError as error:
            # A UsageError, because the machine or the environment has no pictures, and
            # nothing was played yet.
            raise UsageError(str(error)) from error
    except BaseException:
        env.close()
        raise
    return env


def with_protocol(name: str, protocol: str) -> str:
    """Returns the task for the same environment with another protocol.

    Args:
        name: As for ``make``.
        protocol: For Atari ``v5``, ``classic`` or ``r2d2``.

    Raises:
        UsageError: There is no such protocol, or its actions differ.
    """
    suite = next(suite for suite in SUITES if name.startswith(suite.prefix))
    if suite.with_protocol is None or is_program(name):
        raise UsageError(
            f"protocol ({protocol}) is not for {name}, which is played in one way; "
            f"leave it out"
        )
    task = suite.with_protocol(name, protocol)
    have, wanted = (env_spec(one).actions.num_choices for one in (name, task))
    if have != wanted:
        raise UsageError(
            f"protocol ({protocol}) of {name} has {wanted} actions, and the model was "
            f"trained with {have}; choose another one"
        )
    return task


def env_spec(name: str) -> EnvSpec:
    """Returns an environment's spec, without stepping it.

    A process makes the environment only once for this, because some are slow to make.

    Raises:
        UsageError: As ``make``.
        RunError: The environment hangs when it is made. One that hangs or raises when
            it is closed is warned of, since its spec is known by then.
    """
    if not is_program(name):
        return _spec(name, None)
    check_allowed(name)
    return _spec(name, load_program(name))


@cache
def _spec(name: str, program: object) -> EnvSpec:
    # The program is a part of the cache's key, since a module's class may be replaced.
    env = TimelyEnv(lambda: make(name, 1, 0), _SPEC_TIMEOUT_S, name, _CLOSE_TIMEOUT_S)
    spec = env.spec
    try:
        env.close()
    except RunError as error:
        warn(str(error), TengenWarning, stacklevel=3)
    return spec
