"""What the processes of a run ask of a cluster, and whether that fits."""

from __future__ import annotations

import pytest

from tengen.errors import UsageError
from tengen.launch.cluster.table import (
    Node,
    check_fits,
    check_gpus,
    filled,
    is_together,
    nodes_of,
    table_of,
)
from tengen.launch.launcher import Placed
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tests.refusals import refused

GAMES = ["learn", "export", "gate", "rate"]


def node(name: str, num_cpus: float, num_gpus: float = 0) -> Node:
    return Node(node=name, host=name, num_cpus=num_cpus, num_gpus=num_gpus)


def config_of(task: str, *settings: str) -> RunConfig:
    agent = None if task.startswith("go") else "ppo"
    if agent:
        pytest.importorskip("gymnasium")
    return override(make_config(task, agent, None), list(settings))


def asked(made: RunConfig, nodes: list[Node], home: str = "") -> dict[str, Placed]:
    return {one.worker.name: one for one in table_of(made, nodes, home)}


def threads(found: dict[str, Placed]) -> dict[str, int]:
    return {name: one.worker.num_threads for name, one in found.items()}


def cpus(found: dict[str, Placed]) -> dict[str, float]:
    return {name: one.num_cpus for name, one in found.items()}


def test_roles_ask_for_the_cores_that_they_keep_busy() -> None:
    found = asked(config_of("go/9"), [node("a", 16), node("head", 0)])
    assert 11.9 < found["selfplay"].num_cpus < 12
    assert 3.9 < found["learn"].num_cpus < 4
    # Not none, or they would be put beside the head, which has no cores for them.
    assert found["export"].num_cpus == found["gate"].num_cpus == 0.01
    assert sum(cpus(found).values()) <= 16


def test_self_play_has_a_process_on_each_host_with_that_hosts_share() -> None:
    nodes = [*(node(name, 16) for name in "abc"), node("d", 4), node("head", 0)]
    made = filled(config_of("go/9"), nodes)
    assert made.launch.of("selfplay").count == 4
    found = asked(made, nodes)
    shares = {"learn": 4, "export": 1, "gate": 1, "rate": 1}
    names = [f"selfplay-{index}" for index in range(4)]
    # The last is the one that has least left, where the learner is planned.
    assert threads(found) == shares | dict(zip(names, (16, 16, 12, 4), strict=True))
    assert [found[name].node for name in names] == ["b", "c", "a", "d"]
    # Each host that could hold what learns has room for it, should its own be lost.
    core = sum(found[name].num_cpus for name in GAMES)
    for name in names[:3]:
        assert 11 < found[name].num_cpus <= 16 - core
    assert found["selfplay-3"].num_cpus == 4
    check_fits(made, list(found.values()), nodes)


@pytest.mark.parametrize(
    ("nodes", "settings", "count"),
    [
        ([node("a", 16)], (), 1),
        ([node("a", 1)], (), 1),
        # What learns has its one core.
        ([node("a", 1), node("b", 1), node("c", 1)], (), 2),
        ([node("head", 0)], ("launch.grows=true",), 1),
        # As many as have the room that was asked for.
        ([node("a", 16), node("b", 8)], ("launch.roles.selfplay.num_cpus=16",), 1),
        (
            [node("a", 16), node("b", 8, 1), node("c", 8, 1)],
            ("launch.roles.selfplay.num_gpus=1",),
            2,
        ),
        ([node(f"{i}", 4) for i in range(1100)], (), 1024),
    ],
)
def test_hosts_with_room_are_counted(
    nodes: list[Node], settings: tuple[str, ...], count: int
) -> None:
    made = filled(config_of("go/5", *settings), nodes)
    assert made.launch.of("selfplay").count == count
    # A call on another number of hosts counts anew.
    again = filled(made, [node("a", 16), node("b", 16)])
    assert again.launch.of("selfplay").count <= 2
    if not settings:
        check_fits(made, table_of(made, nodes), nodes)


def test_nobody_plays_where_another_runs_games_are_learned_from() -> None:
    made = config_of("go/5", "agent.learn_from=other")
    nodes = [node("a", 4), node("b", 4)]
    assert filled(made, nodes) == made
    assert list(asked(made, nodes)) == GAMES
    assert asked(made, nodes)["learn"].worker.num_threads == 4


def test_a_count_that_was_typed_is_divided_by_host() -> None:
    nodes = [node(f"h{index}", 16) for index in range(10)]
    made = config_of("go/9", "launch.roles.selfplay.count=10")
    found = asked(made, nodes)
    players = [one for name, one in found.items() if name not in GAMES]
    assert sorted(one.worker.num_threads for one in players) == [12, *[16] * 9]
    assert len({one.node for one in players}) == 10
    # Two a host, and on the learner's host what that leaves.
    made = config_of("go/9", "launch.roles.selfplay.count=4")
    found = asked(made, nodes[:2])
    players = [one for name, one in found.items() if name not in GAMES]
    assert sorted(one.worker.num_threads for one in players) == [6, 6, 8, 8]


def test_actors_stay_as_they_were_typed_and_are_alike() -> None:
    made = config_of("CartPole-v1", "launch.roles.actor.count=6")
    nodes = [node("a", 2), node("b", 2), node("c", 1)]
    assert filled(made, nodes) == made
    found = asked(made, nodes)
    assert {one.node for one in found.values()} == {""}
    actors = [one.num_cpus for name, one in found.items() if name[:5] == "actor"]
    # Four on one host and two on the other, on whichever Ray puts them.
    assert len(actors) == 6
    assert set(actors) == {0.5}
    check_fits(made, list(found.values()), nodes)


def test_what_is_given_stays_and_a_cluster_that_grows_is_asked_for_all() -> None:
    settings = ("launch.roles.actor.count=6", "launch.roles.learn.num_cpus=1")
    made = config_of("CartPole-v1", *settings)
    nodes = [node("a", 2), node("b", 2)]
    found = asked(made, nodes)
    assert found["learn"].num_cpus == 1
    assert sum(cpus(found).values()) <= 4
    # So that it sees what it lacks.
    growing = asked(override(made, ["launch.grows=true"]), nodes)
    assert growing["actor-0"].num_cpus == 1


def test_what_must_share_a_host_fits_one_though_its_share_is_all_of_it() -> None:
    """Learner, inference and what is there beside them, on hosts of odd sizes too."""
    for cores in (1, 2, 3, 15, 16):
        nodes = [node("a", cores), node("b", cores)]
        made = config_of("CartPole-v1", "launch.roles.actor.count=4")
        found = asked(made, nodes)
        core = [one for name, one in found.items() if name[:5] != "actor"]
        assert is_together(made)
        assert sum(one.num_cpus for one in core) <= cores
        check_fits(made, list(found.values()), nodes)


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
def test_what_has_no_room_is_refused(settings: tuple[str, ...], fits: bool) -> None:
    nodes = [node("a", 8, 1), node("b", 8, 0)]
    made = config_of("go/9", *settings)
    found = table_of(made, nodes)
    if fits:
        check_fits(made, found, nodes)
        return
    with refused(UsageError, "launch.roles.", "a has 8 cores and 1 GPU"):
        check_fits(made, found, nodes)


def test_what_is_given_leaves_something_for_the_others() -> None:
    nodes = [node("a", 8), node("b", 8)]
    settings = ("launch.roles.learn.num_cpus=8", "launch.roles.selfplay.num_cpus=8")
    made = config_of("go/9", *settings)
    with refused(UsageError, "launch.roles leaves no core of 16", "gate"):
        check_fits(made, table_of(made, nodes), nodes)


def test_a_learner_that_fills_a_host_leaves_the_rest_to_another() -> None:
    """And self-play asks for what is left there, or one of them would wait."""
    nodes = [node("a", 8), node("b", 8)]
    found = asked(config_of("go/9", "launch.roles.learn.num_cpus=8"), nodes)
    rest = sum(found[name].num_cpus for name in ("export", "gate", "rate"))
    assert found["selfplay"].num_cpus + rest <= 8
    # Ray decides which of the two hosts is whose.
    assert found["selfplay"].node == ""


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        (("learn.num_cpus=8", "inference.num_cpus=8"), [node(n, 8) for n in "abc"]),
        (("learn.num_gpus=1", "inference.num_gpus=1"), [node(n, 16, 1) for n in "ab"]),
        # Together with what was not given, be it least.
        (("learn.num_cpus=8",), [node(n, 8) for n in "ab"]),
    ],
)
def test_what_must_share_a_host_is_refused_where_none_holds_all_of_it(
    settings: tuple[str, ...], nodes: list[Node]
) -> None:
    given = [f"launch.roles.{one}" for one in settings]
    made = config_of("CartPole-v1", *given)
    with refused(UsageError, "launch.roles.learn", "together on one host"):
        check_fits(made, table_of(made, nodes), nodes)
    # Of several servers each has an address of its own.
    several = override(made, ["launch.roles.inference.count=2"])
    assert not is_together(several)


def test_a_small_home_has_its_share_of_its_own_cores() -> None:
    nodes = [node("far", 64), node("home", 4)]
    made = filled(config_of("go/9"), nodes)
    found = asked(made, nodes, "home")
    check_fits(made, list(found.values()), nodes, "home")
    assert found["learn"].worker.num_threads == 1
    assert found["learn"].num_cpus <= 1
    assert sum(found[name].num_cpus for name in GAMES) <= 4
    assert [found[f"selfplay-{index}"].node for index in range(2)] == ["far", "home"]


@pytest.mark.parametrize(
    ("settings", "nodes", "asks"),
    [
        # The learner wants a GPU that the other host has.
        (("learn.num_gpus=1",), [node("far", 8, 1), node("home", 8)], "learn"),
        (("learn.num_cpus=5",), [node("far", 8), node("home", 4)], "learn"),
        # A head that has no cores for roles.
        ((), [node("far", 8), node("home", 0)], "learn, launch.roles.export"),
    ],
)
def test_a_home_that_has_not_what_was_asked_for_is_refused(
    settings: tuple[str, ...], nodes: list[Node], asks: str
) -> None:
    made = config_of("go/9", *(f"launch.roles.{one}" for one in settings))
    with refused(UsageError, f"launch.roles.{asks}", "host home"):
        check_fits(made, table_of(made, nodes, "home"), nodes, "home")


def test_hosts_that_are_gone_are_none() -> None:
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
def test_a_cluster_without_gpus_has_no_role_on_one(setting: str, line: str) -> None:
    config = config_of("go/9", setting)
    without = [node("a", 8), node("b", 8)]
    with refused(UsageError, line):
        check_gpus(config, without)
    # Which of them has enough its host says, and hosts may come.
    check_gpus(config, [*without, node("c", 8, 1)])
    check_gpus(config_of("go/9", setting, "launch.grows=true"), without)
    check_gpus(config_of("go/9", "learner.device=cpu"), without)
