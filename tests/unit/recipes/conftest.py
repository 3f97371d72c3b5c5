"""A command that is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tengen import cli


@pytest.fixture
def refused_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Runs a command that is refused; returns its line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tengen.recipes.run._PATIENCE_S", 1e6)

    def run(*words: str) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert cli.main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return captured.err

    return run
