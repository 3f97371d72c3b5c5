"""A bundled player that tests may damage."""

import shutil

import pytest

from tengen.bundled import players


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The folder of tictactoe's files, of which alone the package now consists."""
    folder = tmp_path / "players"
    shutil.copytree(players.FOLDER / "tictactoe", folder / "tictactoe")
    monkeypatch.setattr(players, "FOLDER", folder)
    return folder / "tictactoe"
