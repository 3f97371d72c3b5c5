"""Runs whose models play against a target, in order, after training has ended."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.runs import (
    SMALL,
    run_command,
    start_command,
    train_command,
    wait_for,
    weights,
)

TARGET = (
    *SMALL,
    "agent.iterations=3",
    "agent.target.opponent=mcts:3",
    "agent.target.num_games=16",
    "agent.target.chunk_games=4",
    "agent.target.confirming_games=4",
    "agent.target.num_simulations=4",
    "agent.target.opening_plies=2",
)


def command(out, *extra):
    words = train_command(out, 0, settings=TARGET)
    place = words.index("--games")
    return [*words[:place], *words[place + 2 :], *extra]


def records(out):
    """Returns the published records of the target, without times."""
    return {
        path.name: {
            name: value
            for name, value in json.loads(path.read_text()).items()
            if not name.endswith(("_at", "_s"))
        }
        for path in sorted((out / "eval" / "target").glob("*.json"))
        if path.name not in ("clock.json", "terms.json")
    }


@pytest.mark.slow
def test_models_play_in_order_once_training_has_ended(tmp_path):
    out = tmp_path / "run"
    # The low win rate lets a model pass; unit tests cover runs without a pass.
    done = run_command(command(out, "--set", "agent.target.win_rate=0.1"))
    assert done.returncode == 0, done.stderr
    assert "is the first to reach 0.1 against mcts:3" in done.stdout
    assert "model 000001 against the target: " in done.stdout
    assert len(weights(out)) == 4
    found = records(out)
    last = found["result.json"]["num_models"]
    assert {f"{number:06d}.json" for number in range(1, last + 1)} <= found.keys()
    result = json.loads((out / "eval" / "target" / "result.json").read_text())
    assert result["passed"] == last
    assert result["passed_after_s"] > 0
    assert f"{last:06d}-confirm.json" in found
    told = (out / "eval" / "target" / "generations.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in told] == [1, 2, 3]
    for line in told:
        assert json.loads(line)["began_at"] <= json.loads(line)["ended_at"]
    assert not [path for path in (out / "eval" / "target").iterdir() if path.is_dir()]
    # A further call has no work, and reports the existing result.
    again = run_command(command(out))
    assert again.returncode == 0
    assert len(weights(out)) == 4
    assert records(out) == found
    shown = run_command([*command(out)[:3], "eval", str(out), "--json"])
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout.splitlines()[-1])["passed"] == result["passed"]
    status = run_command([*command(out)[:3], "status", str(out), "--json"])
    target = json.loads(status.stdout.splitlines()[-1])["target"]
    assert (target["has_result"], target["passed"]) == (True, result["passed"])
    for words, rule in (
        (
            ["eval", str(out), "--episodes", "5"],
            "--episodes (5) is for runs without a target",
        ),
        (
            [*command(out)[3:], "--set", "agent.target.num_games=20"],
            "agent.target.num_games (20) must be 16, as in the games played so far;",
        ),
    ):
        refused = run_command([*command(out)[:3], *words])
        assert (refused.returncode, rule in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_look_before_the_end_makes_no_result(tmp_path):
    out = tmp_path / "run"
    # No model wins all games; after a model that passes, the next need not play.
    train = command(out, "--set", "agent.target.win_rate=1")
    process = start_command(train)
    wait_for(lambda: (out / "models" / "000001").exists())
    stopped = run_command([*command(out)[:3], "stop", str(out)])
    assert stopped.returncode == 0, stopped.stderr
    process.communicate(timeout=900)
    num_models = len(weights(out))
    assert num_models < 4
    early = run_command([*command(out)[:3], "eval", str(out)])
    assert early.returncode == 1
    rule = f"models ({num_models - 1}) must be agent.iterations (3) for a result"
    assert rule in early.stderr
    names = set(records(out))
    assert names >= {f"{number:06d}.json" for number in range(1, num_models)}
    assert "result.json" not in names
    # The same command finishes training and continues with the models.
    done = run_command(train)
    assert done.returncode == 0, done.stderr
    assert len(weights(out)) == 4
    assert records(out)["result.json"]["iterations"] == 3


def test_a_program_that_a_file_names_is_not_started(tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    asked = [sys.executable, "-m", "tengen", "train", "go/5", "--out", str(out)]
    asked += ["--recipe", "mlperf_minigo_small", "--games", "0"]
    made = run_command([*asked, "--set", "agent.target.opponent=random"])
    assert made.returncode == 0, made.stderr
    # The config of an untrusted run contains a command.
    evil = f"gtp:touch {mark}"
    kept = out / "run.json"
    content = json.loads(kept.read_text())
    content["config"]["agent"]["target"]["opponent"] = evil
    kept.write_text(json.dumps(content))
    look = [*asked[:3], "eval", str(out)]
    for words, option in (
        (asked, f"add --set agent.target.opponent='{evil}' to"),
        (look, f"add --opponent '{evil}' to run it"),
    ):
        refused = run_command(words)
        assert (refused.returncode, option in refused.stderr) == (2, True)
        assert f"({evil}) of {out} is a program" in refused.stderr
    other = run_command([*look, "--opponent", "gtp:gnugo"])
    assert (other.returncode, "must be gtp:touch" in other.stderr) == (2, True)
    assert not mark.exists()
    # A command that the user types is executed.
    typed = run_command([*look, "--opponent", evil])
    assert typed.returncode == 1
    assert "models (0) must be agent.iterations" in typed.stderr
    tried = run_command([*asked, "--set", f"agent.target.opponent={evil}"])
    assert (tried.returncode, "cannot be used" in tried.stderr) == (2, True)
    assert mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "launch", [pytest.param("inline", marks=pytest.mark.soak), "local"]
)
def test_a_program_that_was_typed_plays_in_processes_of_the_run(tmp_path, launch):
    out = tmp_path / "run"
    engine = Path(__file__).parents[1] / "oracle" / "slow_gtp.py"
    opponent = f"gtp:{sys.executable} {engine}"
    words = [sys.executable, "-m", "tengen", "train", "go/5", "--out", str(out)]
    words += ["--recipe", "mlperf_minigo_small", "--launch", launch]
    for setting in (
        "agent.iterations=1",
        "agent.bootstrap=null",
        "agent.actor.games_per_generation=8",
        "agent.actor.full_simulations=4",
        "agent.actor.cheap_simulations=4",
        "agent.actor.num_slots=8",
        "store.min_games=8",
        "store.share=1.0",
        f"agent.target.opponent={opponent}",
        "agent.target.num_games=2",
        "agent.target.chunk_games=2",
        "agent.target.num_simulations=4",
        "agent.target.win_rate=1.0",
        "agent.target.confirming_games=0",
        "inference.precision=fp32",
    ):
        words += ["--set", setting]
    done = run_command(words)
    assert done.returncode == 0, done.stderr
    found = records(out)
    assert found["000001.json"]["target"] == opponent
    assert found["000001.json"]["num_games"] == 2
    assert "result.json" in found
    # Showing a result does not start the program, so this works without --opponent.
    shown = run_command([*words[:3], "eval", str(out)])
    assert shown.returncode == 0, shown.stderr


@pytest.mark.soak
def test_a_run_that_learns_from_another_meets_its_target_and_is_then_left_alone(
    tmp_path,
):
    base, out = tmp_path / "base", tmp_path / "run"
    done = run_command(train_command(base, 72))
    assert done.returncode == 0, done.stderr
    words = command(out, "--launch", "local", "--set", f"agent.learn_from={base}")
    words += ["--set", "agent.iterations=1"]
    done = run_command(words)
    assert done.returncode == 0, done.stderr
    assert "result.json" in records(out)
    before = {
        name: sorted(path.name for path in (out / name).iterdir())
        for name in ("checkpoints", "candidates", "models")
    }
    assert len(weights(out)) == 2
    # Further calls must not create another model.
    assert run_command(words).returncode == 0
    assert before == {
        name: sorted(path.name for path in (out / name).iterdir()) for name in before
    }


@pytest.mark.slow
def test_a_run_that_is_killed_comes_to_the_same(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run_command(command(whole)).returncode == 0
    folder = killed / "eval" / "target"
    # Killed in training, then during a model's games, then between two models.
    for sign in ("checkpoints/000002", "eval/target/*/*.jsonl", "eval/target/000001.*"):
        process = start_command(command(killed))
        wait_for(
            lambda sign=sign, process=process: (
                list(killed.glob(sign)) or process.poll() is not None
            )
        )
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    done = run_command(command(killed))
    assert done.returncode == 0, done.stderr
    assert weights(killed) == weights(whole)
    assert records(killed) == records(whole)
    calls = json.loads((folder.parent / "calls.json").read_text())["calls"]
    told = json.loads((folder / "clock.json").read_text())
    assert len(calls) == 4
    later = [call["at"] for call in calls[1:]]
    assert told["restarts_at"] == later[: len(told["restarts_at"])]


def test_a_target_that_is_not_there_is_one_line(tmp_path):
    out = tmp_path / "run"
    words = command(out, "--set", "agent.target.opponent=nowhere")
    refused = run_command(words)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "agent.target.opponent (nowhere) cannot be used" in line
    assert not out.exists()
