"""Networks for environments in bfloat16: near what they are in float32, and marked."""

import pytest
import torch

from tengen.nets import MlpConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec

OUTPUTS = {"policy": TensorSpec(shape=(5,)), "value": TensorSpec()}
SCREEN = {"observation": TensorSpec(dtype="uint8", shape=(2, 40, 36))}
LAST = {"observation": TensorSpec(dtype="uint8", shape=(40, 36, 2))}
VECTOR = {"observation": TensorSpec(shape=(7,))}


def answers(net, rows):
    outputs, _ = net.answer({"observation": rows}, {})
    return torch.cat([outputs["policy"], outputs["value"][:, None]], 1)


@pytest.mark.parametrize(
    ("config", "inputs"),
    [
        (NatureConfig(), SCREEN),
        (NatureConfig(), LAST),
        (ImpalaConfig(), SCREEN),
        (MlpConfig(num_units=128, num_layers=3), VECTOR),
        (MlpConfig(num_units=128, num_layers=3, layer_norm=True), VECTOR),
    ],
    ids=["nature", "channels last", "impala", "mlp", "mlp with norms"],
)
def test_bfloat16_is_near_and_learned_weights_stay_float32(config, inputs):
    torch.manual_seed(0)
    net = config.build(Signature(inputs=inputs, outputs=OUTPUTS))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.startswith("heads") or ".6." in name:
                parameter.mul_(100)
    spec = inputs["observation"]
    rows = torch.randn(9, *spec.shape)
    if spec.dtype == "uint8":
        rows = torch.randint(0, 256, (9, *spec.shape), dtype=torch.uint8)
    exact = answers(net, rows)
    net.compute_dtype = torch.bfloat16
    near = answers(net, rows)
    assert near.dtype == torch.float32
    error = (near - exact).norm() / exact.norm()
    assert 0 < error < 0.03
    gradients = torch.autograd.grad(near.square().sum(), list(net.parameters()))
    assert {g.dtype for g in gradients} == {torch.float32}
    assert all(bool(g.isfinite().all()) for g in gradients)


@pytest.mark.parametrize(
    "config", [NatureConfig(), NatureConfig(layer_norm=True), ImpalaConfig()]
)
@pytest.mark.parametrize("inputs", [SCREEN, LAST], ids=["first", "last"])
def test_weights_fixed_in_bfloat16_answer_what_learned_ones_do(config, inputs):
    torch.manual_seed(0)
    net = config.build(Signature(inputs=inputs, outputs=OUTPUTS))
    with torch.no_grad():
        for head in net.heads.values():
            head.weight.mul_(100)
    shape = inputs["observation"].shape
    rows = torch.randint(0, 256, (9, *shape), dtype=torch.uint8)
    exact = answers(net, rows)
    net.fix_dtype(torch.bfloat16)
    assert {p.dtype for p in net.torso.parameters()} == {torch.bfloat16}
    fixed = answers(net, rows)
    error = (fixed - exact).norm() / exact.norm()
    assert 0 < error < 0.03


def test_small_layers_keep_their_digits():
    net = MlpConfig().build(Signature(inputs=VECTOR, outputs=OUTPUTS))
    rows = torch.randn(9, 7)
    exact = answers(net, rows)
    net.compute_dtype = torch.bfloat16
    assert torch.equal(answers(net, rows), exact)
