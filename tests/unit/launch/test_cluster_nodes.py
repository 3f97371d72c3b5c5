"""What a cluster has, what roles ask of it, and whether that fits."""

from __future__ import annotations

import random

import pytest

from tengen.errors import UsageError
from tengen.launch.cluster.nodes import (
    Node,
    check_fits,
    check_gpus,
    nodes_of,
    requests_of,
)
from tengen.launch.workers import workers_at_once
from tengen.overrides import override
from tengen.recipes import make_config


def node(name: str, num_cpus: float, num_gpus: float = 0) -> Node:
    return Node(node=name, host=name, num_cpus=num_cpus, num_gpus=num_gpus)


def config_of(task: str, agent: str | None = None, *settings: str):
    return override(make_config(task, agent, None), list(settings))


def asked(config, nodes, **options):
    workers = workers_at_once(config, int(nodes[0].num_cpus))
    return {one.name: one for one in requests_of(config, workers, nodes, **options)}


def test_hosts_that_are_gone_are_none():
    listed = [
        {
            "NodeID": name,
            "NodeManagerHostname": f"host-{name}",
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


def test_roles_ask_for_the_cores_that_they_keep_busy():
    found = asked(config_of("go/9"), [node("a", 16), node("head", 0)])
    assert 11.9 < found["selfplay"].num_cpus < 12
    assert 3.9 < found["learn"].num_cpus < 4
    # Not none, or they would be put beside the head, which has no cores for them.
    assert found["export"].num_cpus == found["gate"].num_cpus == 0.01


def test_shares_fit_a_small_cluster_and_what_is_given_stays():
    config = config_of(
        "CartPole-v1",
        "ppo",
        "launch.roles.actor.count=6",
        "launch.roles.learn.num_cpus=1",
    )
    found = asked(config, [node("a", 2), node("b", 2)])
    assert found["learn"].num_cpus == 1
    assert sum(one.num_cpus for one in found.values()) <= 4
    actors = [one.num_cpus for name, one in found.items() if name[:5] == "actor"]
    assert len(actors) == 6
    assert 0.3 < min(actors) == max(actors) < 0.5
    # A cluster that grows is asked for all, so that it sees what it lacks.
    growing = asked(config, [node("a", 2), node("b", 2)], grows=True)
    assert growing["actor-0"].num_cpus == 1


@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        (("launch.roles.learn.num_gpus=1",), True),
        (("launch.roles.learn.num_gpus=2",), False),
        (("launch.roles.learn.num_cpus=8",), True),
        (("launch.roles.learn.num_cpus=9",), False),
        # Each has room, but not both on a host.
        (("launch.roles.learn.num_cpus=8", "launch.roles.selfplay.num_cpus=6"), True),
        (
            (
                "launch.roles.learn.num_cpus=8",
                "launch.roles.selfplay.num_cpus=6",
                "launch.roles.selfplay.count=2",
            ),
            False,
        ),
    ],
)
def test_what_has_no_room_is_refused(settings, fits):
    nodes = [node("a", 8, 1), node("b", 8, 0)]
    found = asked(config_of("go/9", None, *settings), nodes)
    if fits:
        check_fits(list(found.values()), nodes)
        return
    line = r"launch.roles.\w+ \(.* has no room in the cluster .*a has 8 cores and 1 GPU"
    with pytest.raises(UsageError, match=line):
        check_fits(list(found.values()), nodes)


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("learner.device=cuda:0", r"^learner.device \(cuda:0\) is on no host of the "),
        ("inference.devices=cuda:0,cuda:1", r"^inference.devices \(cuda:0,cuda:1\) "),
    ],
)
def test_a_cluster_without_gpus_has_no_role_on_one(setting, line):
    config = config_of("go/9", None, setting)
    without = [node("a", 8), node("b", 8)]
    with pytest.raises(UsageError, match=line):
        check_gpus(config, without)
    # Which of them has enough its host says, and hosts may come.
    check_gpus(config, [*without, node("c", 8, 1)])
    check_gpus(config_of("go/9", None, setting, "launch.grows=true"), without)
    check_gpus(config_of("go/9", None, "learner.device=cpu"), without)


def test_what_is_given_leaves_something_for_the_others():
    nodes = [node("a", 8), node("b", 8)]
    settings = ("launch.roles.learn.num_cpus=8", "launch.roles.selfplay.num_cpus=8")
    found = asked(config_of("go/9", None, *settings), nodes)
    line = r"^launch.roles leaves no core of 16 for export, .*gate.*: a has 8 cores"
    with pytest.raises(UsageError, match=line):
        check_fits(list(found.values()), nodes)


@pytest.mark.parametrize("counts", [(2,), (2, 2), (1, 3), (4, 4, 2), (3, 3, 3, 3)])
@pytest.mark.parametrize("num_players", [1, 2, 5, 7, 60])
def test_every_process_has_room_in_whichever_order_they_are_placed(counts, num_players):
    """A process that had none would wait for ever, and the run for its games."""
    nodes = [node(str(place), num_cpus) for place, num_cpus in enumerate(counts)]
    nodes.sort(key=lambda one: -one.num_cpus)
    setting = f"launch.roles.selfplay.count={num_players}"
    found = list(asked(config_of("go/7", None, setting), nodes).values())
    check_fits(found, nodes)
    for seed in range(50):
        draws = random.Random(seed)
        free = [one.num_cpus for one in nodes]
        for one in draws.sample(found, len(found)):
            places = [i for i, room in enumerate(free) if room + 1e-6 >= one.num_cpus]
            assert places, (seed, one, free)
            free[draws.choice(places)] -= one.num_cpus
