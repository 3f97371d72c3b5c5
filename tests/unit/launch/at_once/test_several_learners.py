"""Processes of a run whose learners are several, and who has which cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tengen.cli import main
from tengen.launch.workers import workers_at_once
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory

TWO = "launch.roles.learn.count=2"


def followers_of(task: str, cores: int, *settings: str) -> list[tuple[str, int, int]]:
    made = override(make_config(task, None, None), [TWO, *settings])
    workers = workers_at_once(made, cores)
    (leader,) = (one for one in workers if one.roles[0] == "learn")
    assert leader.name == "learn"
    assert (leader.given_as, leader.is_follower) == ("learn", False)
    found = [one for one in workers if one.is_follower]
    assert {one.roles for one in found} == {("follow",)}
    assert {one.given_as for one in found} == {"learn"}
    # The one that leads has as many.
    assert {one.num_threads for one in found} == {leader.num_threads}
    return [(one.name, one.index, one.num_threads) for one in found]


def test_learners_divide_the_learners_cores() -> None:
    assert followers_of("tictactoe", 2) == [("learn-1", 1, 1)]
    assert followers_of("tictactoe", 16) == [("learn-1", 1, 2)]
    assert followers_of("tictactoe", 16, "launch.roles.learn.count=3") == [
        ("learn-1", 1, 1),
        ("learn-2", 2, 1),
    ]
    given = "launch.roles.learn.num_cpus=5"
    assert followers_of("tictactoe", 16, given) == [("learn-1", 1, 5)]
    pytest.importorskip("gymnasium")
    assert followers_of("CartPole-v1", 8) == [("learn-1", 1, 2)]


@pytest.mark.parametrize(
    ("role", "index", "most"),
    [("learn", 1, 0), ("learn", -1, 0), ("learn", 2, 1), ("inference", 2, 1)],
)
def test_an_index_that_the_run_has_not_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    role: str,
    index: int,
    most: int,
) -> None:
    pytest.importorskip("gymnasium")
    run = RunDirectory.create_or_resume(tmp_path / "run")
    settings = [f"launch.roles.{role}.count={most + 1}"]
    write_config(run, override(make_config("CartPole-v1", None, None), settings))
    assert main([role, str(run.path), f"--index={index}"]) == 2
    line = f"index ({index}) must be 0 to {most}; raise launch.roles.{role}.count"
    assert line in capsys.readouterr().err
