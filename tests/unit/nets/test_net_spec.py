"""Configs of networks and what is known of boards."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace

import pytest
import torch

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.nets import MlpConfig, NetConfig, ResNetConfig, parse_net
from tengen.overrides import override
from tengen.tensors import BoardSpec, Signature, TensorSpec
from tests.refusals import refused


def test_parse_net_reads_blocks_and_channels():
    assert parse_net("6x96") == ResNetConfig(num_blocks=6, num_channels=96)


@pytest.mark.parametrize("text", ["6", "6x", "x96", "6*96", "6x96x1", " 6x96", "-2x32"])
def test_parse_net_refuses_other_text(text):
    with refused(UsageError, f"net ({text})"):
        parse_net(text)


@pytest.mark.parametrize("num_channels", [4, 30])
def test_channels_are_a_multiple_of_four(num_channels):
    with refused(UsageError, f"num_channels ({num_channels})"):
        ResNetConfig(num_channels=num_channels)


def test_every_depth_pools_somewhere_and_keeps_the_blocks_of_shallower_ones():
    config = ResNetConfig()
    assert [i for i in range(10) if config.pools(i)] == [1, 4, 7]


@pytest.mark.parametrize(
    ("layout", "num_actions"),
    [("cells", 43), ("cells_and_pass", 42), ("columns", 6)],
)
def test_features_refuse_actions_that_the_layout_does_not_give(layout, num_actions):
    fields = {"num_planes": 3, "height": 6, "width": 7, "num_actions": num_actions}
    with refused(UsageError, f"num_actions ({num_actions})"):
        from_dict(BoardSpec, {**fields, "policy_layout": layout})


@dataclass(frozen=True, kw_only=True)
class Run:
    net: NetConfig = field(default_factory=ResNetConfig)


def test_a_field_takes_a_network_of_any_kind():
    for kind, config in NetConfig.kinds().items():
        run = override(Run(), [f"net.kind={kind}"])
        assert run.net == config()
        assert from_dict(Run, to_dict(run)) == run
    with refused(UsageError, "net.kernels ("):
        override(Run(), ["net.kind=nature", "net.kernels=[3]", "net.strides=[1]"])
    with refused(UsageError, "net.kind (restnet)", '"resnet"'):
        from_dict(Run, {"net": {"kind": "restnet"}})


@pytest.mark.parametrize(
    ("fields", "max_score", "targets"),
    [
        ({}, 20, set()),
        ({"auxiliary": True}, 0, {"reply", "horizons"}),
        ({"auxiliary": True}, 20, {"reply", "horizons", "ownership", "score"}),
        (
            {"auxiliary": True, "lead": True},
            20,
            {"reply", "horizons", "ownership", "score", "lead"},
        ),
    ],
)
def test_targets_are_what_the_heads_answer(fields, max_score, targets):
    board = BoardSpec(
        num_planes=2, height=3, width=3, num_actions=9, max_score=max_score
    )
    config = ResNetConfig(num_blocks=2, num_channels=8, **fields)
    assert config.targets(board) == targets
    heads = config.build(board.signature).eval().learn(torch.ones(1, 2, 3, 3))[2]
    answered = {} if heads is None else heads._asdict()
    assert {name for name, x in answered.items() if x is not None} == (
        targets | ({"mean_score"} if "score" in targets else set())
    )
    outputs = config.signature(board.signature).outputs
    assert ("score" in outputs) == ("score" in targets)


def test_a_board_network_refuses_what_it_does_not_answer():
    vector = Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
    )
    with refused(UsageError, "net.kind (resnet)"):
        ResNetConfig().build(vector)
    board = BoardSpec(num_planes=2, height=3, width=3, num_actions=9)
    wanted = replace(board.signature, outputs={"q": TensorSpec(shape=(9,))})
    with refused(UsageError, "net.kind (resnet)", " q;"):
        ResNetConfig().signature(wanted)


def test_a_stage_takes_the_size_alone():
    config = ResNetConfig(auxiliary=True, head_channels=8)
    size = ResNetConfig(num_blocks=6, num_channels=96, head_channels=64)
    grown = config.grown(size)
    assert grown == replace(config, num_blocks=6, num_channels=96)
    with refused(UsageError, "net.kind (mlp)"):
        config.grown(MlpConfig())
    for growing in (MlpConfig().grown, MlpConfig().check_grows):
        with refused(UsageError, "net (mlp)"):
            growing(MlpConfig())


def test_configs_are_read_without_torch():
    code = (
        "import sys; import tengen.nets, tengen.learners;"
        "tengen.learners.LearnerConfig(); tengen.nets.parse_net('2x32');"
        "tengen.nets.NetConfig.kinds();"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
