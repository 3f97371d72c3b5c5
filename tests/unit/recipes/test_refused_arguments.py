"""What cannot work is refused with one line, before anything is written."""

from __future__ import annotations

import sys
import threading

import pytest

from tengen import cli, envs
from tengen.distribution import pip_install
from tengen.envs.suites.gymnasium_ids import SUITE
from tengen.observe.view import View


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Runs a command that is refused; returns its line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tengen.recipes.run._PATIENCE_S", 1e6)

    def run(*words):
        assert cli.main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []
        return captured.err

    return run


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        (
            "agent.rating.opening_plies=9",
            "agent.rating.opening_plies (9) must be 0 to 8; ",
        ),
        ("agent.gate.opening_plies=9", "agent.gate.opening_plies (9) must be 0 to 8; "),
    ],
)
def test_openings_longer_than_the_game(refused, setting, line):
    words = ["train", "tictactoe", "--minutes", "0.1", "--set", "agent.gate.kind=match"]
    assert f"tengen: {line}" in refused(*words, "--set", setting)


@pytest.mark.parametrize(
    ("task", "more"),
    [("connect4", "net.auxiliary=true"), ("go/9", "net.auxiliary=false")],
)
def test_a_score_that_nobody_estimates(refused, task, more):
    words = ["train", task, "--minutes", "0.1", "--set", more]
    line = refused(*words, "--set", "agent.actor.search.score_weight=0.4")
    assert "search.score_weight (0.4) needs a network that estimates" in line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["recipes", "--recipe", "zzz"], "recipe (zzz) must come with a task; "),
        (["recipes", "--openspiel", "x"], "task (x) does not go with --openspiel"),
        (
            ["recipes", "--openspiel", "--recipe", "x"],
            "recipe (x) does not go with --openspiel",
        ),
        (["train", "tictactoe", "--out", ""], "out () must name a directory; "),
        (["train", "tictactoe", "--games", "9" * 30], "must be 0 to 1000000000; "),
        (["train", "tictactoe", "--minutes", "1e308"], "must be above 0 and at most"),
    ],
)
def test_arguments_that_mean_nothing(refused, words, line):
    assert line in refused(*words)


@pytest.mark.parametrize("out", ["notes", "notes/run"])
def test_a_file_where_the_run_should_be(capsys, tmp_path, out):
    (tmp_path / "notes").write_text("mine")
    words = ["train", "tictactoe", "--minutes", "0.1", "--out", str(tmp_path / out)]
    assert cli.main(words) == 2
    line = (
        f"tengen: path ({tmp_path / out}) must be a directory, not a file or in one; "
    )
    assert capsys.readouterr().err == f"{line}choose another --out\n"
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            ["forced_playouts=2", "noise_shaped=true"],
            "noise_shaped (True) must stay False where policy is gumbel, which does "
            "not read it; leave it out or set policy to puct\n",
        ),
        (
            ["policy=puct", "gumbel_considered=4"],
            "gumbel_considered (4) must stay 16 where policy is puct, ",
        ),
    ],
)
def test_a_setting_of_another_search(refused, settings, line):
    words = [
        word for text in settings for word in ("--set", f"agent.actor.search.{text}")
    ]
    out = refused("train", "connect4", "--minutes", "0.1", *words)
    assert out.startswith(f"tengen: agent.actor.search.{line}")


@pytest.mark.parametrize("folder", ["checkpoints", "models", "candidates"])
def test_a_run_that_has_lost_its_config_is_not_begun_anew(tmp_path, capsys, folder):
    """Another agent, another seed: nothing of before would fit."""
    kept = tmp_path / "run" / folder / "000003"
    kept.mkdir(parents=True)
    assert cli.main(["train", "tictactoe", "--out", str(tmp_path / "run")]) == 2
    line = capsys.readouterr().err
    assert f"has {folder}/ and no run.json" in line
    assert line.count("\n") == 1
    assert list((tmp_path / "run").rglob("*")) == [kept.parent, kept]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["listen=foo"], "launch.listen (foo) must be HOST:PORT; "),
        (
            ["listen=0.0.0.0:7070"],
            "launch.listen (0.0.0.0:7070) can be reached by other",
        ),
        (["listen=127.0.0.1:1", "key_file=k"], "launch.key_file (k) must come with "),
    ],
)
def test_an_address_for_other_machines(refused, settings, line):
    words = [word for text in settings for word in ("--set", f"launch.{text}")]
    assert f"tengen: {line}" in refused("train", "tictactoe", "--games", "0", *words)


@pytest.mark.parametrize("text", ["class P:\n  reset = print\n", "def P(): return 3\n"])
def test_what_is_neither_a_game_nor_an_environment(tmp_path, monkeypatch, capsys, text):
    name = f"neither_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", f"{name}:P", "--minutes", "1"]) == 2
    line = capsys.readouterr().err
    assert "tengen.games.OwnGame, or an environment, a gymnasium.Env" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("others", [[], ["minatar/Breakout"]])
def test_an_environment_without_gymnasium(refused, monkeypatch, others):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    # MinAtar needs no Gymnasium.
    monkeypatch.setattr(envs, "names", lambda: [*SUITE.names(), *others])
    line = refused("train", "CartPole-v1")
    assert line.startswith("tengen: task (CartPole-v1) is not known; ")
    assert pip_install("--upgrade", "gymnasium>=1.1") in line
    assert 'did you mean "connect4"?' in refused("train", "conect4")


def test_a_replay_without_room(refused, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(
        "tengen.experience.steps.room._free_bytes", lambda folder: 2_000_000
    )
    line = refused("train", "CartPole-v1", "--agent", "dqn", "--frames", "100")
    assert line.startswith(
        "tengen: store.max_items (100000) must fit the 2.0 MB that are free on the disk"
    )
    words = ["train", "CartPole-v1", "--agent", "dqn", "--actors", "2"]
    line = refused(*words, "--frames", "100")
    assert "the 2.0 MB that are free in /dev/shm, where actors reach it" in line
    line = refused("train", "CartPole-v1", "--set", "store.memory_bytes=5000")
    assert line.startswith("tengen: store.memory_bytes (5000) must be 0 where")


@pytest.mark.parametrize(
    ("task", "advice"),
    [
        # Where it is installed its scenario is named, else the suite.
        ("footbal/academy_corner", 'did you mean "football/'),
        ("smax/3m", "tengen recipes lists what can be trained"),
    ],
)
def test_a_suite_that_is_not_known(refused, task, advice):
    line = refused("train", task)
    assert line.startswith(f"tengen: task ({task}) is not known; {advice}")


@pytest.mark.parametrize(
    "words",
    [["CartPole-v2000"], ["CartPole-v1", "--set", "foo=1"]],
    ids=["environment", "setting"],
)
def test_an_environment_that_is_not_trained_is_not_said_to_start(refused, words):
    pytest.importorskip("gymnasium")
    assert refused("train", *words)


def test_an_environment_that_is_slow_is_said_to_be_made(capsys, tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    said = threading.Event()
    monkeypatch.setattr("tengen.recipes.run._PATIENCE_S", 0.0)
    monkeypatch.setattr(
        "tengen.recipes.call.check_writable", lambda path: said.wait(900) or None
    )
    starting = View.starting

    def tell(view, what):
        starting(view, what)
        said.set()

    monkeypatch.setattr(View, "starting", tell)
    words = ["CartPole-v1", "--set", "foo=1", "--out", str(tmp_path / "run")]
    assert cli.main(["train", *words]) == 2
    assert capsys.readouterr().out == "starting: making the environment\n"
