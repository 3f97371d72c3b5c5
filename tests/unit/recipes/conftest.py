"""A command that is refused before anything is written."""

import pytest

from tengen import cli


@pytest.fixture
def refused_line(capsys, tmp_path, monkeypatch):
    """Runs a command that is refused; returns its line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tengen.recipes.run._PATIENCE_S", 1e6)

    def files():
        # The import of a module in the folder, which is its user's, may cache bytecode.
        return sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts)

    def run(*words):
        before = files()
        assert cli.main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert files() == before
        return captured.err

    return run
