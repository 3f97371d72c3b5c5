"""The multi-layer perceptron: towers of any outputs over any inputs."""

import torch

from tengen.nets import InferenceHead, MlpConfig
from tengen.tensors import Signature, TensorSpec

VECTOR = Signature(
    inputs={"observation": TensorSpec(shape=(4,))},
    outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
)


def test_policy_starts_uniform_and_value_unbounded():
    torch.manual_seed(0)
    net = MlpConfig().build(VECTOR)
    observations = torch.randn(7, 4)
    policy, value = InferenceHead(net)(observations)
    assert policy.shape == (7, 2)
    assert value.shape == (7,)
    assert (policy.softmax(1) - 0.5).abs().max() < 0.01
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1000.0)
    assert InferenceHead(net)(observations)[1].abs().max() > 1


def test_weights_have_the_names_that_models_have():
    names = set(MlpConfig(num_layers=1).build(VECTOR).state_dict())
    assert names == {
        f"{tower}.{layer}.{part}"
        for tower in ("policy", "baseline")
        for layer in (0, 2)
        for part in ("weight", "bias")
    }


def test_inputs_of_any_shape_and_dtype_are_one_vector():
    torch.manual_seed(0)
    wanted = Signature(
        inputs={
            "observation/image": TensorSpec(dtype="uint8", shape=(2, 3)),
            "observation/door": TensorSpec(dtype="bool", shape=(2,)),
            "last_action": TensorSpec(shape=(3,)),
            "last_reward": TensorSpec(),
        },
        outputs={
            "q": TensorSpec(shape=(3, 5)),
            "advantage": TensorSpec(shape=(3,)),
            "value": TensorSpec(),
        },
    )
    net = MlpConfig(num_units=8).build(wanted)
    image = torch.randint(0, 256, (6, 2, 3), dtype=torch.uint8)
    inputs = {
        "last_reward": torch.randn(6),  # in another order than the signature's
        "last_action": torch.randn(6, 3),
        "observation/image": image,
        "observation/door": torch.rand(6, 2) < 0.5,
    }
    answers, state = net.answer(inputs, {})
    assert state == {}
    assert {name: tuple(x.shape) for name, x in answers.items()} == {
        "q": (6, 3, 5),
        "advantage": (6, 3),
        "value": (6,),
    }
    rows = torch.cat(
        [
            image.flatten(1) / 255,
            inputs["observation/door"].float(),
            inputs["last_action"],
            inputs["last_reward"][:, None],
        ],
        dim=1,
    )
    wanted_rows = net.get_submodule("advantage")(rows)
    torch.testing.assert_close(answers["advantage"], wanted_rows)
    unrolled, state = net.unroll(
        {name: x.reshape(2, 3, *x.shape[1:]) for name, x in inputs.items()},
        {},
        torch.zeros(2, 3, dtype=torch.bool),
    )
    assert state == {}
    for name, x in answers.items():
        torch.testing.assert_close(unrolled[name].flatten(0, 1), x)
