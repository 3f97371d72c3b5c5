"""Base classes of environment suites, which list, create and film environments.

A suite's package is imported when one of its environments is first created or listed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tengen.distribution import pip_install_extra
from tengen.envs.env import Env, GroupEnv
from tengen.envs.filmed import FilmedEnv, ObservedCamera, Picture, film_copies
from tengen.envs.gymnasium_env import GymnasiumEnv, import_gymnasium, make_guarded
from tengen.envs.parallel_env import ParallelEnv
from tengen.errors import UsageError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A package's environments; subclasses define ``known``, ``make`` and ``film``."""

    prefix: str
    """Prefix of the task names, such as ``minatar/``; empty for Gymnasium's ids."""
    package: str
    """The Python package that the environments need."""
    install: Callable[[], str] | None = None
    """Returns instructions to install the package; None if the extra named like
    ``prefix`` installs it."""

    @property
    def is_installed(self) -> bool:
        """Whether the package that the suite needs is installed."""
        return importlib.util.find_spec(self.package) is not None

    def known(self) -> Iterable[str]:
        """Returns the names of the suite's environments, without the prefix."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """Returns the suite's task names; empty if the package is not installed."""
        return (
            [self.prefix + name for name in self.known()] if self.is_installed else []
        )

    def short_name(self, name: str) -> str:
        """Returns the task name ``name`` without the suite's prefix.

        Raises:
            UsageError: The environment is unknown, or the package is not installed.
        """
        short, known = name.removeprefix(self.prefix), list(self.known())
        self.check_known(name, short in known, known)
        self.check_installed(name)
        return short

    def check_installed(self, name: str) -> None:
        """Raises UsageError if the package of the task ``name`` is missing."""
        if not self.is_installed:
            usual = functools.partial(pip_install_extra, self.prefix.rstrip("/"))
            raise UsageError(
                f'environment ("{name}") needs a missing package: {self.package}; '
                f"{(self.install or usual)()}"
            )

    def check_known(self, name: str, is_known: bool, known: Iterable[str]) -> None:
        """Raises UsageError, which suggests a similar name, unless ``is_known``."""
        if not is_known:
            advice = did_you_mean(name, [self.prefix + one for one in known])
            raise UsageError(
                f'environment ("{name}") is not in the suite {self.prefix}; {advice}'
            )

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        """Returns copies of an environment; see ``tengen.envs.make``.

        Raises:
            UsageError: The environment is unknown or cannot be created, or the package
                is not installed.
        """
        raise NotImplementedError

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        """Returns copies with a camera; see ``tengen.envs.make_filmed``.

        Raises:
            UsageError: As for ``make``, or the environment cannot render arrays.
        """
        raise NotImplementedError

    def maker_of_one(self, name: str) -> Callable[..., Any] | None:
        """Returns a function that creates one copy; see ``tengen.envs.maker_of_one``.

        Raises:
            UsageError: As for ``make``, except errors in creating the environment.
        """
        return None

    def with_protocol(self, name: str, protocol: str) -> str | None:
        """Returns the task's name with ``protocol``; None if no protocols exist.

        Raises:
            UsageError: The protocol is unknown.
        """
        return None

    def make_groups(
        self, name: str, num_envs: int, seeds: Sequence[int]
    ) -> list[GroupEnv] | None:
        """Returns two groups of copies that step asynchronously; None if unsupported.

        Args:
            name: The task's name.
            num_envs: Number of copies per group, at least 1.
            seeds: Seeds of the two groups, at least 0.

        Raises:
            UsageError: As for ``make``.
        """
        return None


@dataclass(frozen=True, kw_only=True)
class ListedSuite(Suite):
    """A suite with a fixed list of environments, whose videos show observations."""

    listed: tuple[str, ...]
    """Names of the environments, without the prefix."""
    make_copies: Callable[[str, int, int], Env]
    """Creates copies; ``make`` passes its arguments after it has checked the name."""
    observed: str
    """The name of the observation that videos show."""
    draw: Callable[[NDArray[Any]], Picture]
    """Converts one copy's observation to a video frame."""
    pictures_per_s: float
    """See ``Camera.pictures_per_s``."""

    def known(self) -> Iterable[str]:
        """See ``Suite.known``."""
        return self.listed

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        """See ``Suite.make``."""
        self.short_name(name)
        return self.make_copies(name, num_envs, seed)

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        """See ``Suite.film``."""
        camera = ObservedCamera(self.observed, self.draw, self.pictures_per_s)
        return FilmedEnv(self.make(name, num_envs, seed), camera)


@dataclass(frozen=True, kw_only=True)
class PackagedSuite(Suite):
    """A suite whose package registers its environments with Gymnasium."""

    pattern: str
    """Regular expression for the Gymnasium ids of the suite. Group 1 is the short name
    and group 2 the version; the newest version is used."""
    wrap: Callable[[Any], Any] = lambda env: env
    """Wraps each new ``gymnasium.Env``."""
    is_partial: bool = False
    """See ``EnvSpec.is_partial``."""

    def known(self) -> Iterable[str]:
        """See ``Suite.known``; empty if Gymnasium is not installed."""
        try:
            return sorted(self._ids())
        except UsageError:
            return []

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        """See ``Suite.make``."""
        make_one = self.maker_of_one(name)
        return GymnasiumEnv(
            make_one,
            num_envs,
            seed,
            name=name,
            finds_masks=False,
            is_partial=self.is_partial,
        )

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        """See ``Suite.film``."""
        make_one = self.maker_of_one(name)
        return film_copies(make_one, num_envs, seed, num_filmed=num_filmed, name=name)

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        """See ``Suite.maker_of_one``."""
        self.check_installed(name)
        ids = make_guarded(self._ids, name)
        short = name.removeprefix(self.prefix)
        self.check_known(name, short in ids, ids)
        return functools.partial(self._made, ids[short])

    def _made(self, name: str, **how: str) -> Any:
        made = import_gymnasium().make(name, disable_env_checker=True, **how)
        return self.wrap(made)

    def _ids(self) -> dict[str, str]:
        gymnasium = import_gymnasium()
        importlib.import_module(self.package)
        newest: dict[str, tuple[int, str]] = {}
        for name in gymnasium.registry:
            if found := re.fullmatch(self.pattern, name):
                short, version = found[1], int(found[2])
                newest[short] = max(newest.get(short, (-1, "")), (version, name))
        return {short: name for short, (_, name) in newest.items()}


@dataclass(frozen=True, kw_only=True)
class ParallelSuite(Suite):
    """A suite whose modules ``NAME_vN`` define a function ``parallel_env``.

    A task is named like its module without the version, such as ``pettingzoo/pursuit``,
    and has the default settings of the newest version.

    Source: Terry et al. 2021, "PettingZoo: Gym for Multi-Agent Reinforcement Learning"
    (arXiv:2009.14471).
    """

    folders: tuple[str, ...]
    """The packages that contain the modules."""

    def known(self) -> Iterable[str]:
        """See ``Suite.known``; empty if the package is not installed."""
        return sorted(self._modules()) if self.is_installed else []

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        """See ``Suite.make``."""
        return ParallelEnv(self.maker_of_one(name), num_envs, seed, name=name)

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        """See ``Suite.film``."""
        make_one = self.maker_of_one(name)
        return film_copies(make_one, num_envs, seed, num_filmed=num_filmed, name=name)

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        """See ``Suite.maker_of_one``."""
        self.check_installed(name)
        modules = make_guarded(self._modules, name)
        short = name.removeprefix(self.prefix)
        self.check_known(name, short in modules, modules)
        return functools.partial(_made_parallel, modules[short])

    def _modules(self) -> dict[str, str]:
        """Returns the module of the newest version of each environment, by name."""
        newest: dict[str, tuple[int, str]] = {}
        for folder in self.folders:
            found = importlib.util.find_spec(folder)
            places = found.submodule_search_locations if found else None
            for module in pkgutil.iter_modules(places or ()):
                if named := re.fullmatch(r"(\w+)_v(\d+)", module.name):
                    version = int(named[2]), f"{folder}.{module.name}"
                    newest[named[1]] = max(newest.get(named[1], (-1, "")), version)
        return {short: module for short, (_, module) in newest.items()}


def _made_parallel(module: str, **how: str) -> Any:
    return importlib.import_module(module).parallel_env(**how)


PETTINGZOO = ParallelSuite(
    prefix="pettingzoo/",
    package="pettingzoo",
    folders=("pettingzoo.butterfly", "pettingzoo.sisl"),
)
"""The suite of the tasks ``pettingzoo/*``: PettingZoo's environments of several agents,
without those that are turn-based and those of Atari."""

MPE = ParallelSuite(prefix="mpe/", package="mpe2", folders=("mpe2",))
"""The suite of the tasks ``mpe/*``, the multi-agent particle environments.

Source: Lowe et al. 2017, "Multi-Agent Actor-Critic for Mixed Cooperative-Competitive
Environments" (arXiv:1706.02275).
"""


class _Team:
    """A ``gymnasium.Env`` of a team, whose spaces are tuples, as a parallel one."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.metadata, self.render, self.close = env.metadata, env.render, env.close
        self.possible_agents = tuple(range(len(env.action_space)))
        self.observation_space = env.observation_space.__getitem__
        self.action_space = env.action_space.__getitem__
        self.agents: list[int] = []

    def reset(self, seed: Any = None, options: Any = None) -> tuple[Any, Any]:
        seen, _ = self._env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return dict(enumerate(seen)), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        chosen = [actions[agent] for agent in self.possible_agents]
        seen, rewards, ended, was_cut, _ = self._env.step(chosen)
        if ended and self._env.unwrapped.field.any():
            # The package reports its time limit, which leaves food, as a termination.
            ended, was_cut = False, True
        shared = [float(sum(rewards)), ended, was_cut]
        if ended or was_cut:
            self.agents = []
        every = (dict.fromkeys(self.possible_agents, one) for one in shared)
        return dict(enumerate(seen)), *every, {}


class _Foraging(PackagedSuite):
    def known(self) -> Iterable[str]:
        """Returns some tasks, because the package registers almost two thousand."""
        full = "8x8-2p-2f-coop", "8x8-2p-3f", "10x10-3p-3f", "15x15-4p-3f"
        return *full, "2s-8x8-2p-2f-coop", "2s-10x10-3p-3f"

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        return ParallelEnv(self.maker_of_one(name), num_envs, seed, name=name)


LBF = _Foraging(
    prefix="lbf/", package="lbforaging", pattern=r"Foraging-(.+)-v(\d+)", wrap=_Team
)
"""The suite of the tasks ``lbf/*``, level-based foraging, such as ``lbf/8x8-2p-3f``.

All agents share one reward, the sum of the package's rewards, as in EPyMARL. The time
limit truncates an episode; in the package it terminates.

Source: Papoudakis et al. 2021, "Benchmarking Multi-Agent Deep Reinforcement Learning
Algorithms in Cooperative Tasks" (arXiv:2006.07869).
"""
