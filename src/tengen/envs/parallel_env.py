"""An ``Env`` of several agents that act at the same time.

Source: the interface ``ParallelEnv`` of PettingZoo 1.24 and later. An environment needs
only the interface: it may derive from another class, and PettingZoo may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import (
    RAISED,
    UnfitError,
    as_end,
    as_reward,
    copy_seeds,
    one_line,
    raised,
    typed,
)
from tengen.envs.env import AGENT_ID, Arrays, Env, EnvSpec, Step
from tengen.envs.gymnasium_env import (
    GymnasiumEnv,
    claim,
    make_guarded,
    release,
)
from tengen.envs.masks import ActionMasks
from tengen.envs.parallel_parts import (
    GlobalState,
    agents_of,
    is_parallel,
    spaces_of,
    teams_of,
)
from tengen.envs.spaces import Actions, Observations
from tengen.errors import EnvError, TengenError, UsageError
from tengen.tensors import ACTION_MASK, GLOBAL_STATE, TensorSpec


def copies_of(
    make_one: Callable[[], Any], num_envs: int, seed: int, *, name: str
) -> Env:
    """Returns copies of a ``gymnasium.Env``, or of a parallel environment.

    Args:
        make_one: Creates one environment; called ``num_envs`` times.
        num_envs: Number of copies, at least 1.
        seed: Seed of the copies, at least 0.
        name: The task's name, for error messages and the spec.

    Raises:
        UsageError: As for ``GymnasiumEnv`` and ``ParallelEnv``.
        EnvError: The first reset failed.
    """
    made = [make_guarded(make_one, name)]
    adapter = ParallelEnv if is_parallel(made[0]) else GymnasiumEnv
    return adapter(
        lambda: made.pop() if made else make_one(), num_envs, seed, name=name
    )


class ParallelEnv:
    """Copies of a parallel environment in this process, stepped one after the other.

    All agents have equal spaces and share one network, which sees the agent's index as
    the observation ``AGENT_ID``. An action mask may be in the ``info`` of each agent,
    or in its observation, a ``Dict``.

    The global state is the result of ``state()`` if the environment has a
    ``state_space``; otherwise all agents' observations, one after the other. There is
    none if it would have more than 65,536 numbers.

    Attributes:
        spec: The environment's spec.
        num_envs: Number N of rows, one per agent of each copy.
    """

    def __init__(
        self, make_one: Callable[[], Any], num_envs: int, seed: int, *, name: str
    ) -> None:
        """Creates ``num_envs`` copies of the environment.

        Args:
            make_one: Creates an environment; called ``num_envs`` times.
            num_envs: Number of copies, at least 1.
            seed: Seed of the copies, at least 0; see ``copy_seeds``.
            name: The task's name, for error messages and the spec.

        Raises:
            EnvError: The first reset failed.
            UsageError: A copy cannot be created or lacks a part of the interface, the
                agents' spaces differ, or a space is of an unsupported kind.
        """
        self._seeds = copy_seeds(seed, num_envs)
        self._name = name
        self._copies: list[Any] = []
        self._keys = tuple[Hashable, ...]()
        try:
            for _ in range(num_envs):
                self._copies.append(self._made(make_one))
            first = self._copies[0]
            observed, acted = spaces_of(first, self._keys, name)
            self._actions = Actions(acted, name)
            self._observations = Observations(observed, name, self._actions.spec)
            self._index = {key: i for i, key in enumerate(self._keys)}
            self._num_agents = len(self._keys)
            self.num_envs = num_envs * self._num_agents
            self._ids = np.tile(np.eye(self._num_agents, dtype=np.bool_), (num_envs, 1))
            self._state = GlobalState(first, self._observations, self._num_agents, name)
            # The agents of each copy's episode: their indices, and as the copy lists
            # them.
            self._present: list[list[int]] = [[] for _ in range(num_envs)]
            self._listed: list[list[Any]] = [[] for _ in range(num_envs)]
            self._is_over = np.zeros(num_envs, np.bool_)
            self._is_mask_in_info = False
            self._masks = self._masks_of()
        except (UsageError, EnvError):
            self.close()
            raise
        names = tuple(str(key) for key in self._keys)
        ids = {AGENT_ID: TensorSpec(dtype="bool", shape=(self._num_agents,))}
        self.spec = EnvSpec(
            name=name,
            observations={**self._observations.specs, **ids},
            pixel_scales=self._observations.pixel_scales,
            has_large_vectors=self._observations.has_large_vectors,
            actions=self._actions.spec,
            max_episode_steps=None,
            reward_threshold=None,
            has_action_mask=self._masks is not None,
            agents=names,
            teams=teams_of(first, self._keys, name),
            global_state=self._state.spec,
        )

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``."""
        observation = self._zeros()
        for copy, seed in enumerate(self._seeds):
            self._reset_copy(copy, observation, seed=seed)
        self._is_over = np.zeros(len(self._copies), np.bool_)
        return self._finished(observation)

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: A copy raised, or one of its results is invalid.
            RunError: An action is out of range.
        """
        native = self._actions.to_gymnasium(actions, self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        step = Step(
            self._zeros(),
            np.zeros(self.num_envs, np.float32),
            terminated,
            truncated,
            np.ones(self.num_envs, np.bool_),
        )
        was_over, self._is_over = self._is_over, np.zeros_like(self._is_over)
        for copy in range(len(self._copies)):
            if was_over[copy]:
                self._reset_copy(copy, step.observation)
            else:
                self._step_copy(copy, native, step)
        self._finished(step.observation)
        return step._replace(is_over=self._is_over)

    def observed(self, observation: Any) -> Arrays:
        """Converts the observations of the agents to arrays; see ``Env.observed``."""
        if not isinstance(observation, Mapping):
            raise UsageError(
                f"observation ({typed(observation)}) of {self._name} must be a dict "
                "with the observation of each agent; pass the result of the "
                "environment's reset or step"
            )
        arrays = self._observations.zeros(self._num_agents)
        arrays[AGENT_ID] = self._ids[: self._num_agents].copy()
        has_mask = self._masks is not None and not self._is_mask_in_info
        if has_mask:
            arrays[ACTION_MASK] = self._all_legal(self._num_agents)
        for key, seen in observation.items():
            row = self._index.get(key)
            if row is None:
                raise UsageError(
                    f"agent ({one_line(key)}) of {self._name} must be one of "
                    f"{one_line(list(self.spec.agents))}; correct the observation"
                )
            for name, array in self._observations.read(seen).items():
                arrays[name][row] = array[0]
            if has_mask:
                assert self._masks is not None
                arrays[ACTION_MASK][row] = self._masks.read(seen.get(ACTION_MASK))[0]
        return arrays

    def own_action(self, action: NDArray[Any]) -> Any:
        """Converts the action of one agent; see ``Env.own_action``."""
        return self._actions.to_own(action)

    def close(self) -> None:
        """Releases the copies' resources; see ``Env.close``."""
        while self._copies:
            copy = self._copies.pop()
            release(copy)
            try:
                copy.close()
            except RAISED as error:
                raise raised(self._name, error, "close()") from error

    def _made(self, make_one: Callable[[], Any]) -> Any:
        made = make_guarded(make_one, self._name)
        missing = [
            name
            for name in ("observation_space", "action_space", "reset", "step", "close")
            if not callable(getattr(made, name, None))
        ]
        if not is_parallel(made) or missing:
            raise UsageError(
                f'environment ("{self._name}") must have PettingZoo\'s parallel '
                f"interface, but lacks {', '.join(missing or ['possible_agents'])}; "
                "add it"
            )
        keys = agents_of(made, self._name)
        if self._keys and keys != self._keys:
            raise UsageError(
                f'environment ("{self._name}") must have the same possible_agents in '
                "every copy; correct it"
            )
        self._keys = keys
        claim(made, self._name)
        return made

    def _masks_of(self) -> ActionMasks | None:
        """Returns the reader of action masks; None if no choice is ever illegal."""
        if not self._actions.spec.is_discrete:
            return None
        if not self._observations.has_mask:
            # Only a reset shows whether the infos have masks.
            _, infos = self._answer(0, "reset", _RESET, seed=self._seeds[0])
            self._is_mask_in_info = any(ACTION_MASK in _info(infos, k) for k in infos)
            if not self._is_mask_in_info:
                return None
        return ActionMasks(self._actions.spec, self._name)

    def _all_legal(self, num_rows: int) -> NDArray[np.bool_]:
        assert self._masks is not None
        return self._masks.all_legal(num_rows)

    def _zeros(self) -> Arrays:
        arrays = self._observations.zeros(self.num_envs)
        arrays[AGENT_ID] = self._ids
        if self._masks is not None:
            arrays[ACTION_MASK] = self._all_legal(self.num_envs)
        return arrays

    def _finished(self, observation: Arrays) -> Arrays:
        """Adds the global state, and checks that all numbers are finite."""
        try:
            self._observations.check_finite(observation)
        except UnfitError as error:
            raise self._located(error) from None
        if self._state.spec is not None:
            observation[GLOBAL_STATE] = self._state.of(self._copies, observation)
        return observation

    def _answer(
        self, copy: int, method: str, parts: tuple[str, ...], *args: Any, **kwargs: Any
    ) -> tuple[Mapping[Any, Any], ...]:
        """Calls a method of a copy; returns the dicts that it returned."""
        try:
            answer = getattr(self._copies[copy], method)(*args, **kwargs)
        except TengenError:
            raise
        except RAISED as error:
            raise raised(self._name, error, f"copy {copy}") from error
        if not isinstance(answer, tuple) or len(answer) != len(parts):
            shown = f"{len(answer)} values" if isinstance(answer, tuple) else None
            raise UnfitError(
                f"{method} ({shown or type(answer).__name__})",
                self._name,
                copy,
                f"must return {len(parts)} dicts: {', '.join(parts)}",
            )
        for part, given in zip(parts, answer, strict=True):
            # ``isinstance`` with an abstract class is slow.
            if type(given) is not dict and not isinstance(given, Mapping):
                rule = "must be a dict with an entry for each agent"
                raise UnfitError(f"{part} ({typed(given)})", self._name, copy, rule)
        return answer

    def _reset_copy(self, copy: int, observation: Arrays, **kwargs: int) -> None:
        seen, infos = self._answer(copy, "reset", _RESET, **kwargs)
        self._present[copy] = present = self._agents_in(copy)
        if not present:
            rule = "must have an agent after a reset"
            raise UnfitError("agents (empty)", self._name, copy, rule)
        for agent in present:
            self._see(copy, agent, seen, infos, observation, is_terminal=False)

    def _step_copy(self, copy: int, native: NDArray[Any], step: Step) -> None:
        first, acting = copy * self._num_agents, self._present[copy]
        chosen = {self._keys[agent]: native[first + agent] for agent in acting}
        seen, rewards, ends, cuts, infos = self._answer(copy, "step", _STEP, chosen)
        self._present[copy] = present = self._agents_in(copy)
        self._is_over[copy] = not present
        name = self._name
        for agent in acting:
            key, row = self._keys[agent], first + agent
            try:
                reward, ended, was_cut = rewards[key], ends[key], cuts[key]
            except KeyError:
                told = rewards, ends, cuts
                parts = (
                    n for n, d in zip(_STEP[1:4], told, strict=True) if key not in d
                )
                raise self._lacks(next(parts), copy, agent) from None
            try:
                step.reward[row] = as_reward(reward, name, row)
                is_terminal = as_end("terminated", ended, name, row)
                is_cut = as_end("truncated", was_cut, name, row)
            except UnfitError as error:
                raise self._located(error) from None
            step.is_reset[row] = False
            if is_terminal or is_cut:
                step.terminated[row], step.truncated[row] = is_terminal, is_cut
            if (is_terminal or is_cut) == (agent in present):
                raise self._misplaced(copy, agent, has_ended=agent in present)
            self._see(
                copy, agent, seen, infos, step.observation, is_terminal=is_terminal
            )
        for agent in present if present is not acting else ():
            if agent in acting:
                continue
            self._see(copy, agent, seen, infos, step.observation, is_terminal=False)

    def _agents_in(self, copy: int) -> list[int]:
        """Returns the indices of the agents that are in a copy's episode, in order."""
        try:
            keys = list(self._copies[copy].agents)
            if keys == self._listed[copy]:
                return self._present[copy]
            self._listed[copy] = keys
            return sorted({self._index[key] for key in keys})
        except KeyError as error:
            what, rule = f"agents (with {error})", "must be of possible_agents"
        except RAISED as error:
            what, rule = f"agents ({one_line(error)})", "must be a list of agents"
        raise UnfitError(what, self._name, copy, rule)

    def _see(
        self,
        copy: int,
        agent: int,
        seen: Mapping[Any, Any],
        infos: Mapping[Any, Any],
        observation: Arrays,
        *,
        is_terminal: bool,
    ) -> None:
        """Writes the observation and the action mask of an agent."""
        key, row = self._keys[agent], copy * self._num_agents + agent
        if key not in seen:
            raise self._lacks("observations", copy, agent)
        try:
            self._observations.write(seen[key], observation, row)
            if self._masks is not None:
                source = _info(infos, key) if self._is_mask_in_info else seen[key]
                mask = observation[ACTION_MASK][row]
                self._masks.write(source, mask, row, is_terminal=is_terminal)
            elif infos.get(key) and self._has_late_mask(infos, key):
                rule = "must have a mask after the first reset too"
                raise UnfitError(f"info (with {ACTION_MASK})", self._name, row, rule)
        except UnfitError as error:
            raise self._located(error) from None
        except RAISED as error:
            raise raised(self._name, error, f"copy {copy}") from error

    def _has_late_mask(self, infos: Mapping[Any, Any], key: Hashable) -> bool:
        return self._actions.spec.is_discrete and ACTION_MASK in _info(infos, key)

    def _lacks(self, part: str, copy: int, agent: int) -> UnfitError:
        rule = f"must have an entry for {self._keys[agent]}"
        return UnfitError(f"{part} (without it)", self._name, copy, rule)

    def _misplaced(self, copy: int, agent: int, *, has_ended: bool) -> UnfitError:
        key = self._keys[agent]
        if has_ended:
            what, rule = f"agents (with {key})", "must not list an agent that ended"
        else:
            what = f"agents (without {key})"
            rule = "must list an agent until it is terminated or truncated"
        return UnfitError(what, self._name, copy, rule)

    def _located(self, error: UnfitError) -> UnfitError:
        """Returns an error about a row with the names of its copy and its agent."""
        if not isinstance(error.copy, int):
            return error
        copy, agent = divmod(error.copy, self._num_agents)
        where = f"{copy}, {self._keys[agent]}"
        return UnfitError(error.what, self._name, where, error.rule)


# Names of the dicts that reset and step return, in order.
_RESET = ("observations", "infos")
_STEP = ("observations", "rewards", "terminations", "truncations", "infos")


def _info(infos: Mapping[Any, Any], key: Hashable) -> Mapping[Any, Any]:
    """Returns an agent's info, which may be missing."""
    info = infos.get(key)
    return info if isinstance(info, Mapping) else {}
