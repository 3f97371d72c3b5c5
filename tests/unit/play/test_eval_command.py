"""``tengen eval``: the report, and the arguments that it refuses."""

import json

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
        return json.loads(line)

    return run


def test_the_report(tmp_path, publish_agent, evaluate):
    """Every step has reward 1, and an episode has ten steps."""
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
        "win_rate": None,
        "teams": {},
        "against": None,
        "match": None,
    }
    older = run.models.entry(3)
    for word in (f"{run.path}@3", older):
        report = evaluate(word, "--episodes", 1, "--task", task)
        assert (report["model"], report["low"]) == (str(older), None)


def test_two_models_play_with_each_team(tmp_path, publish_agent, evaluate, capsys):
    task = "tests.team_environments:Duel"
    run = publish_agent(tmp_path / "run", task, numbers=(3, 17))
    words = ["--episodes", 40, "--task", task, "--act", "sampled"]
    report = evaluate(run.path, "--against", f"{run.path}@3", *words)
    assert report["against"] == f"{run.path}@3"
    teams, match = report["teams"], report["match"]
    assert set(teams) == {"red", "blue"}
    for name in ("wins", "draws", "losses"):
        assert match[name] == sum(team[name] for team in teams.values())
    assert match["wins"] + match["draws"] + match["losses"] == 40
    assert match["score_low"] < match["score"] <= match["score_high"]
    turned = evaluate(f"{run.path}@3", "--against", run.path, *words)["match"]
    assert abs(match["score"] + turned["score"] - 1) < 0.35
    alone = evaluate(run.path, *words)
    assert (alone["against"], alone["match"]) == (None, None)
    red, blue = alone["teams"]["red"], alone["teams"]["blue"]
    assert (red["wins"], red["draws"]) == (blue["losses"], blue["draws"])
    command = ["eval", run.path, "--against", f"{run.path}@3", *words]
    assert cli.main(list(map(str, command))) == 0
    shown = capsys.readouterr().out
    assert "team red" in shown
    assert "Elo" in shown


def test_a_match_needs_teams_and_one_task(tmp_path, publish_agent, capsys):
    task = "tests.team_environments:TwoStep"
    run = publish_agent(tmp_path / "run", task)
    refused(capsys, "against", run.path, "--task", task, "--against", run.path)
    other = publish_agent(tmp_path / "other", "CartPole-v1")
    words = [other.path, "--against", run.path]
    refused(capsys, "", *words)


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
    assert random["acting"] == "greedy, except for epsilon 1"
    assert random["returns"] != usual["returns"]
    run = publish_agent(tmp_path / "policy", task, "ppo")
    assert played()["acting"] == "greedy"
    drawn = played("--act", "sampled")
    assert drawn["acting"] == "sampled"
    assert drawn["returns"] != usual["returns"]


@pytest.mark.parametrize(
    ("kind", "usual"), [("dqn", "greedy, except for epsilon 0.001"), ("ppo", "sampled")]
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
    refused(capsys, "protocol (r2d2) of atari/Pong", *words, "--protocol", "r2d2")


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
    told = []
    monkeypatch.setattr(ProgressLine, "tell", lambda self, text: told.append(text))
    assert cli.main(["eval", str(run.path), "--task", task, "--episodes", "2"]) == 0
    assert told == ["episode 1 of 2", "episode 2 of 2"]


def refused(capsys, named, *words, code=2):
    """Runs a command that must fail with one line containing ``named``."""
    assert cli.main(["eval", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err


@pytest.mark.parametrize(
    ("name", "words", "named"),
    [
        ("Walk", ["--episodes", 0], "episodes (0)"),
        ("Walk", ["--seed", -1], "seed (-1)"),
        ("Walk", ["--epsilon", 0.5], "--epsilon (0.5)"),
        ("Walk", ["--protocol", "v5"], "protocol (v5)"),
        ("Walk", ["--act", "sampled"], "--act (sampled)"),
        ("Numbers", ["--act", "epsilon"], "--act (epsilon)"),
        ("Walk", ["--task", f"{MODULE}:Numbers"], f"must be {MODULE}:Walk"),
    ],
)
def test_what_is_refused(tmp_path, publish_agent, capsys, name, words, named):
    task = f"{MODULE}:{name}"
    kind = "sac" if name == "Numbers" else "dqn"
    run = publish_agent(tmp_path / "run", task, kind)
    refused(capsys, named, run.path, "--task", task, *words)


def test_what_is_no_model_of_an_environment_that_was_typed(
    tmp_path, publish_agent, publish_run, capsys
):
    refused(capsys, str(tmp_path / "none"), tmp_path / "none")
    run = publish_agent(tmp_path / "run", f"{MODULE}:Walk")
    refused(capsys, f"add --task {MODULE}:Walk", run.path)
    run = publish_run(tmp_path / "game", "tictactoe", exports=False)
    refused(capsys, f"tengen match {run.path} mcts:1000", run.path)
    run = publish_agent(tmp_path / "cart", "CartPole-v1")
    for words in (["play"], ["gtp"], ["match", "random"]):
        assert cli.main([words[0], str(run.path), *words[1:]]) == 2
        assert f"tengen eval {run.path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words", "named"),
    [
        # Of sixteen copies, the first plays two episodes.
        ("Raising", ["--episodes", 17], "ValueError: step 15 of this"),
        ("NotFinite", ["--episodes", 17], "observation (nan) of {task} (copy 0)"),
        ("Hanging", ["--step-timeout", 0.3], "environment ({task}) hangs in step"),
    ],
)
def test_an_environment_that_fails_is_one_line(
    tmp_path, publish_agent, capsys, name, words, named
):
    task = f"tests.environments:{name}"
    words = [publish_agent(tmp_path / "run", task).path, "--task", task, *words]
    refused(capsys, named.format(task=task), *words, code=1)
    refused(capsys, "step_timeout (nan)", *words, "--step-timeout", "nan")


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
