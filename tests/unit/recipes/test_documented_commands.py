"""Every command of README and docs that trains a board game makes its run."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tengen import cli
from tengen.roles import read_config
from tengen.run import RunDirectory

ROOT = Path(__file__).resolve().parents[3]
# Of the core: no other package, no device and no file of the user's is needed.
TASK = re.compile(r"(connect4|go/[0-9x]+|gomoku/[0-9]+)$")


def commands():
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text().replace("\\\n", " ")
        for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
            lines = [re.split(r"\s{3,}|\s+# ", line)[0] for line in block.splitlines()]
            found += [line for line in lines if line.startswith("tengen train ")]
    return found


def is_of_the_core(command):
    words = shlex.split(command)
    return TASK.match(words[2]) is not None and "--devices" not in words


def test_there_are_such_commands():
    assert sum(map(is_of_the_core, commands())) >= 10


@pytest.mark.parametrize("command", [*filter(is_of_the_core, commands())])
def test_it_is_taken(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command.replace("=TARGET", "=random"))[1:]
    if "agent.learn_from=main" in words:
        assert cli.main(["train", words[1], "--out", "main", "--games", "0"]) == 0
    for book in re.findall(r"agent\.book=(\S+)", command):
        content = {"schema": 1, "task": words[1], "openings": [{"moves": [0]}]}
        Path(book).write_text(json.dumps(content))
    for option in ("--out", "--games"):
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    assert cli.main([*words, "--out", "run", "--games", "0", "--devices", "cpu"]) == 0
    task = read_config(RunDirectory(tmp_path / "run")).task
    # The recipes of a benchmark have a form of the task of their own.
    assert task.removesuffix("/nosuicide/planes=minigo") == words[1]
