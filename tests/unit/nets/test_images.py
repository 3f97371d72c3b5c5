"""Networks for images: the unit of each image, and of what is observed beside them."""

import dataclasses

import pytest
import torch

from tengen.errors import UsageError
from tengen.nets.impala import ImpalaConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused

SMALL = NatureConfig(channels=(4,), kernels=(3,), strides=(1,), num_units=8)
KINDS = [SMALL, ImpalaConfig(channels=(4,), num_units=8)]
SPEED = TensorSpec(shape=(2,))
VALUE = {"value": TensorSpec()}


def images(*dtypes):
    return {
        f"image/{i}": TensorSpec(dtype=dtype, shape=(i + 1, 8, 8))
        for i, dtype in enumerate(dtypes)
    }


def drawn(wanted, num_rows=16):
    torch.manual_seed(1)
    return {
        name: torch.rand(num_rows, *spec.shape)
        if spec.dtype == "float32"
        else torch.randint(0, 255, (num_rows, *spec.shape), dtype=torch.uint8)
        for name, spec in wanted.inputs.items()
    }


def answer(config, wanted, inputs):
    torch.manual_seed(2)
    net = config.build(config.signature(wanted))
    with torch.no_grad():
        return net.eval().answer(inputs, {})[0]["value"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_image_does_not_darken_another(kind):
    """Depth to 10,000 beside colours to 1: each is divided by its own bound."""
    wanted = Signature(inputs=images("float32", "float32"), outputs=VALUE)
    inputs = drawn(wanted)
    expected = answer(kind, wanted, inputs)
    large = {**inputs, "image/1": 10_000.0 * inputs["image/1"]}
    scaled = dataclasses.replace(kind, pixel_scale=(1.0, 10_000.0))
    torch.testing.assert_close(answer(scaled, wanted, large), expected)
    assert expected.std() > 0


def test_one_scale_is_that_of_all_images_but_those_of_bytes():
    wanted = Signature(inputs=images("uint8", "float32", "float32"), outputs=VALUE)
    assert NatureConfig(pixel_scale=9.0).pixel_scales(wanted) == {
        "image/0": 255.0,
        "image/1": 9.0,
        "image/2": 9.0,
    }


@pytest.mark.parametrize("kind", [NatureConfig, ImpalaConfig])
def test_scales_are_as_many_as_images(kind):
    wanted = Signature(inputs=images("float32", "float32"), outputs=VALUE)
    config = kind(pixel_scale=(1.0, 2.0, 3.0))
    with refused(UsageError, "net.pixel_scale ((1.0, 2.0, 3.0))", " 2, one per image"):
        config.signature(wanted)
    with refused(UsageError, "pixel_scale (0.0)"):
        kind(pixel_scale=(1.0, 0.0))


@pytest.mark.parametrize("lstm_units", [0, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_speeds_beside_an_image_are_in_units(kind, lstm_units):
    """Speeds to 300 would drown what was seen of the image."""
    config = dataclasses.replace(kind, standardizes=True, lstm_units=lstm_units)
    wanted = config.signature(
        Signature(inputs={**images("uint8"), "speed": SPEED}, outputs=VALUE)
    )
    torch.manual_seed(2)
    net = config.build(wanted).train()
    inputs = drawn(wanted, 64)
    state = {n: torch.from_numpy(s.zeros(64)) for n, s in wanted.state.items()}
    inputs["speed"] *= 300.0
    speeds = net.get_submodule("torso")(inputs)[:, -2:].detach()
    assert speeds.std(0).tolist() == pytest.approx([1.0, 1.0], abs=0.05)
    assert speeds.mean(0).tolist() == pytest.approx([0.0, 0.0], abs=0.05)
    net.eval()
    answers = net.answer(inputs, state)[0]["value"]
    # Weights of before, which have no statistics, lack no weight.
    other = dataclasses.replace(config, standardizes=False).build(wanted)
    names = {name for name, _ in other.named_parameters()}
    assert names == {name for name, _ in net.named_parameters()}
    assert torch.isfinite(answers).all()
    statistics = {name for name, _ in net.named_buffers() if "standard." in name}
    assert len(statistics) == 3
