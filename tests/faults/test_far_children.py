"""Runs whose acting processes use mirrors, like hosts that share no disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tengen.launch import LAUNCHERS
from tengen.recipes.run import train_task as train
from tengen.run import RunDirectory, find_files, read_actor_counts, read_mirrors
from tests.faults.far_launcher import FAR
from tests.faults.role_processes import (
    GAMES,
    SETTINGS,
    check_learner,
    check_models,
    games_in_segments,
)
from tests.faults.test_mirror_kills import free_ports
from tests.integration.runs import events, wait_for


@pytest.fixture(autouse=True)
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "far"
    folder.mkdir()
    monkeypatch.setenv(FAR, str(folder))
    monkeypatch.setitem(LAUNCHERS, "far", "tests.faults.far_launcher:FarLauncher")
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, *sys.path]))
    return folder


def pids_of(role: str, folder: Path) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-f", f"tengen.launch.child.*{folder}.* {role}$"],
        capture_output=True,
        text=True,
    )
    return [int(word) for word in found.stdout.split()]


@pytest.mark.soak
def test_two_players_that_share_no_disk_with_the_learner(tmp_path, far):
    out = tmp_path / "run"
    run = RunDirectory(out)

    def kill_one() -> None:
        wait_for(lambda: len(find_files(run.experience, "*/*/*.npz")) >= 2)
        wait_for(lambda: pids_of("selfplay", far))
        os.kill(pids_of("selfplay", far)[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    train(
        "tictactoe",
        launch="far",
        games=10 * GAMES,
        out=out,
        settings=[
            *SETTINGS,
            f"launch.listen=127.0.0.1:{free_ports()}",
            "launch.roles.selfplay.count=2",
            "agent.rating.time_share=0",
            "agent.rating.final_games=0",
        ],
    )
    killer.join()
    games = [game for _, game, _ in games_in_segments(run)]
    assert len(games) == len(set(games)) >= 10 * GAMES
    assert {path.parts[-3] for path, _, _ in games_in_segments(run)} == {
        "selfplay-0",
        "selfplay-1",
    }
    assert [death["role"] for death in events(out, "death")] == ["selfplay"]
    assert check_learner(run) >= 10
    assert check_models(run) >= 2
    # A process that ends without an unfinished generation releases its mirror.
    assert read_mirrors(run) == []
    assert not pids_of("selfplay", far)


@pytest.mark.slow
def test_actors_that_share_no_disk_with_the_learner(tmp_path, far):
    pytest.importorskip("gymnasium")
    out = tmp_path / "run"
    report = train(
        "CartPole-v1",
        agent="ppo",
        launch="far",
        actors=2,
        frames=20_000,
        out=out,
        settings=[f"launch.listen=127.0.0.1:{free_ports()}"],
    )
    assert report["exit_code"] == 0
    run = RunDirectory(out)
    # The run has the step counts of both far actors.
    assert sorted(path.name for path in find_files(run.actors, "*")) == ["0", "1"]
    assert 20_000 <= read_actor_counts(run)["num_rows"] <= 40_000
    assert run.models.numbers()[-1] > 0
