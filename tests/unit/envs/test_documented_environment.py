"""The worked example of docs/tutorials/own_environment.md, trained and scored."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tengen import envs, games

pytest.importorskip("gymnasium")

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "own_environment.md"


@pytest.fixture
def folder(tmp_path):
    """A working directory with the page's file in it."""
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (tmp_path / "corridor.py").write_text(block)
    return tmp_path


def test_it_keeps_the_contract(folder):
    report = report_of(folder, "env check")
    assert report["task"] == "corridor:limited"
    assert report["findings"] == []
    assert report["is_whole"]


def test_the_page_names_what_is_written(folder):
    files = {path.name for path in folder.iterdir()}
    report = report_of(folder, "env new")
    assert {path.name for path in folder.iterdir()} - files == set(report["files"])
    assert all(f"`{name}`" in PAGE.read_text() for name in report["files"])


def report_of(cwd, name):
    """Runs the page's command of a name and returns what it reports."""
    (line,) = re.findall(rf"^tengen {name} .*", PAGE.read_text(), re.M)
    words = [sys.executable, "-P", "-m", "tengen", *shlex.split(line)[1:], "--json"]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_steps_as_the_page_says(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    games.allow("corridor:limited")
    env = envs.make("corridor:limited", 4, 0)
    assert not games.is_game("corridor:limited")
    assert env.spec.observations["observation"].shape == (6,)
    first = env.reset()["observation"]
    assert (first == env.reset()["observation"]).all()
    # To the left for ever: every copy is cut short after 30 steps, then begins again.
    steps = [env.step(np.zeros(4, np.int64)) for _ in range(31)]
    assert [step.truncated.all() for step in steps] == 29 * [False] + [True, False]
    assert [step.is_reset.any() for step in steps] == 30 * [False] + [True]
    right = env.step(np.ones(4, np.int64))
    there = right.observation["observation"][:, -1] == 1
    assert (right.terminated == there).all()
    np.testing.assert_allclose(right.reward, np.where(there, 1.0, -0.1))
    env.close()
    sys.modules.pop("corridor", None)


@pytest.mark.slow
def test_it_is_trained_and_scored(folder):
    assert report_of(folder, "train")["out"] == "runs/corridor_limited"
    report = report_of(folder, "eval")
    assert len(report["returns"]) == 100
    # A walk to the right loses nothing; starts are drawn evenly: 0.8, give or take.
    lost = [
        1.1 - 0.1 * n - r
        for n, r in zip(report["lengths"], report["returns"], strict=True)
    ]
    assert max(map(abs, lost)) < 1e-5
    assert max(report["lengths"]) <= 5
