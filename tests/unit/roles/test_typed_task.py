"""A run whose config names a program as its task: no role of it runs untyped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tengen import cli, games
from tengen.errors import UsageError
from tengen.launch.local import LocalLauncher
from tengen.launch.process import Processes
from tengen.launch.wire import Hub
from tengen.launch.workers import Worker
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.refusals import refused

OWN_GAMES = Path(__file__).parents[1] / "games" / "own_games.py"
MARK = "\nfrom pathlib import Path\nPath(__file__).with_name('marker').touch()\n"
ROLES = ("selfplay", "shuffle", "learn", "export", "gate")
DETAILS = {"sealed": 0}


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the module ``evil``, here in the working directory, makes when it runs."""
    monkeypatch.chdir(tmp_path)
    before = [*sys.path]
    (tmp_path / "evil.py").write_text(OWN_GAMES.read_text() + MARK)
    yield tmp_path / "marker"
    sys.path[:] = before
    sys.modules.pop("evil", None)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run of tic-tac-toe, but for the task."""
    settings = (
        "net.num_blocks=2",
        "net.num_channels=8",
        "inference.precision=fp32",
        "inference.backend=openvino",
        "inference.batch_shape=dynamic",
        "agent.actor.games_per_generation=4",
        "agent.actor.full_simulations=2",
    )
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, override(make_config("tictactoe", None, None), settings))
    rename(run, "evil:TicTacToe")
    return run


def rename(run: RunDirectory, task: str) -> None:
    content = run.read_run()
    content["config"]["task"] = task
    run.write_run(content)


@pytest.mark.parametrize("role", ROLES)
def test_no_role_imports_what_the_run_names(
    run: RunDirectory, marker: Path, capsys: pytest.CaptureFixture[str], role: str
) -> None:
    path = [*sys.path]
    for words, line in (
        ([], "is a program, which runs only if you name it; add --task evil:TicTac"),
        (["--task", "other:Game"], "task (other:Game) must be evil:TicTacToe, as in"),
        (["--task", "tictactoe"], "task (tictactoe) must be evil:TicTacToe, as in"),
    ):
        assert cli.main([role, str(run.path), "--once", *words]) == 2
        err = capsys.readouterr().err
        assert line in err
        assert err.count("\n") == 1
    assert sys.path == path
    assert "evil" not in sys.modules
    assert not marker.exists()


def test_roles_play_and_learn_what_is_typed(run: RunDirectory, marker: Path) -> None:
    for role in ("learn", "export", "gate", "selfplay"):
        words = [role, str(run.path), "--once", "--task", "evil:TicTacToe"]
        assert cli.main([*words, "--threads", "1"]) == 0, role
    assert marker.exists()
    assert run.models.latest() == 0


def test_a_task_that_changes_under_a_role_is_refused(
    run: RunDirectory, marker: Path
) -> None:
    """As a role by itself makes its role anew from a ``run.json`` that changed."""
    for role in ("selfplay", "rate", "learn"):
        with refused(UsageError, "is a program"):
            one_turn(run, role)
    assert not marker.exists()


def one_turn(run: RunDirectory, role: str) -> None:
    made = make_role(role, read_config(run), run, RoleContext())
    made.turn()
    made.close()


def turn(run: RunDirectory, role: str, task: str | None = None) -> Any:
    hub = Hub.on_this_host(run)
    processes = Processes(LocalLauncher(), hub, run, task, at_once=False)
    process = processes.start(Worker(name=role, roles=(role,)))
    try:
        return process.turn(role, lambda report: None, lambda *words: None, DETAILS)
    finally:
        process.close()
        hub.close()


def test_a_child_of_the_launcher_is_told_what_was_typed(
    run: RunDirectory, marker: Path
) -> None:
    with refused(UsageError, "task (evil:TicTacToe)"):
        turn(run, "learn")
    with refused(UsageError, "task (tictactoe)"):
        turn(run, "learn", "tictactoe")
    assert not marker.exists()
    assert turn(run, "learn", "evil:TicTacToe")["checkpoint"] == 0
    assert marker.exists()


def test_no_module_of_the_working_directory_is_imported(
    run: RunDirectory, marker: Path
) -> None:
    """A process started with ``python -m`` looks there first of all."""
    rename(run, "tictactoe")
    for name in ("numpy", "torch", "json"):
        (marker.parent / f"{name}.py").write_text(MARK)
    assert turn(run, "gate", "tictactoe") is None
    assert not marker.exists()


def test_no_environment_is_imported(
    run: RunDirectory, marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gymnasium itself imports the module of an id ``module:NAME``."""
    gymnasium = pytest.importorskip("gymnasium")
    write_config(run, make_config("CartPole-v1", None, None))
    rename(run, "evil:CartPole-v1")
    task = "evil:CartPole-v1"
    assert cli.main(["learn", str(run.path), "--once"]) == 2
    assert f"task ({task}) of {run.path} is a program" in capsys.readouterr().err
    gymnasium.registry[task] = gymnasium.registry["CartPole-v1"]
    try:
        for role in ("actor", "learn"):
            with refused(UsageError, "is a program"):
                one_turn(run, role)
        assert not marker.exists()
        # What was typed is a class of that module, whatever Gymnasium has by the name.
        games.allow(task)
        for role in ("actor", "learn"):
            with refused(UsageError, "must name a class of evil"):
                one_turn(run, role)
    finally:
        del gymnasium.registry[task]
