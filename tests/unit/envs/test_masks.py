"""Action masks in observations and in ``info``: read, checked, and never lost."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium import spaces

from tengen import envs
from tengen.actors import random_choices
from tengen.envs import ActionSpec
from tengen.envs.check import check_own_env
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.errors import EnvError, UsageError
from tests.masked_environments import DictDoors, Doors
from tests.refusals import refused


class Masked(Doors):
    """``Doors`` whose masks are given, one for the reset and one for each step."""

    def __init__(self, masks, ends=()):
        super().__init__()
        self._masks, self._ends, self._at = masks, ends, 0

    def reset(self, **_):
        self._at = 0
        return np.zeros(2, np.float32), self._info()

    def step(self, action):
        self._at += 1
        is_over, is_cut = self._at in self._ends, -self._at in self._ends
        return np.zeros(2, np.float32), 0.0, is_over, is_cut, self._info()

    def _info(self):
        mask = self._masks[self._at]
        return {} if mask is None else {"action_mask": mask}


ALL, NONE = np.ones(8, np.int8), np.zeros(8, np.int8)
FIRST = np.eye(8, dtype=np.int8)[0]


def env_of(masks, ends=()):
    return GymnasiumEnv(lambda: Masked(masks, ends), 1, 0, name="masked")


@pytest.mark.parametrize("kind", [Doors, DictDoors])
def test_a_mask_comes_with_each_observation(kind):
    env = GymnasiumEnv(kind, 3, 0, name="doors")
    assert env.spec.has_action_mask
    assert "action_mask" not in {name.split("/")[-1] for name in env.spec.observations}
    observation = env.reset()
    assert observation.keys() == env.spec.observation_tensors.keys()
    for num_steps in range(25):
        mask = observation["action_mask"]
        assert mask.dtype == np.bool_
        assert (mask.sum(axis=1) == 2).all()
        step = env.step(mask.argmax(axis=1))
        # An open door ends no episode before its last step, the tenth.
        assert step.terminated.all() == (num_steps % 11 == 9)
        observation = step.observation


def test_both_forms_give_the_same_masks():
    one, other = (GymnasiumEnv(kind, 2, 5, name="d") for kind in (Doors, DictDoors))
    assert (one.reset()["action_mask"] == other.reset()["action_mask"]).all()
    for choice in range(8):
        chosen = np.array([choice, 7 - choice])
        masks = [env.step(chosen).observation["action_mask"] for env in (one, other)]
        assert (masks[0] == masks[1]).all()


def test_an_environment_without_masks_has_none():
    assert not envs.env_spec("CartPole-v1").has_action_mask
    env = GymnasiumEnv(lambda: Masked([None] * 3), 1, 0, name="masked")
    assert not env.spec.has_action_mask
    assert env.reset().keys() == {"observation"}


def test_after_the_last_step_a_mask_may_be_empty_or_missing():
    for mask in (NONE, None):
        env = env_of([FIRST, mask], ends=(1,))
        env.reset()
        assert env.step(np.array([0])).observation["action_mask"].all()


@pytest.mark.parametrize("mask", [NONE, None])
def test_a_truncated_episode_needs_a_mask_as_its_last_state_is_bootstrapped(mask):
    env = env_of([FIRST, mask], ends=(-1,))
    env.reset()
    with refused(EnvError, "action_mask ("):
        env.step(np.array([0]))


def test_a_mask_that_comes_only_with_steps_is_refused():
    env = env_of([None, FIRST])
    env.reset()
    with refused(EnvError, "action_mask"):
        env.step(np.array([0]))


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        (NONE, "[0 0 0 0 0 0 0 0]"),
        (None, "NoneType None"),
        (np.ones(7, np.int8), "(7,)"),
        (np.full(8, 2), "[2 2 2 2 2 2 2 2]"),
        (np.full(8, np.nan), "nan"),
        ("all", "str all"),
        ([[1], [1, 0]], "list"),
    ],
)
def test_a_wrong_mask_is_one_line(mask, shown):
    env = env_of([FIRST, mask])
    env.reset()
    with refused(EnvError, "action_mask (", shown, "copy 0") as caught:
        env.step(np.array([0]))
    assert "\n" not in str(caught.value)


def test_a_mask_covers_the_choices_of_all_components():
    actions = ActionSpec(shape=(2,), num_choices=(3, 2))
    masks = envs.ActionMasks(actions, "two")
    wanted = [[False, True, False, True, True]]
    assert masks.read([0, 1, 0, 1, 1]).tolist() == wanted
    assert masks.read(([0, 1, 0], [1, 1])).tolist() == wanted
    half = np.zeros(5, np.bool_)
    masks.write({"action_mask": [0, 1, 0, 0, 0]}, half, 0, is_terminal=True)
    assert half.tolist() == wanted[0]
    with refused(UsageError, "action_mask ([1 1 1 0 0])"):
        masks.read([1, 1, 1, 0, 0])
    with refused(UsageError, "action_mask ((2, 2))"):
        envs.ActionMasks(ActionSpec(shape=(2,), num_choices=(2, 2)), "two").read(
            np.ones((2, 2))
        )


def test_random_choices_are_uniform_over_legal_ones():
    actions = ActionSpec(shape=(2,), num_choices=(3, 2))
    mask = np.tile(np.array([1, 0, 1, 0, 1], np.bool_), (400, 1))
    uniforms = np.stack([np.arange(400) / 400, np.arange(400) / 400], axis=1)
    drawn = random_choices(uniforms, actions, mask)
    assert np.bincount(drawn[:, 0]).tolist() == [200, 0, 200]
    assert np.bincount(drawn[:, 1]).tolist() == [0, 400]


def test_an_illegal_action_becomes_a_legal_one():
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]], np.bool_)
    for first in range(3):
        for second in range(2):
            given = np.array([[first, second]] * 2)
            legal = envs.legal_actions(given, mask, (3, 2))
            assert mask[0, legal[0, 0]]
            assert mask[1, legal[1, 0]]
            assert mask[0, 3 + legal[0, 1]]
            assert mask[1, 3 + legal[1, 1]]
            if mask[0, first]:
                assert legal[0, 0] == first


def test_a_named_entry_is_an_observation_where_actions_are_real_numbers():
    class Real(DictDoors):
        def __init__(self):
            super().__init__()
            self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    env = GymnasiumEnv(Real, 1, 0, name="real")
    assert not env.spec.has_action_mask
    assert "observation/action_mask" in env.spec.observations
    env.close()


def test_actions_without_choices_have_no_mask():
    spec = envs.env_spec("Pendulum-v1")
    assert spec.observation_tensors == spec.observations


class Emptied(DictDoors):
    """``DictDoors`` whose mask after the last step is empty, as in PettingZoo."""

    def step(self, action):
        observation, *rest = super().step(action)
        if rest[1]:
            observation["action_mask"] = np.zeros(8, np.int8)
        return observation, *rest


@pytest.mark.parametrize("kind", [Doors, DictDoors, Emptied])
def test_the_check_takes_only_legal_actions(kind):
    class Strict(kind):  # type: ignore[valid-type,misc]
        def step(self, action):
            assert self._mask[int(action)], "an illegal action"
            return super().step(action)

    check_own_env(Strict, num_steps=200)
