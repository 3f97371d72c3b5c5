"""Suites whose package registers its environments with Gymnasium, with short names.

The package is imported when one of its environments is first made or listed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tengen.distribution import pip_install_extra
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
        package: The package that cannot be imported.
        extra: The extra of tengen that installs it.
    """
    return UsageError(
        f'environment ("{name}") needs a package that is missing: {package}; '
        f"{pip_install_extra(extra)}"
    )


@dataclass(frozen=True, kw_only=True)
class PackagedSuite:
    """Environments whose ids a package registers, with shortened names."""

    prefix: str
    """Prefix of the tasks, such as ``mujoco/``; without the slash, tengen's extra."""
    package: str
    """The package whose import registers the environments."""
    pattern: str
    """A regular expression of whole ids: group 1 is the short name, group 2 the
    version; the newest version is used."""
    wrap: Callable[[Any], Any] = lambda env: env
    """Wraps each new ``gymnasium.Env``."""
    is_partial: bool = False
    """See ``EnvSpec``."""

    def names(self) -> list[str]:
        """Returns the tasks with their prefix; none where the package is missing."""
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
        """Returns copies with pictures; see ``tengen.envs.make_filmed``.

        Raises:
            UsageError: As ``make``, or the environment has no pictures.
        """
        return film_copies(
            self.maker_of_one(name), num_envs, seed, num_filmed=num_filmed, name=name
        )

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        """Returns a function that makes one; see ``tengen.envs.maker_of_one``.

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
