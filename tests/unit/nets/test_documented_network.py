"""The worked example of docs/tutorials/own_network.md, put where it says."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch

from tengen import nets
from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.nets import InferenceHead, MlpConfig, NetConfig
from tengen.overrides import override
from tengen.tensors import BoardSpec, Signature, TensorSpec
from tests.refusals import refused

WANTED = Signature(
    inputs={"observation": TensorSpec(shape=(4,)), "last_reward": TensorSpec()},
    outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
)


@dataclass(frozen=True, kw_only=True)
class Run:
    net: NetConfig = field(default_factory=MlpConfig)


@pytest.fixture
def gru(install_page):
    """Returns the config of the page's network, found by its kind alone."""
    kind = install_page("own_network.md", nets, NetConfig)
    return override(Run(), [f"net.kind={kind}", "net.num_units=8"]).net


def test_it_is_found_by_its_kind(gru):
    run = Run(net=gru)
    assert to_dict(run) == {"net": {"kind": "gru", "num_units": 8}}
    assert from_dict(Run, to_dict(run)) == run
    board = BoardSpec(num_planes=3, height=3, width=3, num_actions=9)
    with refused(UsageError, "net.kind (gru)"):
        gru.signature(board.signature)


def test_it_remembers_within_an_episode(gru):
    torch.manual_seed(0)
    net = gru.build(WANTED)
    inputs = {"observation": torch.randn(5, 3, 4), "last_reward": torch.randn(5, 3)}
    is_first = torch.zeros(5, 3, dtype=torch.bool)
    is_first[2, 1] = True
    state = {"gru": torch.randn(3, 8)}
    unrolled, after = net.unroll(inputs, state, is_first)
    assert unrolled["policy"].shape == (5, 3, 2)
    assert unrolled["value"].shape == (5, 3)
    head = InferenceHead(net)
    memory = state["gru"]
    for step in range(5):
        memory = memory.masked_fill(is_first[step][:, None], 0.0)
        rows = [tensor[step] for tensor in inputs.values()]
        policy, value, memory = head(*rows, memory)
        torch.testing.assert_close(unrolled["policy"][step], policy)
        torch.testing.assert_close(unrolled["value"][step], value)
    torch.testing.assert_close(after["gru"], memory)
    unrolled["value"][-1].sum().backward()
    assert all(p.grad is not None for p in net.get_submodule("cell").parameters())
