"""SMAX, JaxMARL's battles in the style of StarCraft: tasks such as ``smax/3s5z``.

Each agent controls a unit of one team, and JaxMARL's heuristic controls the enemies. A
unit observes the units in its sight, ``[K]`` float32. It can move in four directions,
stop, or attack one of the enemies; the action mask has the actions that are possible.
All units share the reward: the part of the enemies' health that the team removed in the
step, and 1 for a victory. So the return is at most 2, and at most 1 without a victory.

JAX steps all copies in one compiled call, on the CPU in one thread. ``compile`` or the
first ``reset`` imports it, because a process must not fork after JAX has started.

Source: Rutherford et al. 2024, "JaxMARL: Multi-Agent RL Environments and Algorithms in
JAX" (arXiv:2311.10090), section on SMAX.
Differs from JaxMARL: a unit that dies terminates and is removed, in place of observing
zeros; the limit of 100 steps truncates the episode, in place of terminating it; the
first observation of the next episode does not replace the final one.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import RAISED, ActionRange, copy_seeds, one_line, raised
from tengen.envs.env import ActionSpec, Arrays, EnvSpec, Step
from tengen.envs.filmed import Picture, draw_planes
from tengen.envs.suites.suite import ListedSuite
from tengen.errors import UsageError
from tengen.tensors import ACTION_MASK, AGENT_ID, GLOBAL_STATE, TensorSpec

_PREFIX = "smax/"
_SCENARIOS = (
    "10m_vs_11m 25m 27m_vs_30m 2s3z 3m 3s5z 3s5z_vs_3s6z 3s_vs_5z 5m_vs_6m 6h_vs_8z 8m "
    "smacv2_10_units smacv2_20_units smacv2_5_units"
)
# JaxMARL's defaults: the limit of steps, and the actions that do not attack.
_MAX_STEPS, _NUM_MOVES = 100, 5
# Numbers that an agent observes of another unit and of its own unit. The global state
# has the latter, the team and the type of each unit.
_OF_UNIT, _OF_OWN = 13, 10
_MAP_SIDE, _CELL, _FPS = 32, 12, 10.0


@functools.cache
def simulator(scenario: str) -> Any:
    """Returns two functions, ``blank`` and ``step``, for N copies of a scenario.

    ``blank(seeds)`` returns a state in which all copies must be reset, and ``step`` is
    compiled. ``step(seeds, time, state, actions, was_over)`` takes the actions ``[N,
    n]`` of n agents, but begins the next episode of copies with ``was_over`` ``[N]``.
    Random numbers depend on a copy's seed and on the number ``time`` of steps. The
    result is the state of all copies, and arrays by name::

        observation, action_mask   [N, n, ...]
        global_state               [N, S]
        reward                     [N]     of the team
        is_alive                   [N, n]
        is_over, is_decided        [N]     whether the episode has ended, and whether a
                                           team has no living unit
    """
    is_first = "jax" not in sys.modules
    import jax

    if is_first:  # JAX gets a CPU and a thread, unless the program uses it already
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        _start_with_one_thread(jax)
    smax = _import_smax()
    env = smax.HeuristicEnemySMAX(scenario=smax.map_name_to_scenario(scenario))

    def seen(observed: Any, state: Any, reward: Any) -> Any:
        masks, units = env.get_avail_actions(state), state.state
        is_alive, enemies = jax.numpy.split(units.unit_alive, [env.num_allies])
        arrays = {
            "observation": jax.numpy.stack([observed[one] for one in env.agents]),
            ACTION_MASK: jax.numpy.stack([masks[one] for one in env.agents]) != 0,
            GLOBAL_STATE: observed["world_state"],
            "reward": jax.numpy.float32(reward),
            "is_alive": is_alive,
            "is_over": units.done,
            "is_decided": ~(is_alive.any() & enemies.any()),
        }
        # ``astype`` makes weak types strong, so that each call has the same types.
        return jax.tree.map(lambda array: array.astype(array.dtype), (state, arrays))

    def begin(seed: Any, time: Any) -> Any:
        key = jax.random.fold_in(jax.random.PRNGKey(seed), time)
        observed, state = env.reset(key)
        return seen(observed, state, 0.0)

    def step(seed: Any, time: Any, state: Any, actions: Any) -> Any:
        key = jax.random.fold_in(jax.random.PRNGKey(seed), time)
        taken = {agent: actions[i] for i, agent in enumerate(env.agents)}
        # JaxMARL's ``step`` would replace the final observation.
        observed, state, rewards, _, _ = env.step_env(key, state, taken)
        return seen(observed, state, rewards[env.agents[0]])

    def choose(is_new: Any, new: Any, old: Any) -> Any:
        return jax.tree.map(functools.partial(jax.numpy.where, is_new), new, old)

    def blank(seeds: Any) -> Any:
        state, _ = jax.eval_shape(jax.vmap(begin, (0, None)), seeds, 0)
        return jax.tree.map(lambda one: np.zeros(one.shape, one.dtype), state)

    def step_all(seeds: Any, time: Any, state: Any, actions: Any, was_over: Any) -> Any:
        def begun() -> Any:
            new = jax.vmap(begin, (0, None))(seeds, time)
            return jax.vmap(choose)(was_over, new, answer)

        answer = jax.vmap(step, (0, None, 0, 0))(seeds, time, state, actions)
        return jax.lax.cond(was_over.any(), begun, lambda: answer)

    return blank, jax.jit(step_all)


def _start_with_one_thread(jax: Any) -> None:
    """Computes once, because XLA reads its number of threads from ``NPROC`` then."""
    if is_unset := "NPROC" not in os.environ:
        os.environ["NPROC"] = "1"
    try:
        jax.numpy.zeros(1).block_until_ready()
    finally:
        if is_unset:  # other libraries and child processes read it too
            del os.environ["NPROC"]


def _import_smax() -> Any:
    """Imports SMAX without other environments, which import Matplotlib and print."""
    skipped = []
    for name in ("jaxmarl", "jaxmarl.environments"):
        spec = importlib.util.find_spec(name)
        if name not in sys.modules and spec is not None:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            skipped.append(name)
    try:
        return importlib.import_module("jaxmarl.environments.smax")
    finally:
        for name in skipped:
            del sys.modules[name]


class SmaxEnv:
    """Copies of an SMAX scenario, stepped by one call of JAX.

    Args:
        name: The task, such as ``smax/3s5z``.
        num_envs: Number of copies, at least 1.
        seed: Seed of the copies, at least 0; see ``copy_seeds``.
        simulate: Returns the functions that ``simulator`` returns.

    Attributes:
        spec: The scenario's spec.
        num_envs: Number N of rows, one per agent of each copy.

    Raises:
        UsageError: ``seed`` or ``num_envs`` is out of range.
    """

    def __init__(
        self, name: str, num_envs: int, seed: int, simulate: Any = simulator
    ) -> None:
        self._simulate = simulate
        self._seeds = np.array(copy_seeds(seed, num_envs), np.int32)
        self._scenario = name.removeprefix(_PREFIX)
        # The numbers of units are in the name. JaxMARL would import JAX.
        sides = self._scenario.removeprefix("smacv2_").split("_vs_")
        sizes = [sum(map(int, re.findall(r"\d+", side))) for side in sides]
        num_agents, num_enemies = sizes[0], sizes[-1]
        num_units = num_agents + num_enemies
        self.num_envs = num_envs * num_agents
        self._shape = num_envs, num_agents
        self._ids = np.tile(np.eye(num_agents, dtype=np.bool_), (num_envs, 1))
        self._state: Any = None
        seen = TensorSpec(shape=(_OF_UNIT * (num_units - 1) + _OF_OWN,))
        ids = TensorSpec(dtype="bool", shape=(num_agents,))
        self.spec = EnvSpec(
            name=name,
            observations={"observation": seen, AGENT_ID: ids},
            actions=ActionSpec(num_choices=(_NUM_MOVES + num_enemies,)),
            max_episode_steps=_MAX_STEPS,
            reward_threshold=None,
            win_return=1.5,
            has_action_mask=True,
            agents=tuple(f"ally_{i}" for i in range(num_agents)),
            teams=("allies",) * num_agents,
            global_state=TensorSpec(shape=((_OF_OWN + 2) * num_units,)),
        )
        self._range = ActionRange(self.spec.actions, name)

    def compile(self) -> None:
        """Compiles the function of ``reset`` and ``step``; see ``CompiledEnv``."""
        self.reset()

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``."""
        self._time, self._state = 0, None
        self._is_over = np.ones(len(self._seeds), np.bool_)
        arrays = self._answer(np.zeros(self._shape, np.int32))
        self._is_alive, self._is_over = arrays["is_alive"], arrays["is_over"]
        return self._observation(arrays)

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``."""
        self._range.check(actions, self.num_envs)
        self._time += 1
        arrays = self._answer(actions.reshape(self._shape).astype(np.int32))
        acted = self._is_alive & ~self._is_over[:, None]
        self._is_alive, self._is_over = arrays["is_alive"], arrays["is_over"]
        terminated = acted & (arrays["is_decided"][:, None] | ~self._is_alive)
        truncated = acted & self._is_over[:, None] & ~terminated
        reward = np.where(acted, arrays["reward"][:, None], np.float32(0))
        ends = terminated.ravel(), truncated.ravel(), ~acted.ravel()
        seen = self._observation(arrays)
        return Step(seen, reward.ravel(), *ends, is_over=self._is_over)

    def observed(self, observation: Any) -> Arrays:
        """Converts JaxMARL's dict of living agents' arrays; see ``Env.observed``."""
        agents, spec = self.spec.agents, self.spec.observations["observation"]
        seen = spec.zeros(len(agents))
        is_dict = isinstance(observation, Mapping)
        for agent, given in observation.items() if is_dict else [("", observation)]:
            shape, dtype = (getattr(given, name, None) for name in ("shape", "dtype"))
            if agent not in agents or shape != spec.shape or dtype != np.float32:
                raise UsageError(
                    f"observation ({one_line(agent)}: {one_line(dtype)} "
                    f"{one_line(shape)}) of {self.spec.name} must be a dict with "
                    f"float32 {spec.shape} for each living agent; pass that of "
                    "JaxMARL without world_state and dead units"
                )
            seen[agents.index(agent)] = given
        return {"observation": seen, AGENT_ID: self._ids[: len(agents)].copy()}

    def own_action(self, action: NDArray[Any]) -> int:
        """Converts the action of one agent to an int; see ``Env.own_action``."""
        self._range.check(action[None], 1)
        return int(action)

    def close(self) -> None:
        """Releases the copies' states; see ``Env.close``."""
        self._state = None

    def _answer(self, actions: NDArray[np.int32]) -> Arrays:
        """Steps all copies, or resets those whose episode is over."""
        seeds = self._seeds
        try:
            blank, step = self._simulate(self._scenario)
            state = blank(seeds) if self._state is None else self._state
            answer = step(seeds, self._time, state, actions, self._is_over)
            self._state, arrays = answer
            return {name: np.array(array) for name, array in arrays.items()}
        except RAISED as error:
            raise raised(self.spec.name, error, "a step of all copies") from error

    def _observation(self, arrays: Arrays) -> Arrays:
        by_row = {
            name: arrays[name].reshape(self.num_envs, -1)
            for name in ("observation", ACTION_MASK)
        }
        ids = self._ids.copy()
        return {**by_row, AGENT_ID: ids, GLOBAL_STATE: arrays[GLOBAL_STATE]}


def _draw(state: NDArray[np.float32]) -> Picture:
    """Draws the living units of each team on the map, from the global state."""
    num_units = len(state) // (_OF_OWN + 2)
    units, teams, _ = np.split(state, [_OF_OWN * num_units, (_OF_OWN + 1) * num_units])
    units = units.reshape(num_units, _OF_OWN)
    places = np.column_stack([teams, units[:, 2], units[:, 1]])[units[:, 0] > 0]
    planes = np.zeros((2, _MAP_SIDE, _MAP_SIDE), np.bool_)
    planes[tuple(places.astype(int).clip(0, _MAP_SIDE - 1).T)] = True
    return draw_planes(planes, _CELL)


SUITE = ListedSuite(
    prefix=_PREFIX,
    package="jaxmarl",
    listed=tuple(_SCENARIOS.split()),
    make_copies=SmaxEnv,
    observed=GLOBAL_STATE,
    draw=_draw,
    pictures_per_s=_FPS,
)
"""The suite of the tasks ``smax/*``."""
