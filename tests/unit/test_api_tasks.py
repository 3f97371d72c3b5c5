"""Names of classes, functions, games and environments that a program passes."""

import functools
import os
import subprocess
import sys

import pytest

from tengen.api import importable, task_name
from tengen.errors import UsageError
from tengen.games import make
from tests.refusals import refused


class Plain:
    def reset(self): ...

    def step(self, action): ...


class WithArguments(Plain):
    def __init__(self, size):
        self.size = size


def make_plain():
    return Plain()


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("go/9", "go/9"),
        (Plain, f"{__name__}:Plain"),
        (make_plain, f"{__name__}:make_plain"),
        (Plain(), f"{__name__}:Plain"),
    ],
)
def test_a_task_is_named_as_other_processes_import_it(task, name):
    assert task_name(task) == name


def test_a_game_has_its_name():
    assert task_name(make("go/5/komi=6.5")) == "go/5/komi=6.5"


def test_what_others_cannot_make_is_refused():
    class Inner: ...

    for task, named in (
        (Inner, "<locals>.Inner"),
        (lambda: Plain(), "<lambda>"),
        (WithArguments(3), "a WithArguments"),
        (functools.partial(WithArguments, 3), "a partial"),
        (3, "a int"),
    ):
        with refused(UsageError, named):
            task_name(task)


def test_an_environment_of_gymnasium_is_named_by_its_id():
    gymnasium = pytest.importorskip("gymnasium")
    assert task_name(gymnasium.make("CartPole-v1", render_mode="rgb_array")) == (
        "CartPole-v1"
    )
    changed = gymnasium.make("CartPole-v1", sutton_barto_reward=True)
    with refused(UsageError, "CartPole-v1 with arguments"):
        task_name(changed)


def test_others_import_it_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "inner.py").write_text("class Env: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    with importable("far.inner:Env"):
        assert os.environ["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/elsewhere"
        code = "import far.inner; print(far.inner.Env.__name__)"
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        assert done.stdout == "Env\n"
    assert os.environ["PYTHONPATH"] == "/elsewhere"
    monkeypatch.delenv("PYTHONPATH")
    with importable("far.inner:Env"):
        assert os.environ["PYTHONPATH"] == str(tmp_path)
    assert "PYTHONPATH" not in os.environ
    for everywhere in ("go/9", "json:JSONDecoder"):
        with importable(everywhere):
            assert "PYTHONPATH" not in os.environ
