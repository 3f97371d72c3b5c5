"""Which rank of ``mpirun`` has which role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import UsageError
from tengen.launch.ranks.table import (
    RankInfo,
    check_alike,
    check_named_gpus,
    filled,
    place,
    visible_devices,
)
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tests.refusals import refused


def info(rank: int, host: str = "a", cores: int = 4, **fields: object) -> RankInfo:
    """What a rank says of itself."""
    known: dict[str, Any] = {"version": "1.0", "python": "3.11", **fields}
    return RankInfo(rank=rank, host=host, cores=cores, **known)


LEARNING = [("learn", 0), ("export", 0), ("gate", 0), ("rate", 0)]


def config(*settings: str, task: str = "tictactoe") -> RunConfig:
    return override(make_config(task, None, None), list(settings))


def ranks_of(made: RunConfig, ranks: list[RankInfo]) -> list[tuple[str, int]]:
    return [(one.worker.name, one.rank) for one in place(made, ranks)]


def threads_of(made: RunConfig, ranks: list[RankInfo]) -> dict[str, int]:
    return {one.worker.name: one.worker.num_threads for one in place(made, ranks)}


def test_ranks_that_are_left_play() -> None:
    ranks = [info(rank, "ab"[rank // 2], cores=8) for rank in range(4)]
    made = filled(config(), ranks)
    assert made.launch.of("selfplay").count == 3
    players = [("selfplay-0", 1), ("selfplay-1", 2), ("selfplay-2", 3)]
    assert ranks_of(made, ranks) == [*LEARNING, *players]
    # Of a host's cores the learner has a quarter, where self-play is there too.
    assert threads_of(made, ranks) == {
        "learn": 2,
        "export": 1,
        "gate": 1,
        "rate": 1,
        "selfplay-0": 6,
        "selfplay-1": 4,
        "selfplay-2": 4,
    }


def test_what_learns_from_another_run_has_no_rank_that_plays() -> None:
    made = config("agent.learn_from=other")
    assert ranks_of(filled(made, [info(0)]), [info(0)]) == LEARNING
    with refused(UsageError, "ranks (2) must be 1"):
        place(made, [info(0), info(1)])


def test_ranks_that_mpirun_binds_have_cores_of_their_own() -> None:
    ranks = [info(rank, cores=2, bound_to=f"{2 * rank}") for rank in range(3)]
    threads = threads_of(filled(config(), ranks), ranks)
    assert (threads["learn"], threads["selfplay-0"], threads["selfplay-1"]) == (2, 2, 2)


def test_a_role_goes_where_its_resources_are() -> None:
    ranks = [
        info(0, "a"),
        info(1, "a"),
        info(2, "b", devices=["0"]),
        info(3, "b", devices=["0"]),
    ]
    made = filled(config("launch.roles.learn.num_gpus=1"), ranks)
    assert ranks_of(made, ranks) == [
        ("export", 0),
        ("gate", 0),
        ("rate", 0),
        ("selfplay-0", 1),
        ("learn", 2),
        ("selfplay-1", 3),
    ]
    many = [info(0, cores=2), info(1, "b", cores=16), info(2, "b", cores=16)]
    made = filled(config("launch.roles.gate.num_cpus=8"), many)
    threads = threads_of(made, many)
    assert ("gate", 1) in ranks_of(made, many)
    assert (threads["gate"], threads["selfplay"]) == (8, 16)


def devices_of(
    made: RunConfig, ranks: list[RankInfo]
) -> dict[str, tuple[str, ...] | None]:
    return {one.worker.name: one.devices for one in place(made, ranks)}


def test_gpus_that_are_asked_for_are_handed_out_and_nobody_else_has_them() -> None:
    ranks = [info(rank, devices=["0", "1", "2", "3"]) for rank in range(3)]
    asked = ("launch.roles.learn.num_gpus=1", "launch.roles.selfplay.num_gpus=1")
    assert devices_of(filled(config(*asked), ranks), ranks) == {
        "learn": ("0",),
        "export": ("3",),
        "gate": ("3",),
        "rate": ("3",),
        "selfplay-0": ("1",),
        "selfplay-1": ("2",),
    }
    full = filled(config(*asked, "launch.roles.gate.num_gpus=1"), ranks)
    assert devices_of(full, ranks)["gate"] == ("1",)
    assert devices_of(full, ranks)["export"] == ()
    beyond = config(*asked, "launch.roles.learn.num_gpus=3")
    with refused(UsageError, "launch.roles.selfplay.num_gpus (1)"):
        place(filled(beyond, ranks), ranks)


def test_where_nobody_asks_for_gpus_all_of_a_host_s_are_seen() -> None:
    ranks = [info(0, "a", devices=["0"]), info(1, "b", devices=["0"])]
    assert set(devices_of(filled(config(), ranks), ranks).values()) == {None}
    # On another host than the one where somebody does, too.
    seen = devices_of(config("launch.roles.learn.num_gpus=1"), ranks)
    assert (seen["learn"], seen["export"], seen["selfplay"]) == (("0",), (), None)


def test_a_rank_hands_out_what_it_sees_itself() -> None:
    ranks = [info(0), info(1, devices=["2"]), info(2, devices=["3", "2"])]
    made = filled(config("launch.roles.selfplay.num_gpus=1"), ranks)
    seen = devices_of(made, ranks)
    assert (seen["selfplay-0"], seen["selfplay-1"]) == (("2",), ("3",))
    with refused(UsageError, "num_gpus"):
        place(made, [info(0), info(1, devices=["2"]), info(2, devices=["2"])])


@pytest.mark.parametrize(
    ("count", "given", "seen"),
    [
        (0, None, ()),
        (0, "0,1", ()),
        (3, None, ("0", "1", "2")),
        (3, "", ()),
        (3, "2", ("2",)),
        (3, "2, 0", ("2", "0")),
        (3, "1,3,0", ("1",)),
        (3, "-1", ()),
        (3, "GPU-8932f937,MIG-a7/1/0", ("GPU-8932f937", "MIG-a7/1/0")),
    ],
)
def test_the_gpus_of_a_host_are_those_that_are_visible(
    tmp_path: Path, count: int, given: str | None, seen: tuple[str, ...]
) -> None:
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{k}" for k in range(count))):
        (tmp_path / name).touch()
    known = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    assert visible_devices(known, tmp_path) == seen


@pytest.mark.parametrize(
    ("size", "settings", "line"),
    [
        (1, (), "ranks (1) must be 2"),
        (
            4,
            ("launch.roles.selfplay.count=5",),
            "ranks (4) must be 6",
        ),
        (
            8,
            ("launch.roles.selfplay.count=2",),
            "ranks (8) must be 3",
        ),
        (
            2,
            ("launch.roles.learn.num_cpus=5",),
            "launch.roles.learn.num_cpus (5)",
        ),
        (
            2,
            ("launch.roles.learn.num_cpus=3", "launch.roles.selfplay.num_cpus=2"),
            "launch.roles.selfplay.num_cpus (2)",
        ),
        (
            2,
            ("launch.roles.learn.num_gpus=1",),
            "launch.roles.learn.num_gpus (1)",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    size: int, settings: tuple[str, ...], line: str
) -> None:
    made = config(*settings)
    ranks = [info(rank) for rank in range(size)]
    with refused(UsageError, line):
        place(made, ranks)


def test_what_leaves_no_rank_to_play_is_refused_before_it_is_counted() -> None:
    for size, needed in ((1, 2), (2, 3)):
        ranks = [info(rank, "ab"[rank], devices=["0"][:rank]) for rank in range(size)]
        asked = ["launch.roles.learn.num_gpus=1"] if size > 1 else []
        with refused(UsageError, f"mpirun -n {needed}"):
            filled(config(*asked), ranks)


def test_further_learners_are_with_the_first_one_or_where_there_is_room() -> None:
    two = "launch.roles.learn.count=2"
    ranks = [info(0, "a"), info(1, "a"), info(2, "b", cores=8)]
    made = filled(config(two), ranks)
    assert ("learn-1", 0) in ranks_of(made, ranks)
    assert made.launch.of("selfplay").count == 2
    # Each asks for so many.
    many = [two, "launch.roles.learn.num_cpus=4"]
    with refused(UsageError, "launch.listen (empty)"):
        place(filled(config(*many), ranks), ranks)
    made = filled(config(*many, "launch.listen=127.0.0.1:7070"), ranks)
    assert ("learn-1", 2) in ranks_of(made, ranks)
    assert made.launch.of("selfplay").count == 1
    with refused(UsageError, "launch.roles.learn.num_cpus (4)"):
        place(config(*many), ranks[:2])


def test_actors_of_environments_reach_the_learner() -> None:
    pytest.importorskip("gymnasium")
    made = config(task="CartPole-v1")
    here = [info(rank) for rank in range(4)]
    assert ranks_of(filled(made, here), here) == [
        ("learn", 0),
        ("inference-0", 0),
        ("actor-0", 1),
        ("actor-1", 2),
        ("actor-2", 3),
    ]
    away = [*here[:3], info(3, "b")]
    with refused(UsageError, "launch.listen (empty)"):
        place(filled(made, away), away)
    let_in = config("launch.listen=127.0.0.1:7070", task="CartPole-v1")
    assert ("actor-2", 3) in ranks_of(filled(let_in, away), away)
    apart = [*here, info(4, "b", devices=["0"])]
    asked = config("launch.roles.inference.num_gpus=1", task="CartPole-v1")
    with refused(UsageError, "inference (on b)"):
        place(filled(asked, apart), apart)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("version", "tengen (0.9 on rank 2, host b)"),
        ("python", "Python (0.9 on rank 2, host b)"),
    ],
)
def test_versions_are_those_of_the_first_rank(field: str, line: str) -> None:
    check_alike([info(0), info(1, "b")])
    with refused(UsageError, line):
        check_alike([info(0), info(1), info(2, "b", **{field: "0.9"})])


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Fits tictactoe to ranks, on a machine where torch sees so many GPUs."""

    def fitted(ranks: list[RankInfo], *settings: str, num_gpus: int = 1) -> None:
        monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: num_gpus)
        made = filled(config(*settings), ranks)
        check_named_gpus(made, ranks, place(made, ranks))

    return fitted


ON_GPU = ("inference.devices=cuda:0", "learner.device=cuda:0")
BOTH = "inference.devices=cuda:0,cuda:1"
ONE_LEARNS = "launch.roles.learn.num_gpus=1"


def test_the_first_rank_asks_torch_for_its_gpus(fit: Callable[..., None]) -> None:
    ranks = [info(0), info(1, "b")]
    with refused(UsageError, "learner.device (cuda:0)"):
        fit(ranks, *ON_GPU, num_gpus=0)
    with refused(UsageError, "inference.devices (cuda:1)"):
        fit(ranks, BOTH)
    fit(ranks, num_gpus=0)
    # A machine may show its GPUs to torch alone.
    fit(ranks, *ON_GPU)


def test_other_ranks_say_what_gpus_they_see(fit: Callable[..., None]) -> None:
    ranks = [info(0, devices=["0"]), info(1, "b", devices=["0"])]
    fit(ranks, *ON_GPU)
    with refused(UsageError, "inference.devices (cuda:0)", "selfplay-1"):
        fit([*ranks, info(2, "c")], *ON_GPU)
    # A learner that has a GPU of its host by number leaves none for who plays there.
    ranks = [info(0, "a", devices=["0", "1"]), info(1, "a", devices=["0", "1"])]
    fit(ranks, *ON_GPU, ONE_LEARNS, num_gpus=2)
    with refused(UsageError, "inference.devices (cuda:1)", "selfplay"):
        fit(ranks, BOTH, ONE_LEARNS, num_gpus=2)
