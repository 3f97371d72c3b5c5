"""Networks for environments with and without memory: one step, and many at once."""

from __future__ import annotations

import copy
import dataclasses
import functools

import pytest
import torch

from tengen.errors import UsageError
from tengen.nets import InferenceHead, MlpConfig, Net, NetConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.modules.torso_net import Lstm
from tengen.nets.nature import NatureConfig
from tengen.tensors import BoardSpec, Signature, TensorSpec
from tests.refusals import refused

T, B, A = 9, 3, 4

WANTED = Signature(
    inputs={
        "observation/screen": TensorSpec(dtype="uint8", shape=(12, 11, 3)),
        "observation/map": TensorSpec(dtype="bool", shape=(2, 6, 7)),
        "observation/speed": TensorSpec(shape=(5,)),
        "last_action": TensorSpec(shape=(A,)),
        "last_reward": TensorSpec(),
    },
    outputs={"policy": TensorSpec(shape=(A,)), "value": TensorSpec()},
)
SMALL = {"kernels": (3,), "strides": (1,), "channels": (8,), "num_units": 16}
CONFIGS: list[NetConfig] = [
    MlpConfig(num_layers=2, num_units=16, lstm_units=8),
    NatureConfig(**SMALL, lstm_units=8),
    NatureConfig(**SMALL),
    NatureConfig(**SMALL, layer_norm=True),
    ImpalaConfig(channels=(4, 8), num_units=16, lstm_units=8),
    ImpalaConfig(channels=(4, 8), num_units=16),
    MlpConfig(num_layers=2, num_units=16),
    MlpConfig(num_layers=2, num_units=16, layer_norm=True),
]


def kind_of(config):
    return f"{config.kind}-{getattr(config, 'lstm_units', 0)}"


def made(config):
    """A network whose answers depend on everything by far more than rounding."""
    torch.manual_seed(2)
    net = config.build(WANTED)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if parameter.shape[:1] in ((A,), (1,)) and not name.startswith("torso"):
                parameter.add_(torch.randn(parameter.shape))
    return net


def steps():
    generator = torch.Generator().manual_seed(3)
    whole = {
        name: torch.randint(0, 256, (T, B, *spec.shape), generator=generator)
        for name, spec in WANTED.inputs.items()
    }
    return {
        name: tensor.to(getattr(torch, WANTED.inputs[name].dtype))
        if WANTED.inputs[name].dtype == "uint8"
        else (tensor > 127)
        if WANTED.inputs[name].dtype == "bool"
        else tensor.float() / 128 - 1
        for name, tensor in whole.items()
    }


def random_state(net):
    generator = torch.Generator().manual_seed(4)
    return {
        name: torch.randn(B, *spec.shape, generator=generator)
        for name, spec in net.signature.state.items()
    }


FIRSTS = {
    "never": [],
    "at once": [(0, 0), (0, 2)],
    "within": [(3, 1), (4, 1), (7, 0), (7, 2)],
    "last": [(T - 1, 1)],
    "always": [(t, b) for t in range(T) for b in range(B)],
}


@pytest.mark.parametrize("first", FIRSTS)
@pytest.mark.parametrize("config", CONFIGS, ids=kind_of)
def test_an_unroll_is_so_many_answers(config, first):
    net, inputs = made(config), steps()
    # The sums of a normalization depend on the size of the batch.
    digits = 1 if getattr(config, "layer_norm", False) else 0
    near = {"rtol": 10 ** (digits - 5), "atol": 10 ** (digits - 6)}
    is_first = torch.zeros(T, B, dtype=torch.bool)
    for step, row in FIRSTS[first]:
        is_first[step, row] = True
    # One training step, which gives it a mean picture.
    net.unroll(inputs, random_state(net), is_first)
    net.eval()
    unrolled, after = net.unroll(inputs, random_state(net), is_first)
    state = random_state(net)
    for step in range(T):
        for tensor in state.values():
            tensor[is_first[step]] = 0.0
        rows = {name: tensor[step] for name, tensor in inputs.items()}
        answers, state = net.answer(rows, state)
        assert list(answers) == ["policy", "value"]
        state = {name: tensor.detach().clone() for name, tensor in state.items()}
        for name, answer in answers.items():
            assert answer.dtype == torch.float32
            assert answer.shape == (B, *WANTED.outputs[name].shape)
            found = unrolled[name][step]
            torch.testing.assert_close(found, answer, **near)
    assert list(after) == list(state) == list(net.signature.state)
    for name, tensor in after.items():
        torch.testing.assert_close(tensor, state[name], **near)


@pytest.mark.parametrize("first", FIRSTS)
def test_gradients_of_an_unroll_are_those_of_so_many_answers(first):
    net, inputs = made(CONFIGS[0]), steps()
    is_first = torch.zeros(T, B, dtype=torch.bool)
    for step, row in FIRSTS[first]:
        is_first[step, row] = True
    weights = torch.randn(T, B, generator=torch.Generator().manual_seed(5))
    found = []
    for unroll in (net.unroll, functools.partial(Net.unroll, net)):
        state = {n: t.requires_grad_() for n, t in random_state(net).items()}
        answers, after = unroll(inputs, state, is_first)
        loss = (answers["value"] * weights).sum() + answers["policy"].square().sum()
        # The last cell and the last hidden state count by themselves too.
        loss = loss + sum(tensor.pow(3).sum() for tensor in after.values())
        found.append(torch.autograd.grad(loss, [*net.parameters(), *state.values()]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", CONFIGS, ids=kind_of)
def test_every_input_counts_and_every_weight_learns(config):
    net, inputs = made(config), steps()
    is_first = torch.zeros(T, B, dtype=torch.bool)
    is_first[4, 1] = True
    state = random_state(net)
    answers, _ = net.unroll(inputs, state, is_first)
    for name, tensor in inputs.items():
        other = {**inputs, name: tensor.flip(1)}
        changed = net.unroll(other, state, is_first)[0]["value"]
        assert not torch.allclose(changed, answers["value"], atol=1e-6), name
    sum(answer.square().sum() for answer in answers.values()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_nothing_of_before_an_episode_gets_into_it():
    """Not even what is no number."""
    net, inputs = made(CONFIGS[0]), steps()
    state = random_state(net)
    spoilt = {name: tensor.clone() for name, tensor in state.items()}
    for tensor in spoilt.values():
        tensor[1] = torch.nan
    is_first = torch.zeros(T, B, dtype=torch.bool)
    is_first[0, 1] = True
    wanted, _ = net.unroll(inputs, state, is_first)
    found, after = net.unroll(inputs, spoilt, is_first)
    assert torch.equal(found["policy"], wanted["policy"])
    assert all(tensor.isfinite().all() for tensor in after.values())


def test_the_state_is_that_of_the_signature_in_its_order():
    config = CONFIGS[1]
    net = made(config)
    assert net.wanted is WANTED
    assert net.signature == config.signature(WANTED)
    assert net.signature.state == {
        "lstm/hidden": TensorSpec(shape=(8,)),
        "lstm/cell": TensorSpec(shape=(8,)),
    }
    # What a model says of itself can be asked for again.
    assert config.signature(net.signature) == net.signature
    head = InferenceHead(net)
    rows = [tensor[0] for tensor in steps().values()]
    state = random_state(net)
    found = head(*rows, state["lstm/hidden"], state["lstm/cell"])
    answers, after = net.answer(dict(zip(WANTED.inputs, rows, strict=True)), state)
    wanted = [*answers.values(), after["lstm/hidden"], after["lstm/cell"]]
    assert len(found) == 4
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    some = InferenceHead(net, ["value"])(*rows, *state.values())
    assert [tuple(tensor.shape) for tensor in some] == [(B,), (B, 8), (B, 8)]
    with refused(UsageError, "output (q)"):
        InferenceHead(net, ["q"])


@pytest.mark.parametrize("config", CONFIGS, ids=kind_of)
def test_the_first_policy_is_nearly_uniform(config):
    torch.manual_seed(0)
    net = config.build(WANTED)
    rows = {name: tensor[0] for name, tensor in steps().items()}
    state = {name: t * 0 for name, t in random_state(net).items()}
    answers, _ = net.answer(rows, state)
    assert (answers["policy"].softmax(1) - 1 / A).abs().max() < 0.05
    assert answers["value"].abs().max() < 0.2


@pytest.mark.parametrize(
    "config", [NatureConfig(), ImpalaConfig(), NatureConfig(lstm_units=4)], ids=kind_of
)
def test_atari_has_the_shapes_of_the_papers(config):
    wanted = Signature(
        inputs={"observation": TensorSpec(dtype="uint8", shape=(4, 84, 84))},
        outputs={"q": TensorSpec(shape=(18,))},
    )
    net = config.build(wanted)
    dense = net.get_parameter("torso.dense.weight")
    size = {"nature": (512, 64 * 7 * 7), "impala": (256, 32 * 11 * 11)}[config.kind]
    assert tuple(dense.shape) == size
    images = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    state = {n: torch.zeros(2, *s.shape) for n, s in net.signature.state.items()}
    assert net.answer({"observation": images}, state)[0]["q"].shape == (2, 18)


def test_channels_may_come_first_or_last():
    last = Signature(
        inputs={"observation": TensorSpec(dtype="uint8", shape=(10, 10, 4))},
        outputs={"q": TensorSpec(shape=(A,))},
    )
    first = dataclasses.replace(
        last, inputs={"observation": TensorSpec(dtype="uint8", shape=(4, 10, 10))}
    )
    for config in (NatureConfig(**SMALL), ImpalaConfig()):
        answers = []
        images = torch.randint(0, 256, (3, 10, 10, 4), dtype=torch.uint8)
        for wanted, seen in ((last, images), (first, images.permute(0, 3, 1, 2))):
            torch.manual_seed(1)
            net = config.build(wanted).eval()
            answers.append(net.answer({"observation": seen}, {})[0]["q"])
        torch.testing.assert_close(*answers)
        # Of its own length, and not of a permuted image's.
        floats = dataclasses.replace(
            last, inputs={"observation": TensorSpec(shape=(10, 10, 4))}
        )
        torch.manual_seed(1)
        scaled = config.build(floats).answer({"observation": images / 255}, {})[0]["q"]
        torch.testing.assert_close(scaled, answers[0])


def test_what_does_not_fit_is_one_line():
    vector = Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs={"policy": TensorSpec(shape=(A,))},
    )
    board = BoardSpec(num_planes=3, height=9, width=9, num_actions=81).signature
    for config in (NatureConfig(), ImpalaConfig()):
        with refused(UsageError, "observation (4,)"):
            config.build(vector)
    for config in (NatureConfig(), ImpalaConfig(), MlpConfig()):
        with refused(UsageError, "net.kind"):
            config.signature(board)
    small = Signature(
        inputs={"observation": TensorSpec(dtype="bool", shape=(10, 10, 4))},
        outputs={"policy": TensorSpec(shape=(A,))},
    )
    with refused(UsageError, "(10 x 10)"):
        NatureConfig().build(small)
    with refused(UsageError, "kernels ((8,))"):
        NatureConfig(channels=(8, 8), kernels=(8,), strides=(1, 1))
    with refused(UsageError, "net (impala)"):
        made(CONFIGS[4]).grown(CONFIGS[4])


def test_copies_share_the_weights_of_the_lstm():
    """As the learner makes them for the parts of a batch."""
    net = made(CONFIGS[0])
    replica = copy.deepcopy(net, {id(p): p for p in net.parameters()})
    assert {id(p) for p in replica.parameters()} == {id(p) for p in net.parameters()}
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
    inputs, is_first = steps(), torch.zeros(T, B, dtype=torch.bool)
    wanted, _ = net.unroll(inputs, random_state(net), is_first)
    found, _ = replica.unroll(inputs, random_state(net), is_first)
    assert torch.equal(found["policy"], wanted["policy"])
    loss = found["policy"].square().sum()
    grads = torch.autograd.grad(loss, list(net.parameters()), materialize_grads=True)
    assert sum(float(grad.abs().sum()) for grad in grads) > 0


@pytest.mark.parametrize(("bias", "share"), [(0.0, 0.5), (1.0, 0.731)])
def test_the_forget_bias_is_what_a_cell_keeps_at_first(bias, share):
    torch.manual_seed(0)
    lstm = Lstm(3, 500, bias)
    state = {
        "lstm/hidden": torch.zeros(1, 500),
        "lstm/cell": torch.full((1, 500), 100.0),
    }
    # Nothing to see: the biases alone decide, and a cell adds less than 1 by itself.
    _, after = lstm.step(torch.zeros(1, 3), state)
    kept = after["lstm/cell"].mean().item() / 100.0
    assert kept == pytest.approx(share, abs=0.01)
