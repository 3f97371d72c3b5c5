"""Networks without parameter sharing: each row has its own agent's network."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from tengen.errors import UsageError
from tengen.models import ModelExporter
from tengen.nets import MlpConfig
from tengen.nets.modules.exporting import exporting
from tengen.nets.modules.standard import counting
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused

N, T = 3, 5
SMALL = {"kernels": (3,), "strides": (1,), "channels": (4,), "num_units": 8}
CONFIGS = [
    MlpConfig(num_units=8),
    MlpConfig(num_units=8, lstm_units=4, standardizes=True),
    NatureConfig(**SMALL, num_frames=2, lstm_units=4),
]
AGENTS = torch.tensor([2, 0, 1, 1, 2, 0, 1])
"""The agent of each row, in no order; agent 1 has three rows."""


def wanted(config):
    shape = (5,) if config.kind == "mlp" else (2, 6, 6)
    return Signature(
        inputs={
            "observation": TensorSpec(shape=shape),
            "agent_id": TensorSpec(dtype="bool", shape=(N,)),
        },
        outputs={"policy": TensorSpec(shape=(4,)), "value": TensorSpec()},
    )


def made(config):
    """A network whose outputs differ between agents by far more than rounding."""
    torch.manual_seed(1)
    config = dataclasses.replace(config, shares_parameters=False)
    net = config.build(wanted(config)).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape))
    return net


def drawn(net, *shape, agents=AGENTS):
    torch.manual_seed(2)
    ids = torch.eye(N, dtype=torch.bool)[agents]
    (_, observation), _ = net.signature.inputs.items()
    inputs = {
        "observation": torch.randn(*shape, len(agents), *observation.shape),
        "agent_id": ids.expand(*shape, *ids.shape),
    }
    state = {
        name: torch.randn(len(agents), *spec.shape)
        for name, spec in net.signature.state.items()
    }
    return inputs, state


def rows_of(tensors, rows, axis=0):
    return {name: tensor.index_select(axis, rows) for name, tensor in tensors.items()}


def check_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, tensor in one.items():
            torch.testing.assert_close(tensor, other[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_each_row_has_its_agent_s_network(config):
    net = made(config)
    inputs, state = drawn(net)
    steps, _ = drawn(net, T)
    is_first = torch.rand(T, len(AGENTS)) < 0.2
    with torch.no_grad():
        answered = net.answer(inputs, state)
        unrolled = net.unroll(steps, state, is_first)
        for agent, own in enumerate(net.nets):
            rows = (agent == AGENTS).nonzero().squeeze(1)
            alone = own.answer(rows_of(inputs, rows), rows_of(state, rows))
            check_close([rows_of(part, rows) for part in answered], alone)
            outputs, last = own.unroll(
                rows_of(steps, rows, 1), rows_of(state, rows), is_first[:, rows]
            )
            found = rows_of(unrolled[0], rows, 1), rows_of(unrolled[1], rows)
            check_close(found, (outputs, last))
        # The same observations of another agent have other outputs.
        others, _ = drawn(net, agents=(AGENTS + 1) % N)
        values = net.answer({**inputs, **others}, state)[0]["value"]
    assert (values - answered[0]["value"]).abs().min() > 1e-4


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_traced_network_computes_the_same(config):
    net = made(config)
    inputs, state = drawn(net)
    steps, _ = drawn(net, T)
    is_first = torch.rand(T, len(AGENTS)) < 0.2
    with torch.no_grad():
        expected = net.answer(inputs, state), net.unroll(steps, state, is_first)
        with exporting():
            found = net.answer(inputs, state), net.unroll(steps, state, is_first)
    for one, other in zip(found, expected, strict=True):
        check_close(one, other)


def test_an_exported_network_computes_the_same():
    net = made(MlpConfig(num_units=8, standardizes=True))
    weights = {name: x.numpy() for name, x in net.state_dict().items()}
    data = ModelExporter().export(net.signature, net.config, weights)
    inputs, _ = drawn(net)
    named = {name: x.numpy() for name, x in inputs.items()}
    policy, value = ReferenceEvaluator(data).run(None, named)
    with torch.no_grad():
        expected, _ = net.answer(inputs, {})
    np.testing.assert_allclose(policy, expected["policy"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(value, expected["value"], rtol=1e-4, atol=1e-5)


def test_a_network_learns_from_its_own_agent_only():
    net = made(CONFIGS[0]).train()
    inputs, _ = drawn(net, agents=torch.tensor([0, 2, 0]))
    outputs, _ = net.answer(inputs, {})
    sum(output.sum() for output in outputs.values()).backward()
    learned = [any(p.grad.any() for p in one.parameters()) for one in net.nets]
    assert learned == [True, False, True]


def test_statistics_are_of_the_agent_s_own_counted_rows():
    net = made(CONFIGS[1]).train()
    steps, state = drawn(net, T)
    is_counted = torch.rand(T, len(AGENTS)) < 0.7
    is_first = torch.zeros(T, len(AGENTS), dtype=torch.bool)
    with counting(net, is_counted):
        net.unroll(steps, state, is_first)
    for agent, own in enumerate(net.nets):
        (standard,) = (m for m in own.modules() if hasattr(m, "num_rows"))
        rows = is_counted[:, agent == AGENTS]
        assert standard.num_rows.item() == rows.sum().item() > 0
        seen = steps["observation"][:, agent == AGENTS][rows].double().sum(0)
        torch.testing.assert_close(standard.total[:5], seen)


def test_a_batch_may_have_no_rows_of_an_agent_and_no_rows():
    net = made(CONFIGS[1]).train()
    for agents in ([1, 1], []):
        inputs, state = drawn(net, agents=torch.tensor(agents, dtype=torch.int64))
        with counting(net, torch.ones(len(agents), dtype=torch.bool)):
            outputs, _ = net.answer(inputs, state)
        assert outputs["policy"].shape == (len(agents), 4)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_single_agent_has_no_networks_of_several(config):
    alone = dataclasses.replace(wanted(config), inputs={"observation": TensorSpec()})
    config = dataclasses.replace(config, shares_parameters=False)
    if config.kind != "mlp":
        image = TensorSpec(shape=(2, 6, 6))
        alone = dataclasses.replace(alone, inputs={"observation": image})
    with refused(UsageError, "net.shares_parameters (False)"):
        config.build(alone)
