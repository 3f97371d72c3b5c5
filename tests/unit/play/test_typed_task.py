"""A model whose task names a program: only code that the user typed is run."""

import gc
import json
import sys
from pathlib import Path

import pytest

import tengen
from tengen import cli
from tengen.errors import UsageError
from tests.refusals import refused

OWN_GAMES = Path(__file__).parents[1] / "games" / "own_games.py"
# Tic-tac-toe, which a model of the native game can play as well.
EVIL = """
from pathlib import Path

Path(__file__).with_name("marker").touch()

class Game(TicTacToe):
    pass
"""
PLAYING = ("--games", "2", "--simulations", "2", "--threads", "1")


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    return publish_run(
        tmp_path_factory.mktemp("typed") / "run", "tictactoe", exports=False
    )


@pytest.fixture
def model(run):
    """Returns a function that changes the task of the run's real model."""

    def make(task):
        folder = run.models.entry(0)
        content = json.loads((folder / "meta.json").read_text())
        (folder / "meta.json").write_text(json.dumps({**content, "task": task}))
        return str(folder)

    return make


@pytest.fixture
def marker(tmp_path, monkeypatch, type_in):
    """Returns the file that the module ``evil`` creates when it is run."""
    monkeypatch.chdir(tmp_path)
    before = [*sys.path]
    type_in("quit\n")
    (tmp_path / "evil.py").write_text(OWN_GAMES.read_text() + EVIL)
    yield tmp_path / "marker"
    sys.path[:] = before
    sys.modules.pop("evil", None)


def refused_line(capsys, words, line):
    path = [*sys.path]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tengen: ")
    assert line in err
    assert err.count("\n") == 1
    assert sys.path == path
    assert "evil" not in sys.modules


COMMANDS = (
    ["play", "MODEL"],
    ["gtp", "MODEL"],
    ["match", "MODEL", "random", *PLAYING],
    ["match", "random", "MODEL", *PLAYING],
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:3]))
def test_what_a_model_names_is_not_imported(capsys, model, marker, words):
    path = model("evil:Game")
    words = [path if word == "MODEL" else word for word in words]
    refused_line(
        capsys,
        words,
        f"task (evil:Game) of {path} is a program, which runs only if you name it; add "
        "--task evil:Game to run it",
    )
    for typed in ("other:Game", "evil:TicTacToe"):
        line = f"task ({typed}) must be evil:Game, as in {path}; "
        refused_line(capsys, [*words, "--task", typed], line)
    # A typed native game does not run the program either.
    refused_line(capsys, [*words, "--task", "tictactoe"], "evil:Game")
    assert not marker.exists()


def test_a_function_that_needs_no_arguments_is_not_called(capsys, model, marker):
    path = model("gc:disable")
    for words in COMMANDS:
        words = [path if word == "MODEL" else word for word in words]
        refused_line(capsys, words, "add --task gc:disable to run it")
    with refused(UsageError, "task (gc:disable)"):
        tengen.load(path)
    assert gc.isenabled()


def test_the_line_to_type_is_safe_to_copy(capsys, model):
    path = model("evil; touch marker:Game")
    line = "; add --task 'evil; touch marker:Game' to run it"
    refused_line(capsys, ["play", path], line)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["play", "MODEL"], 0),
        (["match", "MODEL", "random", *PLAYING], 0),
        (["match", "MODEL", "MODEL", *PLAYING], 0),
        # The game is created, but it is not Go.
        (["gtp", "MODEL"], 2),
    ],
    ids=lambda words: "",
)
def test_what_is_typed_is_imported(capsys, model, marker, words, code):
    path = model("evil:Game")
    words = [path if word == "MODEL" else word for word in words]
    assert cli.main([*words, "--task", "evil:Game"]) == code
    assert marker.exists()
    if code:
        assert "name a model of Go" in capsys.readouterr().err


def test_a_match_without_a_model_plays_what_is_typed(capsys, marker):
    words = ["match", "random", "mcts:2", *PLAYING, "--task", "evil:Game", "--json"]
    assert cli.main(words) == 0
    assert marker.exists()


def test_a_typed_program_is_not_that_of_a_native_model(capsys, model, marker):
    path = model("tictactoe")
    line = f"task (evil:Game) must be tictactoe, as in {path}; "
    for words in COMMANDS:
        words = [path if word == "MODEL" else word for word in words]
        refused_line(capsys, [*words, "--task", "evil:Game"], line)
    assert not marker.exists()
    assert cli.main(["play", path, "--task", "tictactoe"]) == 0


def test_each_load_has_to_be_told(model, marker):
    path = model("evil:Game")
    for _ in range(2):
        with refused(UsageError, "task (evil:Game)"):
            tengen.load(path)
        with refused(UsageError, "task (other:Game)"):
            tengen.load(path, task="other:Game")
        with tengen.load(path, task="evil:Game") as player:
            assert player.choose([0, 1], simulations=2) > 1
    assert marker.exists()


def test_a_game_that_python_made_allows_no_file(model, marker):
    assert tengen.games.make("evil:Game").name == "evil:Game"
    with refused(UsageError, "task (evil:Game)"):
        tengen.load(model("evil:Game"))
    with refused(UsageError, "task (evil:Game)"):
        tengen.games.open_game("evil:Game")
