"""``tengen eval``: the command, its numbers, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tengen import cli
from tengen.observe.progress_line import ProgressLine

pytest.importorskip("gymnasium")

MODULE = "tests.unit.play.own_forms"


@pytest.fixture
def evaluate(capsys):
    def run(*words):
        assert cli.main(["eval", *map(str, words), "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        (line,) = captured.out.splitlines()
        report: dict[str, Any] = json.loads(line)
        return report

    return run


def test_the_report(tmp_path, publish_agent, evaluate):
    """Every step gives 1, and ten of them are an episode."""
    task = "tests.environments:Plain"
    run = publish_agent(tmp_path / "run", task, numbers=(3, 17))
    report = evaluate(run.path, "--episodes", 5, "--seed", 2, "--task", task)
    assert report == {
        "model": str(run.models.entry(17)),
        "task": task,
        "protocol": "",
        "acting": "greedy",
        "seed": 2,
        "episodes": 5,
        "mean_return": 10.0,
        "low": 10.0,
        "high": 10.0,
        "interval": "95 % of the mean, Student's t",
        "returns": [10.0] * 5,
        "lengths": [10] * 5,
        "frames": 50,
        "cut": 0,
    }
    older = run.models.entry(3)
    for word in (f"{run.path}@3", older):
        report = evaluate(word, "--episodes", 1, "--task", task)
        assert (report["model"], report["low"]) == (str(older), None)


def test_a_seed_is_its_episodes(tmp_path, publish_agent, evaluate):
    run = publish_agent(tmp_path / "run", "CartPole-v1")
    first = evaluate(run.path, "--episodes", 21)
    assert evaluate(run.path, "--episodes", 21) == first
    assert evaluate(run.path, "--episodes", 21, "--seed", 1) != first
    assert len(first["returns"]) == 21
    assert first["returns"] == first["lengths"]
    assert len(set(first["returns"])) > 2
    assert first["low"] < first["mean_return"] < first["high"]


def test_more_episodes_are_more_of_the_same(tmp_path, publish_agent, evaluate):
    task = f"{MODULE}:Walk"
    run = publish_agent(tmp_path / "run", task, "dqn")
    fewer, more = (
        evaluate(run.path, "--episodes", n, "--task", task)["returns"] for n in (20, 37)
    )
    assert more[:20] == fewer


def test_actions_are_chosen_as_the_options_say(tmp_path, publish_agent, evaluate):
    task = f"{MODULE}:Walk"
    run = publish_agent(tmp_path / "run", task, "dqn")

    def played(*words):
        return evaluate(run.path, "--episodes", 20, "--task", task, *words)

    usual = played()
    assert usual["acting"] == "greedy"
    assert played("--act", "epsilon", "--epsilon", 0)["returns"] == usual["returns"]
    random = played("--act", "epsilon", "--epsilon", 1)
    assert random["acting"] == "greedy but for epsilon 1"
    assert random["returns"] != usual["returns"]
    run = publish_agent(tmp_path / "policy", task, "ppo")
    assert played()["acting"] == "greedy"
    drawn = played("--act", "sampled")
    assert drawn["acting"] == "sampled"
    assert drawn["returns"] != usual["returns"]


@pytest.mark.parametrize(
    ("kind", "usual"), [("dqn", "greedy but for epsilon 0.001"), ("ppo", "sampled")]
)
def test_a_protocol_of_atari_says_how_actions_are_chosen(
    tmp_path, publish_agent, evaluate, capsys, kind, usual
):
    pytest.importorskip("ale_py")
    run = publish_agent(tmp_path / "run", "atari/Pong", kind)
    words = [run.path, "--episodes", 1, "--max-steps", 5]
    report = evaluate(*words)
    assert (report["protocol"], report["acting"]) == ("v5", usual)
    report = evaluate(*words, "--protocol", "classic", "--act", "greedy")
    assert (report["protocol"], report["acting"]) == ("classic", "greedy")
    assert report["task"] == "atari/Pong/classic"
    line = refused(capsys, 2, *words, "--protocol", "r2d2")
    assert line.startswith("protocol (r2d2) of atari/Pong has (18,) actions, and the ")


def test_options_that_would_change_nothing_are_refused(tmp_path, publish_agent, capsys):
    task = f"{MODULE}:Walk"
    run = publish_agent(tmp_path / "run", task, "dqn")
    line = refused(capsys, 2, run.path, "--task", task, "--epsilon", 0.5)
    assert line.startswith("--epsilon (0.5) is not used where actions are greedy; add ")
    line = refused(capsys, 2, run.path, "--task", task, "--protocol", "v5")
    assert line.startswith(f"protocol (v5) is not for {task}, which is played in one ")
    line = refused(capsys, 2, run.path, "--task", task, "--act", "sampled")
    assert line.startswith("--act (sampled) needs a policy to draw from, and an agent ")
    task = f"{MODULE}:Numbers"
    run = publish_agent(tmp_path / "numbers", task, "sac")
    line = refused(capsys, 2, run.path, "--task", task, "--act", "epsilon")
    assert line.startswith("--act (epsilon) needs actions that are choices, and those ")


def test_for_people(tmp_path, publish_agent, capsys):
    task = "tests.environments:Plain"
    run = publish_agent(tmp_path / "run", task)
    words = ["eval", str(run.path), "--task", task]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{run.models.entry(0)} in {task}",
        "actions: greedy",
        "mean return 10.00, 95 % interval 10.00 to 10.00 (Student's t)",
        "100 episodes, returns 10.00 to 10.00, 10.0 steps each",
    ]
    assert cli.main([*words, "--episodes", "1"]) == 0
    assert "mean return 10.00\n" in capsys.readouterr().out


def test_it_tells_how_far_it_is(tmp_path, publish_agent, monkeypatch):
    task = "tests.environments:Plain"
    run = publish_agent(tmp_path / "run", task)
    told: list[str] = []
    monkeypatch.setattr(ProgressLine, "tell", lambda self, text: told.append(text))
    assert cli.main(["eval", str(run.path), "--task", task, "--episodes", "2"]) == 0
    assert told == ["episode 1 of 2", "episode 2 of 2"]


def refused(capsys, code, *words):
    assert cli.main(["eval", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("tengen: ").strip()


def test_what_is_refused(tmp_path, publish_agent, capsys):
    run = publish_agent(tmp_path / "run", f"{MODULE}:Walk")
    line = refused(capsys, 2, run.path, "--episodes", 0)
    assert line.startswith("episodes (0) must be 1 to 1000000")
    line = refused(capsys, 2, run.path, "--seed", -1)
    assert line.startswith("seed (-1) must be 0 to ")
    line = refused(capsys, 2, tmp_path / "none")
    assert "is neither a run directory" in line
    line = refused(capsys, 2, run.path)
    assert line == (
        f"task ({MODULE}:Walk) of {run.path} is a program, which runs only where it "
        f"is typed; add --task {MODULE}:Walk to run it (in Python task=)"
    )
    line = refused(capsys, 2, run.path, "--task", f"{MODULE}:Numbers")
    assert line.startswith(f"task ({MODULE}:Numbers) must be {MODULE}:Walk, that of ")


def test_a_board_game_has_no_episodes(tmp_path, publish_run, capsys):
    run = publish_run(tmp_path / "run", "tictactoe")
    assert refused(capsys, 2, run.path) == (
        f"model ({run.path}) plays the game tictactoe, which has no episodes; use "
        f"tengen match {run.path} mcts:1000"
    )


def test_an_environment_is_no_game(tmp_path, publish_agent, capsys):
    run = publish_agent(tmp_path / "run", "CartPole-v1")
    for words in (["play"], ["gtp"], ["match", "random"]):
        assert cli.main([words[0], str(run.path), *words[1:]]) == 2
        assert capsys.readouterr().err == (
            f"tengen: model ({run.path}) acts in the environment CartPole-v1 and plays "
            f"no board game; tengen eval {run.path} says what it scores\n"
        )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Raising", "must not raise, but copy 0 raised ValueError: step 15 of this"),
        ("NotFinite", "observation (nan) of {task} (copy 0) must be finite; correct"),
    ],
)
def test_an_environment_that_fails_is_one_line(
    tmp_path, publish_agent, capsys, name, line
):
    task = f"tests.environments:{name}"
    run = publish_agent(tmp_path / "run", task)
    # Of sixteen copies the first plays two of them.
    found = refused(capsys, 1, run.path, "--task", task, "--episodes", 17)
    assert task in found
    assert line.format(task=task) in found


def test_an_environment_that_hangs_is_one_line(tmp_path, publish_agent, capsys):
    task = "tests.environments:Hanging"
    run = publish_agent(tmp_path / "run", task)
    found = refused(capsys, 1, run.path, "--task", task, "--step-timeout", 0.3)
    assert f"environment ({task}) hangs in step, for 0.3 s; correct it" in found
    refused(capsys, 2, run.path, "--task", task, "--step-timeout", "nan")


def test_what_was_measured_is_told_where_the_environment_cannot_be_closed(
    tmp_path, publish_agent, capsys
):
    task = "tests.environments:HangingInCloseAtLast"
    run = publish_agent(tmp_path / "run", task)
    words = ["--task", task, "--episodes", "1", "--step-timeout", "0.3", "--json"]
    assert cli.main(["eval", str(run.path), *words]) == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["mean_return"], report["exit_code"]) == (10.0, 1)
    assert "hangs in close" in captured.err
    assert len(captured.err.splitlines()) == 1
