"""``tengen eval --video``: films, an unchanged score, and the errors."""

import json
import sys

import pytest

from tengen import cli
from tengen.evaluation.episodes.film_formats import Gif

pytest.importorskip("gymnasium")
pytest.importorskip("PIL")

MODULE = "tests.environments"


@pytest.fixture(autouse=True)
def gif(monkeypatch):
    """Hides ffmpeg, so that all machines write GIFs."""
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def evaluate(capsys):
    def run(*words):
        assert cli.main(["eval", *map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    "task", ["CartPole-v1", "atari/Breakout/classic", f"{MODULE}:ShownAsAsked"]
)
def test_a_score_is_the_same_with_films(tmp_path, publish_agent, evaluate, task):
    from PIL import Image

    pytest.importorskip("ale_py" if task.startswith("atari/") else "pygame")
    run = publish_agent(tmp_path / "run", task)
    words = [run.path, "--episodes", 4, "--max-steps", 30, "--task", task]
    report = evaluate(*words, "--video", tmp_path / "films")
    films = report.pop("films")
    assert report == evaluate(*words)
    for i, film in enumerate(films):
        length = report["lengths"][i]
        assert film["episode"] == i
        assert film["path"] == str(tmp_path / "films" / f"episode-{i}.gif")
        assert film["steps"] == length
        # One frame before the first step and one after each step; at 60 steps per
        # second, half as many.
        expected = 1 + length if task[0] != "t" else 1 + (length + 1) // 2
        assert film["pictures"] == expected
        assert Image.open(film["path"]).format == "GIF"
    assert len(films) == 3


def test_for_people(tmp_path, publish_agent, capsys):
    task = f"{MODULE}:Shown"
    run = publish_agent(tmp_path / "run", task)
    folder = tmp_path / "films"
    words = ["eval", str(run.path), "--task", task, "--episodes", "2"]
    assert cli.main([*words, "--video", str(folder)]) == 0
    *_, first, second, third = capsys.readouterr().out.splitlines()
    assert first == f"films: {Gif().why}"
    assert second.startswith(f"{folder}/episode-0.gif: episode 0, return ")
    assert second.endswith(", 9 steps")
    assert third.startswith(f"{folder}/episode-1.gif: episode 1, return ")
    assert {path.name for path in folder.iterdir()} == {
        "episode-0.gif",
        "episode-1.gif",
    }


def test_what_is_refused_is_refused_before_anything_is_played(
    tmp_path, publish_agent, capsys, monkeypatch
):
    monkeypatch.setattr("tengen.play.eval_command.play_episodes", None)
    (tmp_path / "file").touch()
    for name, folder, line in (
        ("Catch", "films", "cannot be filmed, because its metadata lacks render mode"),
        ("NotShown", "films", "filmed, because its render() raised ValueError: "),
        ("Shown", "file", "must be a folder that can be written, but file exists"),
    ):
        task = f"{MODULE}:{name}"
        run = publish_agent(tmp_path / name, task)
        words = ["eval", str(run.path), "--task", task, "--video"]
        assert cli.main([*words, str(tmp_path / folder)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert line in captured.err
        assert captured.err.count("\n") == 1
    assert list((tmp_path / "films").iterdir()) == []
