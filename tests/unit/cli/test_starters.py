"""The files of ``game new`` and ``env new`` work, and so do the commands they name."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import cli
from tests.integration.runs import SMALL

# Replacements for the named commands' budgets, which are minutes of training.
BRIEF = {
    "--minutes 2": " ".join(
        ["--games 8"]
        + [
            f"--set {setting}"
            for setting in (
                *SMALL,
                "agent.actor.games_per_generation=8",
                "store.min_rows=20",
            )
        ]
    ),
    "--frames 20k": "--frames 2k",
    "--episodes 100": "--episodes 10",
}


def written(tmp_path, capsys, *words):
    """Runs a command twice; returns its JSON report and its printed lines."""
    assert cli.main([*words, "--out", str(tmp_path / "a b"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert cli.main([*words, "--out", str(tmp_path / "other")]) == 0
    return report, capsys.readouterr().out.splitlines()


@pytest.fixture
def run(monkeypatch, type_in, capsys):
    """Returns a function that runs a command line and returns its output."""

    def run_tengen(command, cwd):
        program, *words = shlex.split(command)
        assert program == "tengen"
        monkeypatch.chdir(cwd)
        type_in("")
        before = [*sys.path]
        code = cli.main(words)
        sys.path[:] = before
        for name in ("mine", "my_game", "my_env"):
            sys.modules.pop(name, None)
        out, err = capsys.readouterr()
        assert code == 0, err + out
        return out

    return run_tengen


def brief(command):
    for long, short in BRIEF.items():
        command = command.replace(long, short)
    return command


@pytest.mark.parametrize("kind", ["game", "env"])
def test_both_files_are_written_and_pass_their_own_tests(kind, tmp_path, capsys, run):
    if kind == "env":
        pytest.importorskip("gymnasium")
    name, made = f"my_{kind}", f"My{kind.capitalize()}"
    report, printed = written(tmp_path, capsys, kind, "new", name)
    folder = tmp_path / "a b"
    files = [str(folder / f"{name}.py"), str(folder / f"test_{name}.py")]
    assert report["files"] == files
    assert report["task"] == f"{name}:{made}"
    other = tmp_path / "other"
    assert printed == [
        f"wrote {other / f'{name}.py'} and {other / f'test_{name}.py'}; their comments "
        "say what to change. Next:",
        f"  cd {other}",
        *(f"  {command}" for command in report["commands"][1:]),
    ]
    # Runs only the fast commands; the next test runs the others.
    cd, check, test, train, _ = report["commands"]
    assert shlex.split(cd) == ["cd", str(folder)]
    assert train.startswith(f"tengen train {name}:{made} ")
    assert "s the " in run(check, folder)
    python, *words = shlex.split(test)
    assert python == "python"
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    text = "".join(Path(path).read_text() for path in files)
    assert "starter" not in text.lower()
    assert text.count("hange: ") >= 10
    for words in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--isolated", *files]
        done = subprocess.run(ruff, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["game", "env"])
def test_every_command_that_is_named_works(kind, tmp_path, capsys, run):
    if kind == "env":
        pytest.importorskip("gymnasium")
    report, _ = written(tmp_path, capsys, kind, "new", "mine")
    train, last = report["commands"][-2:]
    assert any(long in train for long in BRIEF)
    printed = run(brief(train), tmp_path / "a b")
    # Training ends by naming the last command of ``new``'s report.
    assert last in printed
    printed = run(brief(last), tmp_path / "a b")
    assert ("you are X" if kind == "game" else "10 episodes") in printed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My_game", "lowercase letters"),
        ("2048", "lowercase letters"),
        ("a-b", "lowercase letters"),
        ("a/b", "lowercase letters"),
        ("", "lowercase letters"),
        ("test_it", "not with test"),
        ("x" * 61, "at most 60"),
        ("class", "module class and class Class"),
        ("none", "module none and class None"),
        ("state", "module state and class State"),
        ("random", "an existing Python module (random); try my_random"),
        ("numpy", "an existing Python module (numpy)"),
        ("tengen", "an existing Python module (tengen)"),
    ],
)
def test_a_name_that_would_not_work_is_refused(name, words, tmp_path, capsys):
    assert cli.main(["game", "new", name, "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"tengen: name ({name}) must ")
    assert words in line
    assert line.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_module_that_would_be_hidden_is_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "test_mine.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    assert cli.main(["env", "new", "mine", "--out", str(out)]) == 2
    assert "(test_mine); try my_mine" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("there", ["mine.py", "test_mine.py"])
def test_nothing_is_overwritten(there, tmp_path, capsys):
    (tmp_path / there).write_text("mine")
    assert cli.main(["game", "new", "mine", "--out", str(tmp_path)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"tengen: file ({tmp_path / there}) must not exist yet;")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert cli.main(["game", "new", "mine", "--out", str(tmp_path / "file/x")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
