"""A mirror is no run: what works on runs refuses it, and changes nothing there."""

from __future__ import annotations

import pytest

from tengen.cli import main
from tests.unit.remote.test_hostile_messages import files_of

COMMANDS = [
    ["learn"],
    ["export"],
    ["gate"],
    ["shuffle"],
    ["inference"],
    ["selfplay"],
    ["actor"],
    ["store"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_roles_refuse_it(host, mirror_at, tmp_path, capsys, command):
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    check([*command, str(mirror.run.path)], mirror, host, capsys)


def test_train_refuses_it(host, mirror_at, tmp_path, capsys):
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    words = ["train", "tictactoe", "--games", "4", "--out", str(mirror.run.path)]
    check(words, mirror, host, capsys)


def test_scale_refuses_it(host, mirror_at, tmp_path, capsys):
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    check(["scale", str(mirror.run.path), "selfplay=2"], mirror, host, capsys)


def check(words, mirror, host, capsys):
    before = files_of(mirror.run)
    assert main(words) == 2
    line = f"run ({mirror.run.path}) is a mirror of the run at {host.client().name}; "
    assert line in capsys.readouterr().err
    assert files_of(mirror.run) == before
