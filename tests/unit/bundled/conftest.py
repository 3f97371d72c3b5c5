"""A bundled player that tests may damage."""

import shutil

import pytest

from tengen.bundled import players


@pytest.fixture
def bundled_in(monkeypatch):
    """Replaces the package's players with those in a folder."""
    return lambda folder: monkeypatch.setattr(players, "FOLDER", folder)


@pytest.fixture
def copied(tmp_path, bundled_in):
    """Returns a copy of the tic-tac-toe player's files, the only one in the package."""
    folder = tmp_path / "players"
    shutil.copytree(players.FOLDER / "tictactoe", folder / "tictactoe")
    bundled_in(folder)
    return folder / "tictactoe"
