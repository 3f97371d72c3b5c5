"""The bundled players exist, are complete, and can be opened by name."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tengen
from tengen import bundled, cli
from tengen.bundled import players
from tengen.errors import UsageError
from tengen.games import open_game
from tengen.models import resolve_model
from tests.refusals import refused

NAMES = bundled.bundled_names()


def test_the_games_that_are_promised():
    assert {"tictactoe", "connect4", "gomoku/9", "gomoku/15", "go/7", "go/9"} <= {
        *NAMES
    }


def test_all_together_are_small():
    files = [path for path in players.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert {path.suffix for path in files} == {".json", ".onnx", ".safetensors"}


@pytest.mark.parametrize("name", NAMES)
def test_each_plays_a_legal_game(name):
    with tengen.load(f"bundled:{name}") as player:
        assert player.game.name == name
        state, moves = open_game(name).new_state(), []
        while not state.is_terminal() and len(moves) < 30:
            action = player.choose(moves, simulations=2)
            assert action in state.legal_actions()
            state.apply(action)
            moves.append(action)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_how_it_was_made_and_what_it_scores(name):
    told = bundled.read_manifest(name)
    assert (told.name, told.task) == (name, name)
    row, typed = cli.parse_command(told.command.split(" && ")[0].split()[1:])
    assert (row.name, typed.task) == ("train", name)
    assert re.fullmatch("[0-9a-f]{40}", told.commit)
    assert re.fullmatch("[0-9]+x[0-9]+|lines [0-9]+", told.net)
    assert told.recipe
    assert told.games > 0
    assert told.cpu_seconds > 0
    assert told.strength
    for figure in told.strength:
        assert figure.low <= figure.value <= figure.high
        assert figure.command
    assert len(told.levels) >= 5
    ratings = [level.rating for level in told.levels]
    assert ratings == sorted(ratings)
    assert told.levels_command


@pytest.mark.parametrize("name", NAMES)
def test_each_was_made_nowhere(name):
    """A model contains no path of the machine that trained it."""
    meta = resolve_model(f"bundled:{name}").meta
    assert meta.origin.run == f"runs/{name}"


def test_a_bare_name_is_one_where_there_is_no_such_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve_model("tictactoe").path == resolve_model("bundled:tictactoe").path
    (tmp_path / "tictactoe").mkdir()
    with refused(UsageError, "run (tictactoe)"):
        resolve_model("tictactoe")
    assert bundled.bundled_name("tictactoe") is None
    (tmp_path / "connect4").touch()
    with refused(UsageError, "model (connect4)"):
        resolve_model("connect4")


def test_a_run_of_that_name_wins(tmp_path, monkeypatch, publish_run):
    monkeypatch.chdir(tmp_path)
    publish_run(tmp_path / "tictactoe", "tictactoe", exports=False)
    found = resolve_model("tictactoe").path
    assert found.resolve().is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("bundled:tictactoo", 'did you mean "tictactoe"?'),
        ("bundled:", "known:"),
        ("bundled:../../x", "is not known"),
        ("conect4", 'did you mean "connect4"?'),
        ("a\0b", "must be a run directory"),
    ],
)
def test_an_unknown_name_is_one_line(word, words):
    with refused(UsageError, words):
        resolve_model(word)


@pytest.mark.parametrize("file", ["weights.safetensors", "model.onnx", "meta.json"])
def test_a_damaged_file_is_one_line(copied, file, capsys):
    data = bytearray((copied / file).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / file).write_bytes(data)
    words = ["match", "bundled:tictactoe", "random", "--games", "2"]
    assert cli.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is damaged" in line
    assert line.endswith("reinstall tengen")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"schema": 99}, "newer"),
        ({"colour": "red"}, "colour"),
        ({"num_bytes": 5}, "must give"),
        ({"name": "go/9"}, "is for go/9"),
        ({"name": "../x"}, "must be a name such as go/9"),
        ({"sha256": {"../x": "0" * 64}}, "must name a file"),
        ({"sha256": {"meta.json": "zz"}}, "64 hex digits"),
        ({"levels": [{"name": "x", "simulations": 0}]}, "simulations"),
        ({"levels": [{"name": "x", "temperature": 1e9}]}, "temperature"),
        ({"levels": [{"name": "x"}] * 33}, "at most 32"),
        ({"strength": [{}]}, "strength"),
        ({"games": -1}, "games"),
    ],
)
def test_a_wrong_manifest_is_refused(copied, changed, words):
    path = copied / "player.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    with refused(UsageError, words):
        resolve_model("bundled:tictactoe")


def test_what_is_not_json_or_missing_is_refused(copied):
    (copied / "player.json").write_bytes(b"{")
    with refused(UsageError, "player.json"):
        resolve_model("bundled:tictactoe")
    (copied / "player.json").unlink()
    with refused(UsageError, "tictactoe"):
        resolve_model("bundled:tictactoe")


def test_a_file_beyond_all_bounds_is_not_read(copied):
    with (copied / "model.onnx").open("ab") as file:
        file.truncate(1 << 40)
    with refused(UsageError, "model.onnx"):
        resolve_model("bundled:tictactoe")


def test_the_list(capsys):
    assert cli.main(["players", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["players"]
    assert [player["name"] for player in told] == NAMES
    assert cli.main(["players", "tictactoe"]) == 0
    assert "beginner" in capsys.readouterr().out
    assert cli.main(["players", "chess"]) == 2


def test_half_precision_becomes_a_graph_for_others(tmp_path, capsys):
    words = ["data", "export-onnx", "bundled:tictactoe", str(tmp_path / "net.onnx")]
    assert cli.main(words) == 0
    assert (tmp_path / "net.onnx").stat().st_size > 0


def test_torch_answers_as_openvino_does():
    import numpy as np

    from tengen.inference import InferenceConfig, open_backend
    from tengen.models.check import check_export

    path = resolve_model("bundled:connect4").path
    backend = open_backend(
        path,
        InferenceConfig(backend="openvino", precision="fp32", batch_shape="dynamic"),
        1,
    )
    planes = np.random.default_rng(0).random((8, 4, 6, 7)).round().astype(np.float32)
    check_export(path, backend, {"planes": planes})


def test_a_process_plays_go(tmp_path):
    lines = "boardsize 7\ngenmove b\ngenmove w\nshowboard\nquit\n"
    done = subprocess.run(
        [sys.executable, "-m", "tengen", "gtp", "go/7", "--level", "2"],
        input=lines.encode(),
        capture_output=True,
        cwd=tmp_path,
        timeout=600,
        check=True,
    )
    answers = done.stdout.decode().split("\n\n")
    assert answers[0].strip() == "="
    for answer in answers[1:3]:
        assert re.fullmatch("= ([A-HJ][1-7]|pass)", answer)
    assert len(done.stderr) == 0


def test_a_process_plays_on_the_terminal(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tengen", "play", "connect4", "--level", "beginner"],
        input=b"3\n3\nquit\n",
        capture_output=True,
        cwd=tmp_path,
        timeout=600,
        check=True,
    )
    assert b"connect4 plays" in done.stdout


def test_the_wheel_takes_them():
    """The build must not exclude the players, which are data beside the modules."""
    import tomllib

    root = Path(__file__).parents[3]
    build = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert build["wheel"]["packages"] == ["src/tengen"]
    assert "wheel.exclude" not in build
    kept = [str(path) for path in (root / "src/tengen/bundled/players").rglob("*")]
    assert len(kept) > len(NAMES)
    tracked = subprocess.run(
        ["git", "check-ignore", *kept],
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert tracked.stdout == b""


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_what_was_measured(name):
    page = (Path(__file__).parents[3] / "docs/howto/train/players.md").read_text()
    told = bundled.read_manifest(name)
    for figure in told.strength:
        share = f"{100 * figure.value:.1f}".rstrip("0").rstrip(".")
        assert f"| {name} | {figure.what} | {share} |" in page
        assert f"`{figure.command}`" in page
    for number, level in enumerate(told.levels, 1):
        cell = f"{number}: {level.rating:.0f} +- {level.rating_error:.0f} |"
        assert cell in page
    assert f"{told.games:,} | {told.cpu_seconds:,.0f} |" in page
