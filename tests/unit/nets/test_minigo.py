"""The benchmark's network against its own words in numpy."""

import dataclasses

import numpy as np
import onnx
import openvino
import pytest
import torch

from tengen.errors import UsageError
from tengen.models import ModelExporter
from tengen.nets import InferenceHead
from tengen.nets.minigo import MinigoConfig
from tengen.tensors import BoardSpec
from tests.refusals import refused

BOARD = BoardSpec(
    num_planes=14, height=5, width=5, num_actions=26, policy_layout="cells_and_pass"
)
SMALL = MinigoConfig(
    num_blocks=2, num_channels=6, fc_width=7, policy_channels=2, value_channels=3
)


def trained(config=SMALL):
    """A network whose every tensor is its own, as after training."""
    torch.manual_seed(0)
    net = config.build(BOARD.signature)
    for name, tensor in net.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0)
        elif tensor.ndim == 1:
            tensor.uniform_(-0.5, 0.5).add_("norm" in name and name.endswith("weight"))
        else:
            tensor.normal_(0.0, 2.0 * tensor[0].numel() ** -0.5)
    return net.eval()


def positions(num_rows):
    """Random planes; every other row Black is to move."""
    planes = np.random.default_rng(0).integers(0, 2, (num_rows, 14, 5, 5))
    planes[:, 0] = 1
    planes[:, 9] = (np.arange(num_rows) % 2)[:, None, None]
    return planes.astype(np.float32)


def convolved(x, kernel):
    """By definition, one cell of the kernel after the other; zeros beyond the edge."""
    side = kernel.shape[2]
    edge = side // 2
    wide = np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    total = np.zeros((len(x), len(kernel), *x.shape[2:]))
    for row in range(side):
        for column in range(side):
            part = wide[:, :, row : row + x.shape[2], column : column + x.shape[3]]
            total += np.einsum("bchw,oc->bohw", part, kernel[:, :, row, column])
    return total


def normed(x, weights, name):
    mean, var = (weights[f"{name}.running_{part}"] for part in ("mean", "var"))
    y = (x - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    scale = weights.get(f"{name}.weight", np.ones(len(mean)))
    shift = weights.get(f"{name}.bias", np.zeros(len(mean)))
    return np.asarray(y * scale[:, None, None] + shift[:, None, None])


def relu(x):
    return np.maximum(x, 0.0)


def reference(net, planes):
    """Returns policy logits and the value of the side to move, in float64."""
    w = {name: x.double().numpy() for name, x in net.state_dict().items()}
    x = relu(normed(convolved(planes[:, 1:], w["stem.weight"]), w, "stem_norm"))
    for block in (f"blocks.{i}" for i in range(net.config.num_blocks)):
        y = normed(convolved(x, w[f"{block}.conv1.weight"]), w, f"{block}.norm1")
        y = convolved(relu(y), w[f"{block}.conv2.weight"])
        x = relu(x + normed(y, w, f"{block}.norm2"))

    def head(name):
        y = convolved(x, w[f"{name}.conv.weight"])
        return relu(normed(y, w, f"{name}.norm")).reshape(len(x), -1)

    def dense(y, name):
        return y @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    policy = dense(head("policy_head"), "policy_out")
    hidden = relu(dense(head("value_head"), "value_hidden"))
    black = np.tanh(dense(hidden, "value_out"))[:, 0]
    return policy, np.where(planes[:, 9, 0, 0] > 0, black, -black)


def test_it_computes_what_the_benchmark_computes():
    net, planes = trained(), positions(8)
    policy, value = reference(net, planes)
    with torch.inference_mode():
        found = InferenceHead(net)(torch.from_numpy(planes))
    assert policy.std() > 0.1
    assert value.std() > 0.1
    np.testing.assert_allclose(found[0].numpy(), policy, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), value, rtol=1e-4, atol=1e-5)


def test_draws_are_impossible_and_learning_stays_finite():
    net = trained()
    with torch.no_grad():
        net.value_out.bias.fill_(40.0)
    _, outcome = net(torch.from_numpy(positions(4)))
    assert (outcome.softmax(1)[:, 1] == 0).all()
    loss = torch.nn.functional.cross_entropy(outcome, torch.tensor([0, 1, 2, 0]))
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


def test_black_and_white_are_the_two_sides_of_one_value():
    net = trained()
    with torch.no_grad():
        # The trunk does not see who is to move, so that the value alone turns.
        net.stem.weight[:, 8] = 0.0
    white = positions(6)
    white[:, 9] = 0
    black = white.copy()
    black[:, 9] = 1
    with torch.inference_mode():
        of_white, of_black = (
            InferenceHead(net)(torch.from_numpy(x)) for x in (white, black)
        )
    torch.testing.assert_close(of_white[0], of_black[0])
    torch.testing.assert_close(of_white[1], -of_black[1])
    assert of_black[1].abs().min() > 1e-4


def test_training_moves_statistics_as_the_benchmark():
    net = trained().train()
    before = net.stem_norm.running_mean.clone()
    planes = torch.from_numpy(positions(8))
    net(planes)
    kernel = net.stem.weight.detach()
    mean = torch.nn.functional.conv2d(planes[:, 1:], kernel, padding=1).mean((0, 2, 3))
    torch.testing.assert_close(
        net.stem_norm.running_mean, 0.95 * before + 0.05 * mean, rtol=1e-4, atol=1e-5
    )
    assert not torch.equal(
        net.policy_head.norm.running_mean, trained().policy_head.norm.running_mean
    )


def test_first_weights_are_glorots_and_biases_zero():
    torch.manual_seed(0)
    net = MinigoConfig(num_blocks=1).build(BOARD.signature)
    limits = {
        "stem.weight": (6 / (9 * 13 + 9 * 64)) ** 0.5,
        "blocks.0.conv2.weight": (6 / (18 * 64)) ** 0.5,
        "policy_head.conv.weight": (6 / (64 + 2)) ** 0.5,
        "policy_out.weight": (6 / (50 + 26)) ** 0.5,
        "value_hidden.weight": (6 / (25 + 64)) ** 0.5,
        "value_out.weight": (6 / (64 + 1)) ** 0.5,
    }
    weights = net.state_dict()
    for name, limit in limits.items():
        most = weights[name].abs().max().item()
        assert 0.9 * limit < most <= limit, name
    for name in ("policy_out", "value_hidden", "value_out"):
        assert (weights[f"{name}.bias"] == 0).all()


def test_the_benchmarks_number_of_weights():
    board = dataclasses.replace(BOARD, height=19, width=19, num_actions=362)
    net = MinigoConfig().build(board.signature)
    trunk = 9 * 13 * 64 + 12 * 9 * 64 * 64 + 13 * 2 * 64
    heads = 64 * 3 + (722 * 362 + 362) + (361 * 64 + 64) + (64 + 1)
    assert sum(p.numel() for p in net.parameters()) == trunk + heads


def test_bfloat16_is_near():
    planes = torch.from_numpy(positions(8))
    net = trained()
    with torch.inference_mode():
        wanted = InferenceHead(net)(planes)
        net.fix_dtype(torch.bfloat16)
        assert net.stem(planes[:, 1:].bfloat16()).dtype == torch.bfloat16
        assert net.compute_dtype == torch.bfloat16
        found = InferenceHead(net)(planes)
    assert net.blocks[0].conv1.weight.dtype == torch.bfloat16
    assert found[0].dtype == torch.float32
    assert not torch.equal(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1], rtol=0.1, atol=0.05)


def test_norms_are_folded_into_the_convolutions_of_the_trunk():
    planes = torch.from_numpy(positions(8))
    net = trained()
    with torch.inference_mode():
        wanted = InferenceHead(net)(planes)
        net.fold_norms()
        found = InferenceHead(net)(planes)
        for answer, exact in zip(found, wanted, strict=True):
            torch.testing.assert_close(answer, exact, rtol=1e-5, atol=1e-5)
        # What it would otherwise go through.
        for module in (net.stem, net.stem_norm):
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.fill_(torch.nan)
        assert torch.equal(InferenceHead(net)(planes)[0], found[0])
        net.fix_dtype(torch.bfloat16)
        near = InferenceHead(net)(planes)
    assert net.folded_stem.weight.dtype == torch.bfloat16
    assert not torch.equal(near[0], wanted[0])
    torch.testing.assert_close(near[1], wanted[1], rtol=0.1, atol=0.05)


def test_openvino_computes_it_at_any_number_of_rows():
    net = trained()
    weights = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    data = ModelExporter().export(net.signature, SMALL, weights)
    graph = onnx.load_model_from_string(data).graph
    sides = graph.input[0].type.tensor_type.shape.dim
    assert [side.dim_value for side in sides] == [0, 14, 5, 5]
    core = openvino.Core()
    precise = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    model = core.compile_model(core.read_model(data), "CPU", precise)
    for num_rows in (1, 8):
        planes = positions(num_rows)
        found = model({"planes": planes})
        with torch.inference_mode():
            wanted = InferenceHead(net)(torch.from_numpy(planes))
        for name, answer in zip(("policy", "value"), wanted, strict=True):
            np.testing.assert_allclose(found[name], answer, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"num_planes": 20}, "20 with policy_layout cells_and_pass"),
        ({"policy_layout": "cells", "num_actions": 25}, "14 with policy_layout"),
    ],
)
def test_other_planes_are_refused(change, told):
    board = dataclasses.replace(BOARD, **change)
    with refused(UsageError, "net.kind (minigo)", told):
        MinigoConfig().signature(board.signature)
