"""Runs that learn from the games of another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.experience.rows import window
from tengen.learners.checkpoint import read_extra
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles import RoleContext, RunConfig, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.experience.store_games import write_generation

SETTINGS = ("store.min_rows=50", "learner.batch_size=16", "net.num_channels=8")


def run_of(path: Path, config: RunConfig) -> RunDirectory:
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    return run


def learning_from(config: RunConfig, source: RunDirectory) -> RunConfig:
    return override(config, (f"agent.learn_from={source.path}",))


@pytest.fixture
def config() -> RunConfig:
    return override(make_config("tictactoe", None, None), SETTINGS)


def test_it_learns_what_the_run_itself_would(tmp_path: Path, config: RunConfig) -> None:
    main = run_of(tmp_path / "main", config)
    alone, config = config, learning_from(config, main)
    extra = run_of(tmp_path / "extra", config)
    states = []
    for run, its in ((main, alone), (extra, config)):
        role = make_role("learn", its, run, RoleContext())
        role.turn()
        for generation in (1, 2):
            if run is main:
                write_generation(main.experience, generation, 24)
                role.turn()
        if run is extra:
            role.turn()
        role.close()
        number = run.checkpoints.latest()
        assert number is not None
        states.append(read_extra(run.checkpoints.entry(number))["table"])
    assert states[0] == states[1]
    assert not any(extra.experience.iterdir())
    with refused(UsageError, "is not part of a run"):
        make_role("selfplay", config, extra, RoleContext())
    main.path.rename(tmp_path / "elsewhere")
    with refused(UsageError, "learn_from ("):
        make_role("learn", config, extra, RoleContext())


def test_games_that_do_not_fit_the_memory_are_refused_before_they_are_loaded(
    tmp_path: Path, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = run_of(tmp_path / "main", config)
    write_generation(main.experience, 1, 24)
    extra = run_of(tmp_path / "extra", config)
    config = learning_from(config, main)
    monkeypatch.setattr(window, "available_memory_bytes", lambda: 100)
    with refused(RunError, "lower --set store"):
        make_role("learn", config, extra, RoleContext())


@pytest.mark.parametrize(
    ("task", "source", "games", "message"),
    [
        ("connect4", "main", None, "must be a run of connect4"),
        ("tictactoe", "nowhere", None, "nowhere"),
        ("tictactoe", "extra", None, "must have games of its own"),
        ("tictactoe", "main", 5, "games (5)"),
    ],
)
def test_a_source_that_does_not_fit_is_refused_before_anything_is_made(
    tmp_path: Path,
    config: RunConfig,
    task: str,
    source: str,
    games: int | None,
    message: str,
) -> None:
    main = run_of(tmp_path / "main", config)
    run_of(tmp_path / "extra", learning_from(config, main))
    out = tmp_path / "out"
    with refused(UsageError, message):
        train_task(
            task,
            out=out,
            minutes=0.01,
            games=games,
            settings=[f"agent.learn_from={tmp_path / source}"],
        )
    assert not out.exists()


def test_a_network_for_one_board_does_not_learn_from_smaller_ones(
    tmp_path: Path,
) -> None:
    """Neither from the first, nor where the other run plays on them later."""
    main, extra = tmp_path / "main", tmp_path / "extra"
    train_task("go/5", out=main, games=0, settings=["net.mixed_sizes=true"])
    settings = [f"agent.learn_from={main}"]
    train_task("go/5", out=extra, games=0, settings=settings)
    boards = 'agent.actor.variety.boards=["5", "4"]'
    train_task("go/5", out=main, games=0, settings=[boards])
    with refused(UsageError, "smaller boards (go/4"):
        train_task("go/5", out=tmp_path / "late", games=0, settings=settings)
    run = RunDirectory(extra)
    with refused(UsageError, "smaller boards (go/4"):
        make_role("learn", read_config(run), run, RoleContext())
    fits = [*settings, "net.mixed_sizes=true"]
    train_task("go/5", out=tmp_path / "fits", games=0, settings=fits)


def test_a_run_cannot_learn_from_itself_nor_change_its_source(
    tmp_path: Path, config: RunConfig
) -> None:
    main = run_of(tmp_path / "main", config)
    with refused(UsageError, "agent.learn_from (", "empty"):
        train_task(
            "tictactoe", out=main.path, settings=[f"agent.learn_from={main.path}"]
        )
    with refused(UsageError, "agent.learn_from", "not a known key"):
        override(make_config("CartPole-v1", None, None), ("agent.learn_from=x",))
