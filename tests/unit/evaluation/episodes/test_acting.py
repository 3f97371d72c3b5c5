"""How actions are chosen where an agent is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.actors import Slots
from tengen.envs import ActionSpec, Arrays
from tengen.errors import UsageError
from tengen.evaluation import Acting
from tengen.evaluation.episodes.acting import Draws
from tests.refusals import refused

NUM_ROWS = 4_000
CHOICES = ActionSpec(num_choices=(4,))
SEVERAL = ActionSpec(shape=(2,), num_choices=(2, 3))
NUMBERS = ActionSpec(shape=(1,), low=(-1.0,), high=(1.0,))
OUTPUTS = {"policy": np.zeros((NUM_ROWS, 1), np.float32)}


class Fixed:
    """Holds the last action best, and draws the first one."""

    def num_uniforms(self, actions: ActionSpec) -> int:
        return 1

    def act(
        self, outputs: Arrays, actions: ActionSpec, uniforms: Any, slots: Slots
    ) -> Arrays:
        assert uniforms.shape == (len(outputs["policy"]), 1)
        return {"action": np.zeros_like(self._best(outputs, actions))}

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        return {"action": self._best(outputs, actions)}

    def _best(self, outputs: Arrays, actions: ActionSpec) -> NDArray[Any]:
        last: NDArray[Any] = np.array(actions.num_choices, np.int64) - 1
        if not actions.is_discrete:
            last = np.array(actions.high, np.float32)
        return np.broadcast_to(
            last.reshape(actions.shape), (len(outputs["policy"]), *actions.shape)
        ).copy()


def chosen(acting: Acting, actions: ActionSpec, seed: int = 0) -> NDArray[Any]:
    return acting.choose(Fixed(), OUTPUTS, actions, Draws(seed))


def test_greedy_takes_the_best_and_sampled_draws() -> None:
    assert (chosen(Acting(), CHOICES) == 3).all()
    assert (chosen(Acting(mode="sampled"), CHOICES) == 0).all()


def test_epsilon_takes_any_action_in_its_share_of_steps() -> None:
    taken = chosen(Acting(mode="epsilon", epsilon=0.4), CHOICES)
    shares = np.bincount(taken, minlength=4) / NUM_ROWS
    # Any action is the best one too; a standard deviation is below 0.008.
    assert shares == pytest.approx([0.1, 0.1, 0.1, 0.7], abs=0.04)
    assert (chosen(Acting(mode="epsilon", epsilon=0.0), CHOICES) == 3).all()
    several = chosen(Acting(mode="epsilon", epsilon=1.0), SEVERAL)
    for part, num_choices in enumerate(SEVERAL.num_choices):
        shares = np.bincount(several[:, part], minlength=num_choices) / NUM_ROWS
        assert shares == pytest.approx([1 / num_choices] * num_choices, abs=0.04)


def test_real_numbers_have_no_epsilon() -> None:
    assert (chosen(Acting(mode="epsilon", epsilon=1.0), NUMBERS) == 1.0).all()


def test_each_step_draws_anew_and_a_seed_repeats_it() -> None:
    acting, draws = Acting(mode="epsilon", epsilon=0.5), Draws(3)
    first, second = (
        acting.choose(Fixed(), OUTPUTS, CHOICES, draws).tolist() for _ in range(2)
    )
    assert first != second
    assert chosen(acting, CHOICES, seed=3).tolist() == first
    assert chosen(acting, CHOICES, seed=4).tolist() != first


def test_what_it_says_and_refuses() -> None:
    assert str(Acting()) == "greedy"
    assert str(Acting(mode="epsilon")) == "greedy but for epsilon 0.001"
    for epsilon in (-0.1, 1.1, float("nan")):
        with refused(UsageError, "epsilon ("):
            Acting(mode="epsilon", epsilon=epsilon)
