"""Checks vectorized copies of an environment against the contract of ``Env``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen.envs.check.one import Maker, agents_actions
from tengen.envs.check.seeds import play
from tengen.envs.check.seen import CannotGoOnError, Findings, is_same
from tengen.envs.copies import RAISED, copy_seeds, said
from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.envs.masks import legal_actions
from tengen.envs.timely import Deadline
from tengen.errors import TengenError
from tengen.tensors import ACTION_MASK, GLOBAL_STATE

MakeCopies: TypeAlias = Callable[[int, int], Env]
"""A function that creates an ``Env``, given the number of copies and a seed."""

_Result = TypeVar("_Result")

_NUM_COPIES = 3
# Number of additional seeds; a warning is issued if all seeds give the same trajectory.
_NUM_SEEDS = 4


class _Copies:
    """Wraps an ``Env``, checks its arrays against its spec, and records violations.

    Args:
        make: Creates the copies.
        num_envs: Number of copies.
        seed: Seed of the copies.
        findings: Receives the violations.
        watch: The time limit of every call.
    """

    def __init__(
        self,
        make: MakeCopies,
        num_envs: int,
        seed: int,
        findings: Findings,
        watch: Deadline,
    ) -> None:
        self._findings, self._watch = findings, watch
        self._row = 0
        self._env: Env = self._call("making copies", lambda: make(num_envs, seed))
        self._num_copies, self._num_rows = num_envs, self._env.num_envs
        self._must_reset = np.zeros(self._num_rows, np.bool_)

    @property
    def spec(self) -> EnvSpec:
        return self._env.spec

    def reset(self) -> Arrays:
        self._row = 0
        self._must_reset = np.zeros(self._num_rows, np.bool_)
        observation = self._call("reset of copies", self._env.reset)
        self._check_observation(observation)
        return observation

    def step(self, actions: NDArray[Any]) -> Step:
        self._row += 1
        step = self._call("step of copies", lambda: self._env.step(actions))
        self._check_observation(step.observation)
        for name, dtype in (
            ("reward", np.float32),
            ("terminated", np.bool_),
            ("truncated", np.bool_),
            ("is_reset", np.bool_),
        ):
            self._check_array(name, getattr(step, name), (), np.dtype(dtype))
        self._check_resets(step)
        self._must_reset = step.terminated | step.truncated
        if step.is_over is not None:
            self._must_reset |= step.is_over.repeat(self.spec.num_agents)
        return step

    def close(self) -> None:
        for call in ("close() of copies", "a second close() of copies"):
            self._call(call, self._env.close)

    def _call(self, what: str, work: Callable[[], _Result]) -> _Result:
        try:
            with self._watch.during(what):
                return work()
        except TengenError as error:
            self._findings.refused("copies.raises", error)
        except RAISED as error:
            self._findings.broken(
                "copies.raises", what, said(error), "must not raise; correct it"
            )
        raise CannotGoOnError

    def _check_observation(self, observation: Arrays) -> None:
        specs = dict(self.spec.observation_tensors)
        if self.spec.global_state is not None:
            specs[GLOBAL_STATE] = self.spec.global_state
        if observation.keys() != specs.keys():
            self._findings.broken(
                "copies.arrays",
                "observation of copies",
                sorted(observation),
                f"must have the spec's arrays {sorted(specs)}; return all of them",
            )
            raise CannotGoOnError
        for name, spec in specs.items():
            self._check_array(name, observation[name], spec.shape, np.dtype(spec.dtype))

    def _check_array(
        self, name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        num_rows = self._num_copies if name == GLOBAL_STATE else self._num_rows
        wanted = (num_rows, *shape)
        if (
            not isinstance(array, np.ndarray)
            or array.shape != wanted
            or array.dtype != dtype
        ):
            have = getattr(array, "dtype", type(array).__name__)
            self._findings.broken(
                "copies.arrays",
                f"{name} of copies",
                f"{have} {np.shape(array)}",
                f"must be an array of {dtype} {wanted} at row {self._row}; follow the "
                "spec",
            )
            raise CannotGoOnError
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            self._findings.broken(
                "copies.finite",
                f"{name} of copies",
                array[~np.isfinite(array)].flat[0],
                f"must be finite at row {self._row}; correct it",
            )

    def _check_resets(self, step: Step) -> None:
        # An absent agent has further reset steps, until it comes again.
        may_reset = self._must_reset | (self.spec.num_agents > 1)
        if (self._must_reset & ~step.is_reset | step.is_reset & ~may_reset).any():
            self._findings.broken(
                "copies.reset",
                "is_reset",
                step.is_reset.tolist(),
                f"must be {self._must_reset.tolist()} at row {self._row}, the copies "
                "whose episode ended one row earlier; reset exactly these",
            )
        ends = step.terminated | step.truncated
        if (step.is_reset & (ends | (step.reward != 0))).any():
            self._findings.broken(
                "copies.reset",
                "reset step",
                f"rewards {step.reward.tolist()}, ends {ends.tolist()}",
                f"must have reward 0 and no end at row {self._row}; ignore its action",
            )


def check_copies(
    make: MakeCopies, num_steps: int, seed: int, findings: Findings, watch: Deadline
) -> None:
    """Checks that copies repeat their trajectory with one seed, and not with others.

    Args:
        make: Creates the copies.
        num_steps: Number of rows in each trajectory.
        seed: The seed whose trajectory is repeated; further seeds follow it.
        findings: Receives the violations.
        watch: The time limit of every call.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """
    env = _Copies(make, _NUM_COPIES, seed, findings, watch)
    num_rows = _NUM_COPIES * env.spec.num_agents
    actions = agents_actions(env.spec.actions, num_steps, num_rows, seed)
    rows = _played(env, actions)
    again = _played(env, actions)
    env.close()
    if not _are_same(rows, again):
        findings.broken(
            "copies.again",
            "reset() of copies",
            "steps differ from the first time",
            "must restart from the seed; reinitialize all state in reset",
        )
    if not _are_same(rows, _of_seed(make, actions, seed, findings, watch)):
        findings.broken(
            "copies.same",
            f"seed {seed} of copies",
            "new copies give different steps",
            "must give the same steps for the same actions; seed every random "
            "generator",
        )
    others = range(seed + 1, seed + 1 + _NUM_SEEDS)
    if all(
        _are_same(rows, _of_seed(make, actions, other, findings, watch))
        for other in others
    ):
        findings.warning(
            "seed.others",
            "seed of copies",
            f"{len(others) + 1} seeds gave the same steps",
            "should change the episodes; ignore this if nothing is random",
        )


def _of_seed(
    make: MakeCopies,
    actions: NDArray[Any],
    seed: int,
    findings: Findings,
    watch: Deadline,
) -> _Rows:
    """Creates copies with ``seed`` and returns their trajectory under ``actions``."""
    env = _Copies(make, _NUM_COPIES, seed, findings, watch)
    rows = _played(env, actions)
    env.close()
    return rows


def check_against_one(maker: Maker, num_steps: int, seed: int) -> None:
    """Checks that vectorized copies behave like the same environments stepped singly.

    Args:
        maker: Creates one environment.
        num_steps: Number of rows in each trajectory.
        seed: Seed of the copies.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """

    def make(num_envs: int, seed: int) -> Env:
        return GymnasiumEnv(maker.make_one, num_envs, seed, name=maker.name)

    copies = _Copies(make, _NUM_COPIES, seed, maker.findings, maker.watch)
    actions = agents_actions(copies.spec.actions, num_steps, _NUM_COPIES, seed)
    rows = _played(copies, actions)
    copies.close()
    reader = make(1, 0)
    reader.close()  # a closed Env still supports own_action
    for copy, copy_seed in enumerate(copy_seeds(seed, _NUM_COPIES)):
        env = maker()
        own = [reader.own_action(action) for action in actions[:, copy]]
        alone = play(env, copy_seed, own)
        env.close()
        for i, row in enumerate(alone):
            observation = env.observations.read(row.observation)
            seen, reward, terminated, truncated = rows[i]
            is_same = all(
                np.array_equal(observation[name][0], seen[name][copy])
                for name in observation
            ) and (row.reward, row.terminated, row.truncated) == (
                reward[copy],
                terminated[copy],
                truncated[copy],
            )
            if not is_same:
                maker.findings.broken(
                    "copies.apart",
                    f"copy {copy}",
                    f"differs at row {i} from the same copy alone",
                    "must share no state with other copies; keep state in self, not in "
                    "the class or module",
                )
                return


_Rows: TypeAlias = list[
    tuple[Arrays, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]
]


def _played(env: _Copies, actions: NDArray[Any]) -> _Rows:
    """Returns the trajectory of ``env``: one row for the reset and one per action."""
    nothing = np.zeros(actions.shape[1], np.bool_)
    observation = env.reset()
    rows: _Rows = [(observation, nothing.astype(np.float32), nothing, nothing)]
    for row in actions:
        mask = observation.get(ACTION_MASK)
        legal = row
        if mask is not None:
            legal = legal_actions(row, mask, env.spec.actions.num_choices)
        step = env.step(legal)
        observation = step.observation
        rows.append((observation, step.reward, step.terminated, step.truncated))
    return rows


def _are_same(rows: _Rows, others: _Rows) -> bool:
    return all(map(is_same, rows, others))
