"""The parts of a parallel environment: its agents, teams, spaces and global state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.envs.copies import RAISED, one_line, raised, said, typed
from tengen.envs.env import Arrays
from tengen.envs.gymnasium_env import import_gymnasium
from tengen.envs.spaces import Observations
from tengen.errors import TengenError, UsageError
from tengen.tensors import TensorSpec

__all__ = ["GlobalState", "agents_of", "is_parallel", "spaces_of", "teams_of"]

_MAX_AGENTS = 1024
# Larger global states are images, which critics would read as vectors.
_MAX_STATE = 65_536


def is_parallel(env: Any) -> bool:
    """Returns whether an environment has PettingZoo's parallel interface."""
    return hasattr(env, "possible_agents") and not hasattr(env, "agent_selection")


class GlobalState:
    """Reads the global state of copies, ``[copies, K]`` float32.

    Attributes:
        spec: The spec of the state of one copy; None if there is none.
    """

    def __init__(
        self, env: Any, observations: Observations, num_agents: int, name: str
    ) -> None:
        self._own: Observations | None = None
        self._names = tuple(observations.specs)
        num_numbers = num_agents * _num_entries(observations)
        space = getattr(env, "state_space", None)
        if isinstance(space, import_gymnasium().Space):
            from gymnasium import spaces

            self._own = Observations(spaces.Dict({"state": space}), name)
            num_numbers = _num_entries(self._own)
        self.spec: TensorSpec | None = None
        if num_numbers <= _MAX_STATE:
            self.spec = TensorSpec(shape=(num_numbers,))
        self._name = name

    def of(self, copies: list[Any], observation: Arrays) -> NDArray[np.float32]:
        """Returns the states of all copies."""
        if self._own is None:
            return _flat(observation, self._names, len(copies))
        arrays = self._own.zeros(len(copies))
        for i, copy in enumerate(copies):
            try:
                self._own.write({"state": copy.state()}, arrays, i)
            except TengenError:
                raise
            except RAISED as error:
                raise raised(self._name, error, f"state() of copy {i}") from error
        self._own.check_finite(arrays)
        return _flat(arrays, tuple(arrays), len(copies))


def _num_entries(observations: Observations) -> int:
    return sum(spec.num_entries for spec in observations.specs.values())


def _flat(
    arrays: Arrays, names: tuple[str, ...], num_copies: int
) -> NDArray[np.float32]:
    """Returns the arrays of each row, and then the rows of each copy, as one vector."""
    rows = [arrays[n].reshape(len(arrays[n]), -1).astype(np.float32) for n in names]
    every = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
    flat: NDArray[np.float32] = every.reshape(num_copies, -1)
    return flat


def agents_of(env: Any, name: str) -> tuple[Hashable, ...]:
    """Returns all agents of a parallel environment, in the order of their rows.

    Raises:
        UsageError: ``possible_agents`` is no list of agents with different names.
    """
    try:
        keys = tuple(env.possible_agents)
        num_names = len({str(key) for key in keys})
    except RAISED:
        keys, num_names = (), 0
    check(
        1 <= len(keys) <= _MAX_AGENTS and num_names == len(keys),
        "possible_agents",
        one_line(getattr(env, "possible_agents", None)),
        f"of {name} must be 1 to {_MAX_AGENTS} agents with different names; correct "
        "the environment",
    )
    return keys


def teams_of(env: Any, keys: tuple[Hashable, ...], name: str) -> tuple[str, ...]:
    """Returns each agent's team: ``env.teams``, a dict by agent, or one team for all.

    PettingZoo has no teams. The attribute is an extension.

    Raises:
        UsageError: ``teams`` is no dict with all agents.
    """
    teams = getattr(env, "teams", None)
    if teams is None:
        return ("all",) * len(keys)
    check(
        isinstance(teams, Mapping) and all(key in teams for key in keys),
        "teams",
        one_line(teams),
        f"of {name} must be a dict with a team for each agent; correct the environment",
    )
    return tuple(str(teams[key]) for key in keys)


def spaces_of(env: Any, keys: tuple[Hashable, ...], name: str) -> tuple[Any, Any]:
    """Returns the observation space and the action space, equal for all agents.

    Raises:
        UsageError: A space is missing, or the agents' spaces differ.
    """
    found = []
    for which in ("observation_space", "action_space"):
        spaces = []
        for key in keys:
            try:
                spaces.append(getattr(env, which)(key))
            except RAISED as error:
                raise UsageError(
                    f'environment ("{name}") must not raise in {which}({key!r}), but '
                    f"raised {said(error)}; correct it"
                ) from error
        for key, space in zip(keys, spaces, strict=True):
            if not isinstance(space, import_gymnasium().Space):
                raise UsageError(
                    f"{which}({key!r}) ({typed(space)}) of {name} must be a "
                    "gymnasium.Space; correct the environment"
                )
            if space != spaces[0]:
                raise UsageError(
                    f"{which}({key!r}) ({one_line(space)}) of {name} must be that of "
                    f"{keys[0]} ({one_line(spaces[0])}), because all agents share a "
                    "network; pad the spaces with a wrapper, such as SuperSuit's"
                )
        found.append(spaces[0])
    return found[0], found[1]
