"""Feature and network specs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.nets import FeatureSpec, ResNetConfig, parse_net


def test_parse_net_reads_blocks_and_channels() -> None:
    assert parse_net("6x96") == ResNetConfig(num_blocks=6, num_channels=96)


@pytest.mark.parametrize("text", ["6", "6x", "x96", "6*96", "6x96x1", " 6x96", "-2x32"])
def test_parse_net_refuses_other_text(text: str) -> None:
    with pytest.raises(UsageError, match=r"^net \(.*BLOCKSxCHANNELS; for example"):
        parse_net(text)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"num_blocks": 1}, "num_blocks"),
        ({"num_channels": 30}, "num_channels"),
        ({"pool_every": 1}, "pool_every"),
        ({"head_channels": 0}, "head_channels"),
    ],
)
def test_resnet_config_names_the_bad_field(change: dict[str, int], name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name} \(.*;"):
        from_dict(ResNetConfig, change)


def test_every_depth_pools_somewhere_and_keeps_the_blocks_of_shallower_ones() -> None:
    config = ResNetConfig()
    assert [i for i in range(10) if config.pools(i)] == [1, 4, 7]


@pytest.mark.parametrize(
    ("layout", "num_actions"),
    [("cells", 43), ("cells_and_pass", 42), ("columns", 6)],
)
def test_features_refuse_actions_that_the_layout_does_not_give(
    layout: str, num_actions: int
) -> None:
    fields = {"num_planes": 3, "height": 6, "width": 7, "num_actions": num_actions}
    with pytest.raises(UsageError, match=r"^num_actions \("):
        from_dict(FeatureSpec, {**fields, "policy_layout": layout})


def test_features_survive_json() -> None:
    features = FeatureSpec(
        num_planes=3, height=6, width=7, num_actions=7, policy_layout="columns"
    )
    assert from_dict(FeatureSpec, to_dict(features)) == features


def test_configs_are_read_without_torch() -> None:
    code = (
        "import sys; import tengen.nets, tengen.learners;"
        "tengen.learners.LearnerConfig(); tengen.nets.parse_net('2x32');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
