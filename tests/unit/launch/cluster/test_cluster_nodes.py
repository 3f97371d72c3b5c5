"""What a cluster has."""

from __future__ import annotations

import pytest

from tengen.errors import UsageError
from tengen.launch.cluster.table import Node, check_gpus, nodes_of
from tengen.overrides import override
from tengen.recipes import make_config
from tests.refusals import refused


def node(name: str, num_cpus: float, num_gpus: float = 0) -> Node:
    return Node(node=name, host=name, num_cpus=num_cpus, num_gpus=num_gpus)


def config_of(task: str, agent: str | None = None, *settings: str):
    return override(make_config(task, agent, None), list(settings))


def test_hosts_that_are_gone_are_none():
    listed = [
        {
            "NodeID": name,
            "NodeManagerHostname": f"host-{name}",
            "NodeManagerAddress": f"10.0.0.{name}",
            "Alive": is_alive,
            "Resources": resources,
        }
        for name, is_alive, resources in (
            ("a", True, {"CPU": 4.0, "memory": 1e9}),
            ("b", False, {"CPU": 64.0}),
            ("c", True, {"CPU": 16.0, "GPU": 2.0}),
            ("head", True, {}),
        )
    ]
    found = [(one.host, one.num_cpus, one.num_gpus) for one in nodes_of(listed)]
    assert found == [("host-c", 16, 2), ("host-a", 4, 0), ("host-head", 0, 0)]
    assert nodes_of(listed)[0].resource == "node:10.0.0.c"


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("learner.device=cuda:0", "learner.device (cuda:0)"),
        ("inference.devices=cuda:0,cuda:1", "inference.devices (cuda:0,cuda:1)"),
    ],
)
def test_a_cluster_without_gpus_has_no_role_on_one(setting, line):
    config = config_of("go/9", None, setting)
    without = [node("a", 8), node("b", 8)]
    with refused(UsageError, line):
        check_gpus(config, without)
    # Which of them has enough its host says, and hosts may come.
    check_gpus(config, [*without, node("c", 8, 1)])
    check_gpus(config_of("go/9", None, setting, "launch.grows=true"), without)
    check_gpus(config_of("go/9", None, "learner.device=cpu"), without)
