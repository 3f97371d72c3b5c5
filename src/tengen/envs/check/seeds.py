"""Checks that an environment's trajectory depends on its seed and actions alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tengen.envs.check.one import Maker, OneEnv, own_actions
from tengen.envs.check.seen import copied, is_same
from tengen.envs.copies import MAX_SEED

# Number of additional seeds; a warning is issued if all seeds give the same trajectory.
_NUM_SEEDS = 10
# Number of episodes whose first steps are compared, and number of these steps.
_NUM_BEGUN, _NUM_BEGINNING = 20, 20


class Row(NamedTuple):
    """One row of a trajectory: a step, or the reset after an episode's end."""

    observation: Any
    """A deep copy of the observation."""
    reward: float
    """The reward; 0 for a reset."""
    terminated: bool
    """Whether the episode reached a terminal state; False for a reset."""
    truncated: bool
    """Whether the episode was cut short; False for a reset."""


def play(env: OneEnv, seed: int, actions: Sequence[Any]) -> list[Row]:
    """Plays ``actions`` after a seeded reset; a row that resets ignores its action.

    Args:
        env: The environment; its current episode is abandoned.
        seed: Seed of the first reset.
        actions: One action for each row.

    Returns:
        One row for the first reset, and one row for each action.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """
    rows = [Row(copied(env.reset(seed)), 0.0, False, False)]
    is_over = False
    for action in actions:
        if is_over:
            rows.append(Row(copied(env.reset()), 0.0, False, False))
            is_over = False
            continue
        moved = env.step(action)
        is_over = moved.is_over
        rows.append(Row(copied(moved.observation), *moved[1:]))
    return rows


def check_seeds(maker: Maker, num_steps: int, seed: int) -> bool:
    """Checks that a seed repeats its trajectory and that other seeds differ.

    Args:
        maker: Creates the environment.
        num_steps: Number of rows in each trajectory.
        seed: The seed whose trajectory is repeated.

    Returns:
        Whether ``seed`` repeated its trajectory.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """
    env = maker()
    drawn = own_actions(env.env.action_space, seed)
    actions = list(itertools.islice(drawn, num_steps))
    rows = play(env, seed, actions)
    again = play(env, seed, actions)
    env.close()
    other = maker()
    anew = play(other, seed, actions)
    place = _first_difference(rows, anew)
    if place is not None:
        _tell_of_copies(maker, seed, actions, place)
    elif (place := _first_difference(rows, again)) is not None:
        maker.findings.broken(
            "seed.again",
            f"reset(seed={seed})",
            f"{place} differs from the first time",
            "must not depend on earlier episodes; reinitialize all state in reset",
        )
    _check_others(maker, other, seed, actions, rows)
    other.close()
    return place is None


def _tell_of_copies(
    maker: Maker, seed: int, actions: Sequence[Any], place: str
) -> None:
    advice = "draw only from self.np_random, after super().reset(seed=seed)"
    trajectories = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        env = maker()
        trajectories.append(play(env, seed, actions))
        env.close()
    if _first_difference(*trajectories) is None:
        advice = (
            "it uses the global generator of numpy.random or random; draw from "
            "self.np_random"
        )
    maker.findings.broken(
        "seed.same",
        f"reset(seed={seed})",
        f"{place} differs between two instances with one seed",
        f"must give the same trajectory for the same actions; {advice}",
    )


def _check_others(
    maker: Maker, env: OneEnv, seed: int, actions: Sequence[Any], rows: list[Row]
) -> None:
    others = [_other(seed, more) for more in range(1, _NUM_SEEDS + 1)]
    if any(
        _first_difference(rows, play(env, other, actions)) is not None
        for other in others
    ):
        _check_next(maker, env, seed, actions)
        return
    maker.findings.warning(
        "seed.others",
        "reset(seed=...)",
        f"{len(others) + 1} seeds gave the same trajectory",
        "should change the episode; ignore this if nothing is random",
    )


def _check_next(maker: Maker, env: OneEnv, seed: int, actions: Sequence[Any]) -> None:
    """Detects an environment whose ``reset()`` without a seed repeats one episode.

    An environment with few distinct beginnings may repeat one by chance. So repetition
    is a finding only if no beginning occurs with more than half of the tried seeds.
    """
    seeds = [_other(seed, more) for more in range(_NUM_BEGUN)]
    seeded = [_beginning(env, other, actions) for other in seeds]
    most_alike = max(
        sum(_are_alike(one, other) for other in seeded)
        for one in seeded[: _NUM_BEGUN // 2]
    )
    if most_alike > _NUM_BEGUN // 2:
        return
    first = _beginning(env, None, actions)
    if all(
        _are_alike(_beginning(env, None, actions), first) for _ in range(1, _NUM_BEGUN)
    ):
        maker.findings.warning(
            "seed.next",
            "reset()",
            f"began the same episode {_NUM_BEGUN} times",
            "should continue the random stream of reset(seed=...); seed the generator "
            "in reset only if a seed is given",
        )


def _other(seed: int, more: int) -> int:
    """Returns ``seed + more``, wrapped around after ``MAX_SEED``."""
    return (seed + more) % (MAX_SEED + 1)


def _beginning(env: OneEnv, seed: int | None, actions: Sequence[Any]) -> list[Row]:
    """Resets ``env`` with ``seed`` and returns the rows of the first steps."""
    rows = [Row(copied(env.reset(seed)), 0.0, False, False)]
    for action in actions[:_NUM_BEGINNING]:
        moved = env.step(action)
        rows.append(Row(copied(moved.observation), *moved[1:]))
        if moved.is_over:
            break
    return rows


def _are_alike(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    return len(rows) == len(others) and _first_difference(rows, others) is None


def _first_difference(rows: Sequence[Row], others: Sequence[Row]) -> str | None:
    """Describes the first difference of two trajectories; None if they are equal."""
    for i, (row, other) in enumerate(zip(rows, others, strict=True)):
        where = f"at row {i}" if i else "of the first reset"
        if not is_same(row.observation, other.observation):
            return f"the observation {where}"
        for name in ("reward", "terminated", "truncated"):
            if not is_same(getattr(row, name), getattr(other, name)):
                return f"{name} {where}"
    return None
