"""Gymnasium's spaces as named tensors, choices and numbers."""

import numpy as np
import pytest

from tengen.envs import ActionSpec
from tengen.envs.spaces import Actions, Observations
from tengen.errors import RunError, UsageError
from tengen.tensors import TensorSpec
from tests.refusals import refused

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces


def box(dtype, shape=(2,)):
    return spaces.Box(0, 1, shape, dtype)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", "bool"),
        ("uint8", "uint8"),
        ("int8", "int8"),
        ("int16", "int16"),
        ("uint16", "int32"),
        ("int32", "int32"),
        ("uint32", "int64"),
        ("int64", "int64"),
        ("uint64", "float32"),
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float32"),
    ],
)
def test_types_of_arrays(dtype, expected):
    observations = Observations(box(dtype), "task")
    assert observations.specs == {"observation": TensorSpec(dtype=expected, shape=(2,))}
    arrays = observations.zeros(3)
    assert arrays["observation"].shape == (3, 2)
    observations.write(np.array([1, 0], dtype), arrays, 1)
    assert arrays["observation"].tolist() == [[0, 0], [1, 0], [0, 0]]
    assert arrays["observation"].dtype == expected


NESTED = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (1, 2, 2), np.uint8),
        "number": spaces.Box(-5, 5, (), np.float64),
        "card": spaces.Discrete(3, start=-1),
        "inner": spaces.Dict(
            {
                "pair": spaces.Tuple(
                    (spaces.MultiDiscrete([[3, 4]]), spaces.MultiBinary(3))
                )
            }
        ),
    }
)


@pytest.mark.parametrize(
    ("space", "scale"),
    [
        (spaces.Box(0, 255, (8, 8, 3), np.float32), 255.0),
        (spaces.Box(0, 255, (8, 8, 3), np.int32), 255.0),
        (spaces.Box(-4, 2, (8, 8, 3), np.float32), 4.0),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), 1.0),
        (spaces.Box(0, 1, (8, 8, 3), np.float32), 1.0),
        (spaces.Box(0, np.inf, (8, 8, 3), np.float32), 1.0),
        (spaces.Box(-255, np.inf, (8, 8, 3), np.float32), 255.0),
        (spaces.Box(0, 255, (8,), np.float32), 1.0),
        (spaces.Box(0, 1e10, (8, 8, 3), np.float32), 1.0),
        (spaces.Box(0, np.append([1e9], 191 * [255]).reshape(8, 8, 3)), 255.0),
    ],
)
def test_pixels_that_are_no_bytes_have_a_scale(space, scale):
    scales = Observations(space, "task").pixel_scales
    assert scales.get("observation", 1.0) == scale


@pytest.mark.parametrize(
    ("most", "is_bound"),
    [(31.0, True), (1e8, True), (1e9, False), (1e10, False), (1e30, False)],
)
def test_one_limit_says_which_bounds_mean_none(most, is_bound):
    box = spaces.Box(-most, most, (2,), np.float64)
    assert Observations(box, "task").has_large_vectors == is_bound
    image = Observations(spaces.Box(-most, most, (8, 8, 3), np.float64), "task")
    assert image.pixel_scales == ({"observation": most} if is_bound else {})
    assert Actions(box, "task").spec.is_bounded == (is_bound, is_bound)


def test_each_image_has_a_scale_of_its_own():
    space = spaces.Dict(
        {
            "depth": spaces.Box(0, 10_000, (8, 8, 1), np.float32),
            "rgb": spaces.Box(0, 1, (8, 8, 3), np.float32),
            "speed": spaces.Box(0, 300, (2,), np.float32),
        }
    )
    observations = Observations(space, "task")
    assert observations.pixel_scales == {"observation/depth": 10_000.0}
    assert observations.has_large_vectors


@pytest.mark.parametrize(
    ("space", "is_large"),
    [
        (spaces.Box(-4800, 4800, (4,), np.float32), True),
        (spaces.Box(np.array([-1, 0]), np.array([1, 500]), dtype=np.int32), True),
        (spaces.MultiDiscrete([3, 200]), True),
        (spaces.Box(-4.8, 4.8, (4,), np.float32), False),
        (spaces.Box(-np.inf, np.inf, (4,), np.float32), False),
        # One number with a large bound, and one without any or with the greatest.
        (spaces.Box(np.float32([0, -np.inf]), np.float32([500, np.inf])), True),
        (spaces.Box(np.float32([-9, -3e38]), np.float32([9, 3e38])), False),
        (spaces.Box(np.float32([-500]), np.float32([np.inf])), True),
        (spaces.Box(0, 255, (4,), np.uint8), False),
        (spaces.Box(0, 255, (8, 8, 3), np.float32), False),
        (spaces.Discrete(500), False),
    ],
)
def test_vectors_with_large_bounds_are_known(space, is_large):
    assert Observations(space, "task").has_large_vectors == is_large


def test_a_nested_observation_is_arrays_by_name():
    observations = Observations(NESTED, "task")
    assert observations.specs == {
        "observation/image": TensorSpec(dtype="uint8", shape=(1, 2, 2)),
        "observation/number": TensorSpec(),
        "observation/card": TensorSpec(shape=(3,)),
        "observation/inner/pair/0": TensorSpec(shape=(1, 2)),
        "observation/inner/pair/1": TensorSpec(dtype="bool", shape=(3,)),
    }
    arrays = observations.zeros(2)
    value = {
        "image": np.array([[[0, 255], [7, 8]]], np.uint8),
        "number": 2.5,
        "card": 1,
        "inner": {"pair": (np.array([[2, 3]]), np.array([1, 0, 1], np.int8))},
    }
    observations.write(value, arrays, 1)
    assert {name: array[1].tolist() for name, array in arrays.items()} == {
        "observation/image": [[[0, 255], [7, 8]]],
        "observation/number": 2.5,
        "observation/card": [0, 0, 1],
        "observation/inner/pair/0": [[2, 3]],
        "observation/inner/pair/1": [1, 0, 1],
    }
    assert not any(array[0].any() for array in arrays.values())


def test_whatever_a_space_draws_is_taken():
    observations = Observations(NESTED, "task")
    NESTED.seed(0)
    arrays = observations.zeros(1)
    for _ in range(50):
        value = NESTED.sample()
        observations.write(value, arrays, 0)
        observations.check_finite(arrays)
        card = arrays["observation/card"][0]
        assert card.sum() == 1
        assert card.argmax() - 1 == value["card"]
        assert arrays["observation/number"][0] == np.float32(value["number"])


def test_a_batch_is_written_as_its_rows_are():
    observations = Observations(NESTED, "task")
    NESTED.seed(1)
    values = [NESTED.sample() for _ in range(4)]
    batch = gymnasium.vector.utils.concatenate(
        NESTED, values, gymnasium.vector.utils.create_empty_array(NESTED, 4)
    )
    whole, single = observations.zeros(4), observations.zeros(4)
    observations.write(batch, whole)
    for i, value in enumerate(values):
        observations.write(value, single, i)
    for name in whole:
        assert np.array_equal(whole[name], single[name])


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (spaces.Text(5), ["observation (Text(", "of task", "Box"]),
        (
            spaces.Dict({"a": spaces.Tuple((spaces.Sequence(box(int)),))}),
            ["observation/a/0 (Sequence("],
        ),
        (box(np.float32, (3, 0)), ["observation (Box", "of task"]),
        (spaces.Dict({}), ["observation space (Dict()) of task"]),
        (
            spaces.Dict({"a/b": box(int), "a": spaces.Dict({"b": box(int)})}),
            ["observation space (Dict("],
        ),
    ],
)
def test_observation_spaces_that_are_refused(space, named):
    with refused(UsageError, *named) as caught:
        Observations(space, "task")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("space", "value", "named"),
    [
        (box(float), [1.0], ["((1,)) of task (copy 0)", "(2,)"]),
        (box(float), 1.0, ["(()) of task (copy 0)", "(2,)"]),
        (spaces.Discrete(3, start=4), 3, ["(3)", "4 to 6"]),
        (spaces.Discrete(3, start=4), [5], ["((1, 3))"]),
        (box(np.uint8), [0.5, 1.0], ["(float64)", "(uint8)"]),
        (box(np.uint8), np.array([256, 0]), ["(int64)"]),
        (box(np.int8), [np.nan, 0.0], ["(float64)"]),
        (box(float), None, ["(None)"]),
        (
            spaces.Dict({"a": box(float), "b": box(float)}),
            {"a": [0, 0]},
            ["/b (missing)", "dict"],
        ),
        (spaces.Tuple((box(float), box(float))), 3, ["/0 (missing)", "int"]),
    ],
)
def test_observations_that_are_refused(space, value, named):
    observations = Observations(space, "task")
    with refused(RunError, "observation", *named):
        observations.write(value, observations.zeros(1), 0)


def test_numbers_of_another_type_that_fit_are_taken():
    observations = Observations(box(np.uint8), "task")
    arrays = observations.zeros(1)
    observations.write([255, 3], arrays, 0)
    assert arrays["observation"].tolist() == [[255, 3]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(value):
    space = spaces.Dict({"a": box(np.float64), "b": box(np.float64)})
    observations = Observations(space, "task")
    arrays = observations.zeros(3)
    observations.check_finite(arrays)
    observations.write({"a": [0, 0], "b": [0, value]}, arrays, 2)
    with pytest.raises(RunError) as caught:
        observations.check_finite(arrays)
    assert str(caught.value) == (
        f"observation/b ({value}) of task (copy 2) must be finite; "
        f"correct the environment"
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e39, -1e300, 2 * 10**38 * 2.0])
def test_a_number_that_float32_cannot_hold_is_named_as_it_was(value):
    observations = Observations(box(np.float64), "task")
    with refused(
        RunError, f"observation ({value}) of task (copy 2) must be at most 3.4e+38; "
    ):
        observations.write([0, value], observations.zeros(3), 2)


@pytest.mark.parametrize(
    ("space", "rule"),
    [
        (spaces.Discrete(2**40), "1,048,576 choices"),
        (spaces.MultiDiscrete([2, 2**40]), "1,048,576 choices"),
        (spaces.MultiBinary(2**40), "1,048,576 choices"),
    ],
)
def test_actions_of_too_many_choices_are_refused(space, rule):
    with refused(
        UsageError,
        f"action space ({type(space).__name__}(",
        f") of task must have at most {rule}; ",
    ):
        Actions(space, "task")


@pytest.mark.parametrize(
    ("space", "rule"),
    [
        (spaces.Discrete(2**40), "65,536 values"),
        (spaces.MultiBinary(2**40), "67,108,864 numbers"),
    ],
)
def test_observations_that_are_too_large_are_refused(space, rule):
    with pytest.raises(UsageError) as caught:
        Observations(space, "task")
    assert str(caught.value) == (
        f"observation ({space}) of task must have at most {rule}; "
        f"wrap the environment, or choose another"
    )


@pytest.mark.parametrize(
    ("space", "spec", "given", "expected"),
    [
        (
            spaces.Discrete(3, start=5),
            ActionSpec(num_choices=(3,)),
            [0, 2],
            np.array([5, 7]),
        ),
        (
            spaces.MultiDiscrete([2, 3], start=[0, 10]),
            ActionSpec(shape=(2,), num_choices=(2, 3)),
            [[1, 0], [0, 2]],
            np.array([[1, 10], [0, 12]]),
        ),
        (
            spaces.MultiDiscrete([[2, 3], [4, 5]]),
            ActionSpec(shape=(4,), num_choices=(2, 3, 4, 5)),
            [[1, 2, 3, 4]],
            np.array([[[1, 2], [3, 4]]]),
        ),
        (
            spaces.MultiBinary((1, 3)),
            ActionSpec(shape=(3,), num_choices=(2, 2, 2)),
            [[1, 0, 1]],
            np.array([[[1, 0, 1]]], np.int8),
        ),
        (
            spaces.Box(-2.0, 3.0, (1, 2), np.float64),
            ActionSpec(shape=(2,), low=(-2.0, -2.0), high=(3.0, 3.0)),
            [[-2.0, 0.5]],
            np.array([[[-2.0, 0.5]]]),
        ),
        (
            spaces.Box(-np.inf, np.inf, (), np.float32),
            ActionSpec(shape=(1,), low=(-np.inf,), high=(np.inf,)),
            [[1e30]],
            np.array([1e30], np.float32),
        ),
    ],
)
def test_actions(space, spec, given, expected):
    actions = Actions(space, "task")
    assert actions.spec == spec
    batch = np.array(given, spec.tensor.dtype)
    native = actions.to_gymnasium(batch, len(given))
    assert native.dtype == space.dtype
    assert native.shape == (len(given), *space.shape)
    assert np.array_equal(native, expected)
    assert all(space.contains(np.asarray(row)) for row in native)


def test_an_action_out_of_bounds_by_rounding_is_clipped():
    third = 1 / 3  # float32 rounds it up
    space = spaces.Box(-third, third, (1,), np.float64)
    actions = Actions(space, "task")
    native = actions.to_gymnasium(np.array([[third]], np.float32), 1)
    assert native[0, 0] == third < float(np.float32(third))
    with refused(RunError, "action ([0.3334"):
        actions.to_gymnasium(np.array([[third + 1e-4]], np.float32), 1)


@pytest.mark.parametrize(
    ("space", "given", "named"),
    [
        (
            spaces.Discrete(3, start=5),
            np.array([0, 3]),
            ["action (3) of task (copy 1)", "0 to 2"],
        ),
        (spaces.Discrete(3), np.array([-1, 0]), ["action (-1) of task (copy 0)"]),
        (
            spaces.MultiDiscrete([2, 3]),
            np.array([[0, 0], [2, 0]]),
            ["action ([2, 0]) of task (copy 1)", "[0, 0] to [1, 2]"],
        ),
        (
            spaces.Box(-1, 1, (1,)),
            np.array([[0], [np.nan]], np.float32),
            ["action ([nan]) of task (copy 1)", "[-1.0] to [1.0]"],
        ),
        (spaces.Box(-1, 1, (1,)), np.ones((2, 1), int), ["actions (int64 (2, 1))"]),
        (spaces.Discrete(3), np.array([0]), ["actions (", "int64 (2,)"]),
        (spaces.Discrete(3), np.ones(2), ["actions (float64 (2,)) of task"]),
    ],
)
def test_actions_out_of_range_are_refused(space, given, named):
    with refused(RunError, *named):
        Actions(space, "task").to_gymnasium(given, 2)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))),
        spaces.Dict({"a": spaces.Discrete(2)}),
        spaces.Box(0, 255, (2,), np.uint8),
        spaces.Text(3),
        spaces.Box(-1, 1, (0,)),
    ],
)
def test_action_spaces_that_are_refused(space):
    with refused(UsageError, "action space (", "of task"):
        Actions(space, "task")


def test_a_scale_has_the_bounds_at_one():
    wide = ActionSpec(shape=(3,), low=(0.0, -5.0, -np.inf), high=(1000.0, -5.0, 1.0))
    assert wide.scale == ((500.0, -5.0, 0.0), (500.0, 1.0, 1.0))
    actions = np.array([[0.0, -5.0, 7.0], [1000.0, -5.0, -7.0]])
    units = wide.scale.to_unit(actions)
    assert units.tolist() == [[-1.0, 0.0, 7.0], [1.0, 0.0, -7.0]]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, ["shape (())"]),
        ({"shape": (2, 2), "num_choices": (2, 2)}, ["shape ((2, 2))"]),
        ({"shape": (0,)}, ["shape ((0,))"]),
        ({"shape": (2,), "num_choices": (2,)}, ["num_choices ((2,))"]),
        ({"num_choices": (0,)}, ["num_choices ((0,))"]),
        ({"num_choices": (2,), "low": (0.0,)}, ["low ((0.0,))"]),
        ({"shape": (1,), "low": (0.0,)}, ["high (())"]),
        (
            {"shape": (1,), "low": (1.0,), "high": (0.0,)},
            ["low ((1.0,))", "high ((0.0,))"],
        ),
    ],
)
def test_action_specs_are_checked(fields, named):
    with refused(UsageError, *named):
        ActionSpec(**fields)
