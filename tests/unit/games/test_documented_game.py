"""The example of docs/tutorials/own_game.md, run with the page's commands."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "own_game.md"


@pytest.fixture
def folder(tmp_path):
    """Returns a working directory that contains the page's source file."""
    text = PAGE.read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    (name,) = re.findall(r"`(\w+\.py)`\. The first player", text)
    (tmp_path / name).write_text(block)
    return tmp_path


def command(name):
    """Returns the arguments of the page's command ``tengen NAME``."""
    (line,) = re.findall(rf"^tengen {name} .*", PAGE.read_text(), re.M)
    return shlex.split(line)[1:]


def tengen(cwd, *words):
    line = [sys.executable, "-P", "-m", "tengen", *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=900)


def test_it_keeps_the_protocol(folder):
    done = tengen(folder, *command("game check"))
    assert done.returncode == 0, done.stderr
    seen, verdict = done.stdout.splitlines()
    assert verdict == "domineering:Domineering follows the protocol in 100 random games"
    numbers = re.fullmatch(
        r"seen     games of (\d+) to (\d+) plies; "
        r"(\d+) won by the first player, 0 drawn, (\d+) lost",
        seen,
    )
    fewest, most, won, lost = map(int, numbers.groups())
    assert 4 < fewest < most <= 12
    assert won + lost == 100
    assert min(won, lost) > 10


def test_the_page_names_what_is_written(folder):
    files = {path.name for path in folder.iterdir()}
    done = tengen(folder, *command("game new"), "--json")
    report = json.loads(done.stdout.splitlines()[-1])
    assert {path.name for path in folder.iterdir()} - files == set(report["files"])
    assert all(f"`{name}`" in PAGE.read_text() for name in report["files"])


def test_planes_that_hide_something_are_warned_of(folder):
    """Planes must show the player to move if the legal actions depend on it."""
    path = folder / "domineering.py"
    shown = "stone_planes(np.reshape(state[0], (SIZE, SIZE)), self.to_play(state))"
    assert shown in path.read_text()
    path.write_text(path.read_text().replace(shown, f"{shown}[:1]"))
    done = tengen(folder, *command("game check"), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["warning"] == (
        "observation (equal at plies 0 and 1, although the side to move differs) "
        "should show who moves, unless the rules treat both sides alike, because "
        "positions with equal planes share an evaluation; add planes"
    )
    assert sum(report["results"]) == report["num_games"] == 100


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            ("return not self.legal_actions(state)", "return False"),
            "tengen: Domineering.legal_actions ([]) must not be empty",
        ),
        (("(-1, 1) if", "(1, 1) if"), "tengen: Domineering.returns ((1, 1)) must be"),
    ],
)
def test_a_mistake_is_named(folder, change, line):
    path = folder / "domineering.py"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    done = tengen(folder, *command("game check"))
    assert done.returncode == 2
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("task", ["connect4", "gymnasium:Env"])
def test_what_is_no_game_of_ones_own_is_refused(folder, task):
    pytest.importorskip("gymnasium")
    done = tengen(folder, "game", "check", task)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: task ({task}) must be ")
