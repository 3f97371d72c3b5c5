"""A bundled player that tests may damage."""

import shutil

import pytest

from tengen.bundled import players


@pytest.fixture
def bundled_in(monkeypatch):
    """Has the package consist of the players in a folder."""
    return lambda folder: monkeypatch.setattr(players, "FOLDER", folder)


@pytest.fixture
def copied(tmp_path, bundled_in):
    """The folder of tictactoe's files, of which alone the package now consists."""
    folder = tmp_path / "players"
    shutil.copytree(players.FOLDER / "tictactoe", folder / "tictactoe")
    bundled_in(folder)
    return folder / "tictactoe"
