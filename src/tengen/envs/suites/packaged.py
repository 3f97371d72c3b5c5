"""Suites whose package registers its environments with Gymnasium: short names for ids.

A package is imported when one of its environments is first made or listed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tengen.envs.env import Env
from tengen.envs.filmed import FilmedEnv
from tengen.envs.gymnasium_env import GymnasiumEnv, import_gymnasium, make_guarded
from tengen.envs.gymnasium_film import film_copies
from tengen.errors import UsageError, did_you_mean

__all__ = ["PackagedSuite", "missing"]


def missing(name: str, package: str, extra: str) -> UsageError:
    """Returns the error of a suite whose package is not installed.

    Args:
        name: The task.
        package: What cannot be imported.
        extra: That of tengen which brings it.
    """
    return UsageError(
        f'environment ("{name}") needs a package that is missing: {package}; '
        f"pip install 'tengen[{extra}]'"
    )


@dataclass(frozen=True, kw_only=True)
class PackagedSuite:
    """Environments whose ids a package registers, by names without its decoration."""

    prefix: str
    """What the tasks begin with, ``mujoco/``; without the slash it is the extra."""
    package: str
    """What is imported for its environments to be registered."""
    pattern: str
    """A regular expression of whole ids: group 1 is the short name, group 2 the
    version, of which the newest is taken."""
    wrap: Callable[[Any], Any] = lambda env: env
    """From a new ``gymnasium.Env`` to what copies are made of."""
    is_partial: bool = False
    """See ``EnvSpec``."""

    def names(self) -> list[str]:
        """Returns the tasks, with their prefix; none where it is not installed."""
        try:
            import_gymnasium()
        except UsageError:
            return []
        if importlib.util.find_spec(self.package) is None:
            return []
        return [self.prefix + name for name in sorted(self._ids())]

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        """Returns copies of an environment; see ``tengen.envs.make``.

        Raises:
            UsageError: The environment is unknown, the package is not installed, or a
                space is of a kind that is not handled.
        """
        make_one = self.maker_of_one(name)
        return GymnasiumEnv(
            make_one, num_envs, seed, name=name, is_partial=self.is_partial
        )

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        """Returns the same with pictures; see ``tengen.envs.make_filmed``.

        Raises:
            UsageError: As ``make``, or the environment has no pictures.
        """
        return film_copies(
            self.maker_of_one(name), num_envs, seed, num_filmed=num_filmed, name=name
        )

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        """Returns what makes one environment; see ``tengen.envs.maker_of_one``.

        Raises:
            UsageError: The environment is unknown, or the package is not installed.
        """
        if importlib.util.find_spec(self.package) is None:
            raise missing(name, self.package, self.prefix.rstrip("/"))
        ids, short = make_guarded(self._ids, name), name.removeprefix(self.prefix)
        if short not in ids:
            advice = did_you_mean(name, [self.prefix + known for known in ids])
            raise UsageError(
                f'environment ("{name}") is not of {self.prefix}; {advice}'
            )
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
