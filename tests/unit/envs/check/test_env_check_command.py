"""``tengen env check``: what it prints and returns, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from tengen import cli, envs
from tengen.errors import UsageError
from tests.refusals import refused
from tests.unit.envs.check import planted

STEPS = ("--steps", "200")


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Runs the command on a task; a module ``planted_envs`` lies there."""
    source = Path(planted.__file__).read_text()
    (tmp_path / "planted_envs.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planted_envs", raising=False)

    def run(task, *words):
        code = cli.main(["env", "check", task, *STEPS, *words])
        return code, *capsys.readouterr()

    return run


def test_one_that_keeps_the_contract(check):
    code, out, err = check("planted_envs:Walk")
    assert (code, err) == (0, "")
    seen, speed, verdict = out.splitlines()
    assert seen.startswith("seen     200 steps, ")
    assert seen.endswith(" steps; rewards -1 to 1")
    assert speed.startswith("speed    ")
    assert "% of the time in reset" in speed
    assert verdict == "planted_envs:Walk keeps the contract"
    code, out, _ = check("planted_envs:Walk", "--json")
    report = json.loads(out)
    assert code == report["exit_code"] == 0
    assert (report["is_kept"], report["is_whole"]) == (True, True)
    assert report["findings"] == []
    assert report["episodes"]["num_steps"] == 200
    assert report["cost"]["num_copies"] == 1


@pytest.mark.parametrize(
    ("name", "rewards"),
    [("RewardsOfNaN", "no finite reward"), ("RewardsWithoutBound", "rewards 0 to 0")],
)
def test_rewards_that_no_agent_can_have_are_in_no_range(check, name, rewards):
    code, out, _ = check(f"planted_envs:{name}")
    assert code == 1
    broken, seen, *_ = out.splitlines()
    assert broken.startswith("broken   reward (")
    assert "must be" in broken
    assert seen.endswith(f"; {rewards}")


def test_one_that_breaks_it_leaves_with_1(check):
    code, out, err = check("planted_envs:EndsByNumbers")
    assert (code, err) == (1, "")
    first, *_, verdict = out.splitlines()
    assert first == (
        "broken   terminated (int 0) must be a bool at episode 1, step 1; "
        "return bool(...)"
    )
    assert verdict == (
        "planted_envs:EndsByNumbers breaks the contract: 1 fault; the other checks run "
        "once it is fixed"
    )
    code, out, _ = check("planted_envs:EndsByNumbers", "--json")
    report = json.loads(out.splitlines()[-1])
    assert code == report["exit_code"] == 1
    assert (report["is_kept"], report["is_whole"]) == (False, False)
    assert [one["rule"] for one in report["findings"]] == ["step.terminated"]


def test_a_warning_is_no_failure(check):
    code, out, _ = check("planted_envs:IsDouble")
    assert code == 0
    assert out.startswith("warning  observation (float64) should have")
    assert out.endswith("IsDouble keeps the contract, with 1 warning\n")


def test_one_that_hangs_is_named(check):
    code, out, _ = check("planted_envs:HangsInStep", "--timeout", "0.5")
    assert code == 1
    assert out.startswith("broken   step(")
    assert "(still runs after 0.5 s) must return; " in out


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_one_that_nothing_interrupts_is_named_too(tmp_path, words):
    source = Path(__file__).parents[3] / "environments.py"
    (tmp_path / "my_envs.py").write_text(source.read_text())
    command = [sys.executable, "-P", "-m", "tengen", "env", "check"]
    command += ["my_envs:HangingForGood", "--timeout", "0.5", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "environment (my_envs:HangingForGood) hangs (step" in done.stderr
    found = "(still runs after 0.5 s) must return; "
    if words:
        report = json.loads(done.stdout)
        (finding,) = [one for one in report["findings"] if one["rule"] == "hangs"]
        assert found in finding["message"]
        assert not report["is_kept"]
        assert not report["is_whole"]
    else:
        assert found in done.stdout


def test_a_function_that_returns_one_is_checked(check, tmp_path):
    text = (
        "from gymnasium.wrappers import TimeLimit\n"
        "from planted_envs import NeverEnds\n"
        "def limited(): return TimeLimit(NeverEnds(), 7)\n"
    )
    (tmp_path / "planted_limit.py").write_text(text)
    code, out, _ = check("planted_limit:limited")
    assert code == 0
    assert "after 7 to 7 steps" in out
    assert "planted_limit:limited keeps the contract\n" in out


@pytest.mark.parametrize("task", ["CartPole-v1", "minatar/Breakout"])
def test_an_installed_one_is_checked(check, task):
    """The second has no ``gymnasium.Env`` to show, but copies alone."""
    if task not in envs.names():
        pytest.skip(f"{task} is not installed")
    code, out, _ = check(task)
    assert code == 0, out
    assert out.endswith(f"{task} keeps the contract\n")
    assert ("8 copies" in out) == (task == "minatar/Breakout")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("planted_none:Env",), "task (planted_none:Env) must name an importable"),
        (("planted_envs:Wall",), 'did you mean "Walk"?'),
        (("CartPole-v9",), 'environment ("CartPole-v9") is not known to Gymnasium'),
        (("minatar/Pong",), 'environment ("minatar/Pong")'),
        (("connect4",), "task (connect4) must be an environment; see tengen game"),
        (("planted_envs:Walk", "--steps", "0"), "steps (0) must be 1 to"),
        (("planted_envs:Walk", "--seed", "-1"), "seed (-1) must be 0 to"),
        (("planted_envs:Walk", "--timeout", "0"), "timeout (0.0) must be 0.1 to"),
        (("planted_envs:Walk", "--step", "9"), "option (--step) is not known"),
    ],
)
def test_bad_usage_leaves_with_2(check, words, line):
    code, out, err = check(*words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_a_game_is_refused(check, tmp_path):
    (tmp_path / "planted_game.py").write_text(
        "class Game:\n    def legal_actions(self, state): return [0]\n"
    )
    code, _, err = check("planted_game:Game")
    assert code == 2
    assert "(planted_game:Game) must be an environment; see tengen game check" in err


def test_its_tests_can_ask_for_it():
    envs.check_own_env(planted.Walk, num_steps=100)
    with refused(UsageError, "reward (NoneType"):
        envs.check_own_env(planted.RewardsByNone, num_steps=100)
