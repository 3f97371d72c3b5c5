"""An ``Env`` of several agents that act at the same time.

Source: the interface ``ParallelEnv`` of PettingZoo 1.24 and later. An environment needs
only the interface: it may derive from another class, and PettingZoo may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import (
    RAISED,
    UnfitError,
    as_end,
    as_reward,
    one_line,
    raised,
    typed,
)
from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.envs.gymnasium_env import (
    GymnasiumEnv,
    OwnCopies,
    closed_if_refused,
    make_guarded,
)
from tengen.envs.masks import ActionMasks
from tengen.envs.parallel_parts import (
    GlobalState,
    agents_of,
    attribute,
    is_parallel,
    spaces_of,
    teams_of,
)
from tengen.envs.spaces import Actions, Observations
from tengen.errors import UsageError
from tengen.tensors import ACTION_MASK, AGENT_ID, GLOBAL_STATE, TensorSpec


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
    first = make_guarded(make_one, name)
    with closed_if_refused(first):
        adapter = ParallelEnv if is_parallel(first, name) else GymnasiumEnv
    made = [first]
    return adapter(
        lambda: made.pop() if made else make_one(), num_envs, seed, name=name
    )


class ParallelEnv(OwnCopies):
    """Copies of a parallel environment in this process, stepped one after the other.

    All agents have equal spaces. The network sees the agent's index as the observation
    ``AGENT_ID``. An action mask may be in the ``info`` of each agent, or in its
    observation, a ``Dict``.

    The global state is the result of ``state()`` if the environment has a
    ``state_space`` of at most 65,536 numbers; otherwise all agents' observations, one
    after the other. There is none if these too have more numbers.

    Attributes:
        spec: The environment's spec.
        num_envs: Number N of rows, one per agent of each copy.
        shows_state: Whether observations contain the global state, if there is one;
            initially true. Only some agents need it, and it may take long to compute.
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
                agents or their spaces differ, or a space is of an unsupported kind.
        """
        self.shows_state = True
        self._kind: Any = ()
        super().__init__(make_one, num_envs, seed, name)
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
            teams=self._teams,
            global_state=self._state.spec,
        )

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: A copy raised, or one of its results is invalid.
            RunError: An action is out of range.
        """
        native = self._actions.to_gymnasium(actions, self.num_envs)
        was_over, self._is_over = self._is_over, np.zeros(len(self._copies), np.bool_)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        step = Step(
            self._zeros(),
            np.zeros(self.num_envs, np.float32),
            terminated,
            truncated,
            is_reset=~terminated,
            is_over=self._is_over,
        )
        for copy in range(len(self._copies)):
            if was_over[copy]:
                self._reset_copy(copy, step.observation)
            else:
                self._step_copy(copy, native, step)
        self._finished(step.observation)
        return step

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
        masks = None if self._is_mask_in_info else self._masks
        if masks is not None:
            arrays[ACTION_MASK] = masks.all_legal(self._num_agents)
        for key, seen in observation.items():
            row = self._index.get(key)
            if row is None:
                raise UsageError(
                    f"agent ({one_line(key)}) of {self._name} must be one of "
                    f"{one_line(list(self.spec.agents))}; correct the observation"
                )
            for name, array in self._observations.read(seen).items():
                arrays[name][row] = array[0]
            if masks is not None:
                arrays[ACTION_MASK][row] = masks.read(seen.get(ACTION_MASK))[0]
        return arrays

    def _check_made(self, made: Any) -> None:
        name = self._name
        missing = [
            part
            for part in ("observation_space", "action_space", "reset", "step", "close")
            if not callable(attribute(made, part, name))
        ]
        if not is_parallel(made, name) or missing:
            raise UsageError(
                f'environment ("{name}") must have PettingZoo\'s parallel '
                f"interface, but lacks {', '.join(missing or ['possible_agents'])}; "
                "add it"
            )
        keys = agents_of(made, name)
        kind = (keys, teams_of(made, keys, name), *spaces_of(made, keys, name))
        if self._kind not in ((), kind):
            raise UsageError(
                f'environment ("{name}") must have the same possible_agents, teams '
                "and spaces in every copy; correct it"
            )
        self._kind = kind

    def _read_spaces(self) -> None:
        num_copies = len(self._copies)
        self._keys, self._teams, observed, acted = self._kind
        self._actions = Actions(acted, self._name)
        self._observations = Observations(observed, self._name, self._actions.spec)
        self._index = {key: i for i, key in enumerate(self._keys)}
        self._num_agents = len(self._keys)
        self.num_envs = num_copies * self._num_agents
        self._ids = np.tile(np.eye(self._num_agents, dtype=np.bool_), (num_copies, 1))
        self._state = GlobalState(
            self._copies[0], self._observations, self._num_agents, self._name
        )
        # The agents of each copy's episode: their indices, and as the copy lists them.
        self._present: list[list[int]] = [[] for _ in range(num_copies)]
        self._listed: list[list[Any]] = [[] for _ in range(num_copies)]
        self._masks = self._masks_of()

    def _masks_of(self) -> ActionMasks | None:
        """Returns the reader of action masks; None if no choice is ever illegal."""
        if not self._actions.spec.is_discrete:
            return None
        if not self._observations.has_mask:
            # Only a reset shows whether the infos have masks.
            _, infos = self._dicts(0, "reset", _RESET, seed=self._seeds[0])
            self._is_mask_in_info = any(ACTION_MASK in _info(infos, k) for k in infos)
            if not self._is_mask_in_info:
                return None
        return ActionMasks(self._actions.spec, self._name)

    def _zeros(self) -> Arrays:
        return {**super()._zeros(), AGENT_ID: self._ids}

    def _finished(self, observation: Arrays) -> Arrays:
        """Adds the global state, and checks that all numbers are finite."""
        try:
            self._observations.check_finite(observation)
        except UnfitError as error:
            raise self._located(error) from None
        if self._state.spec is not None and self.shows_state:
            observation[GLOBAL_STATE] = self._state.of(self._copies, observation)
        return observation

    def _dicts(
        self, copy: int, method: str, parts: Sequence[str], *args: Any, **kwargs: Any
    ) -> tuple[Mapping[Any, Any], ...]:
        """Does ``_answer``, and checks that each value is a dict."""
        answer = self._answer(copy, method, parts, *args, **kwargs)
        for part, given in zip(parts, answer, strict=True):
            # ``isinstance`` with an abstract class is slow.
            if type(given) is not dict and not isinstance(given, Mapping):
                rule = "must be a dict with an entry for each agent"
                raise UnfitError(f"{part} ({typed(given)})", self._name, copy, rule)
        return answer

    def _reset_copy(self, copy: int, observation: Arrays, **kwargs: int) -> None:
        seen, infos = self._dicts(copy, "reset", _RESET, **kwargs)
        self._present[copy] = present = self._agents_in(copy)
        if not present:
            rule = "must have an agent after a reset"
            raise UnfitError("agents (empty)", self._name, copy, rule)
        self._see(copy, present, seen, infos, observation)

    def _step_copy(self, copy: int, native: NDArray[Any], step: Step) -> None:
        first, acting, keys = copy * self._num_agents, self._present[copy], self._keys
        chosen = {keys[agent]: native[first + agent] for agent in acting}
        seen, rewards, ends, cuts, infos = self._dicts(copy, "step", _STEP, chosen)
        self._present[copy] = present = self._agents_in(copy)
        self._is_over[copy] = not present
        _, reward, terminated, truncated, is_reset, *_ = step
        name, stay = self._name, {*present}
        for agent in acting:
            key, row, is_over = keys[agent], first + agent, False
            try:
                reward[row] = as_reward(rewards[key], name, row)
                ended, was_cut = ends[key], cuts[key]
                if ended is not False or was_cut is not False:
                    is_terminal = as_end("terminated", ended, name, row)
                    is_cut = as_end("truncated", was_cut, name, row)
                    is_over = is_terminal or is_cut
                    terminated[row], truncated[row] = is_terminal, is_cut
            except KeyError:
                told = zip(_STEP[1:4], (rewards, ends, cuts), strict=True)
                lacking = [part for part, given in told if key not in given]
                raise self._lacks(lacking[0], copy, agent) from None
            except UnfitError as error:
                raise self._located(error) from None
            is_reset[row] = False
            if is_over == (agent in stay):
                raise self._misplaced(copy, agent, has_ended=is_over)
        observers = acting if present is acting else sorted(stay.union(acting))
        self._see(copy, observers, seen, infos, step.observation, terminated)

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
        agents: list[int],
        seen: Mapping[Any, Any],
        infos: Mapping[Any, Any],
        observation: Arrays,
        terminated: NDArray[np.bool_] | None = None,
    ) -> None:
        """Writes the observations and the masks of agents of a copy, in order.

        Rows in the mask ``terminated`` ``[N]`` may lack an action mask.
        """
        first = copy * self._num_agents
        for agent in agents:
            if self._keys[agent] not in seen:
                raise self._lacks("observations", copy, agent)
        try:
            values = [seen[self._keys[agent]] for agent in agents]
            if len(agents) == self._num_agents:
                self._observations.write_rows(values, observation, first)
            else:
                for agent, value in zip(agents, values, strict=True):
                    self._observations.write(value, observation, first + agent)
            if self._masks is None and not any(
                _info(infos, self._keys[agent]) for agent in agents
            ):
                return
            for agent, value in zip(agents, values, strict=True):
                key, row = self._keys[agent], first + agent
                source = _info(infos, key) if self._is_mask_in_info else value
                if self._masks is not None:
                    mask = observation[ACTION_MASK][row]
                    is_terminal = terminated is not None and bool(terminated[row])
                    self._masks.write(source, mask, row, is_terminal=is_terminal)
                elif self._has_late_mask(infos, key):
                    what = f"info (with {ACTION_MASK})"
                    rule = "must have a mask after the first reset too"
                    raise UnfitError(what, self._name, row, rule)
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
        has, rule = "without", "must list an agent until it terminates or is truncated"
        if has_ended:
            has, rule = "with", "must not list an agent that ended"
        return UnfitError(f"agents ({has} {self._keys[agent]})", self._name, copy, rule)

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
    return info if type(info) is dict or isinstance(info, Mapping) else {}
