"""The parts of a parallel environment: its agents, teams, spaces and global state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.envs.copies import RAISED, one_line, raised, said, typed
from tengen.envs.env import Arrays
from tengen.envs.gymnasium_env import import_gymnasium
from tengen.envs.spaces import Observations
from tengen.errors import TengenError, UsageError
from tengen.tensors import TensorSpec

_Result = TypeVar("_Result")

_MAX_AGENTS = 1024
# Larger global states are images, which critics would read as vectors.
_MAX_STATE = 65_536


def is_parallel(env: Any, name: str) -> bool:
    """Returns whether an environment has PettingZoo's parallel interface.

    A ``gymnasium.Env`` has a single agent, whatever its attributes.

    Raises:
        UsageError: The environment is turn-based, or an attribute raises.
    """
    if isinstance(env, import_gymnasium().Env):
        return False
    if callable(attribute(env, "agent_iter", name)):
        raise UsageError(
            f'environment ("{name}") must have PettingZoo\'s parallel interface, not '
            "the turn-based AEC; convert it with aec_to_parallel of "
            "pettingzoo.utils.conversions"
        )
    return attribute(env, "possible_agents", name) is not None


def attribute(env: Any, which: str, name: str) -> Any:
    """Returns an attribute of an environment; None if it is missing.

    Raises:
        UsageError: The attribute is a property that raises.
    """
    return _asked(lambda: getattr(env, which, None), which, name)


def _asked(call: Callable[[], _Result], what: str, name: str) -> _Result:
    """Returns the result of a call into an environment before its first reset."""
    try:
        return call()
    except TengenError:
        raise
    except RAISED as error:
        raise UsageError(
            f'environment ("{name}") must not raise in {what}, but raised '
            f"{said(error)}; correct it"
        ) from error


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
        space = attribute(env, "state_space", name)
        if isinstance(space, import_gymnasium().Space):
            from gymnasium import spaces

            own = Observations(spaces.Dict({"state": space}), name)
            if _num_entries(own) <= _MAX_STATE:
                self._own, num_numbers = own, _num_entries(own)
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
    listed = attribute(env, "possible_agents", name)
    try:
        keys = tuple(listed)
        num_names = len({str(key) for key in set(keys)})
    except RAISED:
        keys, num_names = (), 0
    check(
        1 <= len(keys) <= _MAX_AGENTS and num_names == len(keys),
        "possible_agents",
        one_line(listed),
        f"of {name} must be 1 to {_MAX_AGENTS} hashable agents with different names; "
        "correct the environment",
    )
    return keys


def teams_of(env: Any, keys: tuple[Hashable, ...], name: str) -> tuple[str, ...]:
    """Returns each agent's team: ``env.teams``, a dict by agent, or one team for all.

    PettingZoo has no teams. The attribute is an extension.

    Raises:
        UsageError: ``teams`` is no dict with all agents.
    """
    teams = attribute(env, "teams", name)
    if teams is None:
        return ("all",) * len(keys)
    given = _asked(
        lambda: dict(teams) if isinstance(teams, Mapping) else {}, "teams", name
    )
    check(
        all(key in given for key in keys),
        "teams",
        one_line(teams),
        f"of {name} must be a dict with a team for each agent; correct the environment",
    )
    return tuple(one_line(given[key]) for key in keys)


def spaces_of(env: Any, keys: tuple[Hashable, ...], name: str) -> tuple[Any, Any]:
    """Returns the observation space and the action space, equal for all agents.

    Raises:
        UsageError: A space is missing, or the agents' spaces differ.
    """
    found = []
    for which in ("observation_space", "action_space"):
        spaces = [
            _asked(partial(getattr(env, which), key), f"{which}({key!r})", name)
            for key in keys
        ]
        for key, space in zip(keys, spaces, strict=True):
            if not isinstance(space, import_gymnasium().Space):
                raise UsageError(
                    f"{which}({key!r}) ({typed(space)}) of {name} must be a "
                    "gymnasium.Space; correct the environment"
                )
            if space != spaces[0]:
                raise UsageError(
                    f"{which}({key!r}) ({one_line(space)}) of {name} must be that of "
                    f"{keys[0]} ({one_line(spaces[0])}), because all agents have equal "
                    "networks; pad the spaces with a wrapper, such as SuperSuit's"
                )
        found.append(spaces[0])
    return found[0], found[1]
