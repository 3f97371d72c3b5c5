import numpy as np

from tengen.actors import clip_actions, encode_actions, encoded_length
from tengen.envs import ActionSpec


def test_one_choice_is_one_hot():
    spec = ActionSpec(num_choices=(4,))
    assert encoded_length(spec) == 4
    encoded = encode_actions(spec, np.array([2, 0, 3]))
    assert encoded.dtype == np.float32
    assert encoded.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]


def test_several_choices_lie_one_after_another():
    spec = ActionSpec(shape=(3,), num_choices=(2, 1, 3))
    assert encoded_length(spec) == 6
    encoded = encode_actions(spec, np.array([[1, 0, 2], [0, 0, 0]]))
    assert encoded.tolist() == [[0, 1, 1, 0, 0, 1], [1, 0, 1, 1, 0, 0]]


def test_numbers_are_told_within_their_bounds():
    spec = ActionSpec(shape=(2,), low=(-1.0, -np.inf), high=(1.0, np.inf))
    assert encoded_length(spec) == 2
    actions = np.array([[3.0, -1e9], [-0.5, 7.0]], np.float32)
    within = [[1.0, -1e9], [-0.5, 7.0]]
    assert clip_actions(spec, actions).tolist() == within
    assert clip_actions(spec, actions).dtype == np.float32
    assert encode_actions(spec, actions).tolist() == within
    assert actions[0, 0] == 3.0


def test_numbers_are_told_on_the_scale_of_their_bounds():
    spec = ActionSpec(shape=(2,), low=(0.0, -np.inf), high=(1000.0, np.inf))
    actions = np.array([[1250.0, 3.0], [250.0, -7.0]], np.float32)
    told = encode_actions(spec, actions, is_scaled=True)
    assert told.tolist() == [[1.0, 3.0], [-0.5, -7.0]]


def test_choices_are_done_as_they_are():
    actions = np.array([2, 0])
    assert clip_actions(ActionSpec(num_choices=(3,)), actions) is actions
