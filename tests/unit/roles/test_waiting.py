"""What a role says that has nothing to do, and that it publishes nothing then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tengen.cli import main
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.unit.experience.store_games import write_generation

SETTINGS = (
    "learner.batch_size=64",
    "learner.num_shards=1",
    "store.min_rows=1000",
    "net.num_channels=8",
    "inference.precision=fp32",
    "inference.backend=torch",
    "inference.batch_shape=fixed",
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, override(make_config("tictactoe", None, None), SETTINGS))
    return run


def change(run: RunDirectory, *settings: str) -> None:
    write_config(run, override(read_config(run), settings))


def once(role: str, run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns what ``--once`` refuses with: one line, exit code 1."""
    capsys.readouterr()
    assert main([role, str(run.path), "--once", "--threads", "1"]) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    return errors.removeprefix("tengen: ").rstrip("\n")


def learn(run: RunDirectory) -> None:
    assert main(["learn", str(run.path), "--once", "--threads", "1"]) == 0


def num_rows(run: RunDirectory) -> int:
    role = make_role("learn", read_config(run), run, RoleContext())
    report = role.turn()
    role.close()
    assert report is not None
    return int(report["table"]["num_rows"])


def test_a_learner_with_too_few_rows_publishes_nothing(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    write_generation(run.experience, 1, 6)
    learn(run)  # the first checkpoint needs no rows
    assert run.checkpoints.numbers() == [0]
    rows = num_rows(run)
    line = f"rows ({rows}) must be at least store.min_rows (1000); play more games"
    assert once("learn", run, capsys) == line

    change(run, "store.min_rows=1", "store.limiter.samples_per_row=0.5")
    assert once("learn", run, capsys) == (
        f"samples ({rows // 2}) that store.limiter allows must be at least "
        "learner.batch_size (64); play more, or raise store.limiter.samples_per_row"
    )
    assert run.checkpoints.numbers() == [0]

    change(run, "store.limiter.samples_per_row=4")
    learn(run)
    assert run.checkpoints.numbers() == [0, 1]
    assert "samples (" in once("learn", run, capsys)
    assert run.checkpoints.numbers() == [0, 1]


def test_rows_that_are_too_few_are_counted(run: RunDirectory) -> None:
    role = make_role("learn", read_config(run), run, RoleContext())
    role.turn()
    assert role.waits_for == ""
    write_generation(run.experience, 1, 6)
    report = role.turn()
    assert report is not None
    assert report["num_new"] == report["table"]["num_rows"] > 0
    assert (report["num_steps"], report["generation"]) == (0, 1)
    lack = f"rows ({report['num_new']}) must be at least store.min_rows (1000); "
    assert role.waits_for.startswith(lack)
    assert role.turn() is None
    assert role.waits_for.startswith(lack)
    write_generation(run.experience, 2, 200)
    report = role.turn()
    assert report is not None
    assert report["num_steps"] > 0
    assert role.waits_for == ""
    role.close()


def test_learner_and_shuffle_say_which_of_them_waits(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    change(run, "store.drawn_by=shuffle")
    learn(run)
    write_generation(run.experience, 1, 6)
    assert once("learn", run, capsys) == (
        "shuffled samples (0) must be at least learner.batch_size (64); "
        "run tengen shuffle"
    )
    assert "must be at least store.min_rows (1000)" in once("shuffle", run, capsys)
    write_generation(run.experience, 2, 200)
    assert main(["shuffle", str(run.path), "--once", "--threads", "1"]) == 0
    assert once("shuffle", run, capsys) == (
        "shuffled turn (000000) must be started by the learner before the next one is "
        "sampled; run tengen learn"
    )
    learn(run)
    assert "that store.limiter allows" in once("shuffle", run, capsys)


def test_the_other_roles_say_whom_they_wait_for(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert once("export", run, capsys) == (
        "there is no checkpoint; run tengen learn first"
    )
    assert once("gate", run, capsys) == (
        "there is no candidate; run tengen export first"
    )
    assert once("selfplay", run, capsys) == (
        "no model is published yet; run tengen learn, export and gate first"
    )
    learn(run)
    assert main(["export", str(run.path), "--once"]) == 0
    assert once("export", run, capsys) == (
        "checkpoint (000000) is already exported; run tengen learn first"
    )
    assert main(["gate", str(run.path), "--once"]) == 0
    assert "no candidate" in once("gate", run, capsys)
