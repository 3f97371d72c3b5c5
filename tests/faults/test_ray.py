"""Runs on actors of a local Ray cluster that each call starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.errors import UsageError
from tengen.launch import launcher_of
from tengen.recipes.run import train_task as train
from tengen.run import RunDirectory
from tests.faults.role_processes import (
    SETTINGS,
    check_games,
    check_learner,
    check_leftovers,
    check_models,
    games_in_journals,
)
from tests.integration.runs import events, run_command, train_command, wait_for

ENDLESS = (*SETTINGS, "agent.actor.games_per_generation=1000000")
QUIET = ("agent.rating.time_share=0", "agent.rating.final_games=0")
FAR = 10**8


def needs_ray() -> None:
    pytest.importorskip("ray", reason="needs the extra ray")


def command(out: Path, launcher: str, games: int, settings: tuple[str, ...] = SETTINGS):
    made = train_command(out, games, "--launch", launcher, settings=(*settings, *QUIET))
    # Like the command tengen, -P keeps the working directory out of sys.path.
    return [made[0], "-P", *made[1:]]


def parent(pid: int) -> int:
    """Returns the parent of a process; a role process's parent is its Ray actor."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert int(words[1]) > 1
    return int(words[1])


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    line = r"^launch \(ray\) needs a package .*; .*pip install .*'tengen-rl\[ray\]'$"
    with pytest.raises(UsageError, match=line):
        train("tictactoe", launch="ray", out=tmp_path / "run")
    with pytest.raises(UsageError, match=line):
        launcher_of("ray")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_it_trains_where_nothing_of_the_working_directory_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launchers ``ray`` and ``inline`` can each resume the other's run."""
    needs_ray()
    monkeypatch.chdir(tmp_path)
    marker = tmp_path / "marker"
    for name in ("tengen", "torch", "openvino", "safetensors"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    out = tmp_path / "run"
    run = RunDirectory(out)
    total = 0
    for launcher in ("ray", "inline", "ray"):
        done = run_command(command(out, launcher, 48), timeout_s=400)
        assert (done.returncode, done.stderr) == (0, "")
        total += 48
        assert check_games(run, {}) == total
        assert check_learner(run) == total // 24
        assert run.candidates.numbers() == []
    check_models(run)
    check_leftovers(run, num_writers=1)
    assert events(out, "death") == []
    assert not marker.exists()


@pytest.mark.slow
def test_an_actor_that_is_killed_begins_again_and_a_signal_saves_all(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    needs_ray()
    out = tmp_path / "run"
    run = RunDirectory(out)
    child = start(command(out, "ray", FAR, ENDLESS))
    journals = run.experience / "selfplay-0"

    def size() -> int:
        return sum(p.stat().st_size for p in journals.glob("*/*.journal"))

    def learner() -> int | None:
        holder = run.lock_holder("learn")
        return None if holder is None else int(holder.split()[0])

    wait_for(lambda: size() > 2048)
    killed = learner()
    assert killed is not None
    # Ray must not lower the learner's scheduling priority.
    assert os.getpriority(os.PRIO_PROCESS, killed) == os.getpriority(os.PRIO_PROCESS, 0)
    os.kill(parent(killed), signal.SIGKILL)
    durable = {game: content for _, game, content in games_in_journals(run)}
    wait_for(lambda: events(out, "death"))
    (death,) = events(out, "death")
    assert (death["role"], death["how"]) == ("learn", "its actor's ActorDiedError")
    wait_for(lambda: learner() not in (None, killed))
    os.kill(child.pid, signal.SIGTERM)
    _, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (130, "")
    kept = {game: content for _, game, content in games_in_journals(run)}
    assert durable.items() <= kept.items()
    # The inline launcher resumes the generation.
    num_games = max(index for _, index in kept) + 25
    length = f"agent.actor.games_per_generation={num_games}"
    done = run_command(command(out, "inline", 1, (*SETTINGS, length)))
    assert done.returncode == 0, done.stderr
    turn = [turn for turn in events(out, "turn") if turn["role"] == "selfplay"][-1]
    assert (turn["num_recovered"], turn["num_games"]) == (len(kept), num_games)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, None])
def test_a_stop_ends_it_while_the_cluster_has_no_room(
    tmp_path: Path,
    start: Callable[[list[str]], subprocess.Popen[str]],
    number: int | None,
) -> None:
    """The learner waits for GPUs that never become available."""
    needs_ray()
    out = tmp_path / "run"
    run = RunDirectory(out)
    wanted = (*SETTINGS, "launch.roles.learn.num_gpus=9", "launch.grows=true")
    child = start(command(out, "ray", FAR, wanted))
    wait_for(lambda: run.incarnations("hosts"))
    if number is None:
        run.request_stop()
    else:
        os.killpg(child.pid, number)
    _, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (0 if number is None else 130, "")
    assert run.checkpoints.numbers() == []


@pytest.mark.slow
def test_environments_are_trained_on_ray_and_gone_on_with_inline(
    tmp_path: Path,
) -> None:
    needs_ray()
    pytest.importorskip("gymnasium")
    out = tmp_path / "run"
    words = [sys.executable, "-P", "-m", "tengen", "train", "CartPole-v1"]
    words += ["--agent", "ppo", "--out", str(out), "--set=inference.backend=torch"]
    done = run_command([*words, "--actors", "2", "--launch", "ray", "--frames", "10k"])
    assert done.returncode == 0, done.stderr
    frames = [
        turn["num_rows"] for turn in events(out, "turn") if turn["role"] == "actor"
    ]
    assert sum(frames) > 0
    num_models = len(RunDirectory(out).models.numbers())
    assert num_models > 1
    done = run_command([*words, "--launch", "inline", "--frames", "4k"])
    assert done.returncode == 0, done.stderr
    assert len(RunDirectory(out).models.numbers()) > num_models


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("launch.roles.learn.num_gpus=9", "has no room in the cluster beside"),
        ("learner.device=cuda:0", "(cuda:0) is on no host of the cluster: "),
        ("launch.address=127.0.0.1:9", "does not answer"),
        ("launch.address=ray://127.0.0.1:10001", "must be HOST:PORT"),
        ("launch.runtime_env=no_such_file.json", "cannot be read"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_starts(
    tmp_path: Path, setting: str, line: str
) -> None:
    needs_ray()
    out = tmp_path / "run"
    done = run_command(command(out, "ray", 24, (*SETTINGS, setting)))
    assert done.returncode == 2
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
