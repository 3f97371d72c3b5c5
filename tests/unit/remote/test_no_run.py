"""A mirror is no run: what works on runs refuses it, and changes nothing there."""

from __future__ import annotations

import pytest

from tengen.cli import main
from tests.unit.remote.test_hostile_messages import files_of

ROLES = ["learn", "export", "gate", "shuffle", "inference", "selfplay", "actor"]
COMMANDS = [
    *([role, "FAR"] for role in (*ROLES, "store")),
    ["train", "tictactoe", "--games", "4", "--out", "FAR"],
    ["scale", "FAR", "selfplay=2"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_it_is_refused(host, mirror_at, tmp_path, capsys, command):
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    before = files_of(mirror.run)
    path = str(mirror.run.path)
    assert main([path if word == "FAR" else word for word in command]) == 2
    line = f"run ({path}) is a mirror of the run at {host.client().name}; "
    assert line in capsys.readouterr().err
    assert files_of(mirror.run) == before
