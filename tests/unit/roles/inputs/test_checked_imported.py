"""Runs that learn from imported games: what is made sure of before they begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tengen import cli
from tengen.experience.rows.generations import GenerationStock
from tengen.experience.rows.imported import rows_name, write_rows
from tengen.minigo.import_command import NUM_FEATURES, Examples
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.run import RunDirectory

NUM_GAMES = 3


def write_games(folder: Path, side: int = 5) -> Path:
    """Writes one generation of a row a game."""
    folder.mkdir()
    policy = np.zeros((1, side * side + 1), np.float32)
    policy[0, 0] = 1.0
    game = Examples(
        planes=np.zeros((1, NUM_FEATURES, side, side), np.uint8),
        policy=policy,
        outcome=np.ones(1, np.int8),
    )
    path = folder / rows_name(17)
    write_rows(path, [game] * NUM_GAMES, side, 17, "a test")
    return path


def words(out: Path, folder: Path | str, min_games: int) -> list[str]:
    found = ["train", "go/5", "--recipe", "mlperf_minigo_small", "--out", str(out)]
    settings = (f"store.imported={folder}", f"store.min_games={min_games}")
    return [*found, "--minutes", "1", *(f"--set={one}" for one in settings)]


@pytest.mark.parametrize(
    ("name", "side", "min_games", "why"),
    [
        ("missing", 0, 1, "must contain imported generations"),
        ("empty", 0, 1, "must contain imported generations"),
        ("other", 7, 1, "must be for go/5/nosuicide/planes=minigo, not go/7"),
        ("few", 5, 4, "store.min_games (4) games, and only 0 of them have that many"),
        ("short", 5, 1, "must end with store.num_generations (5) generations"),
        ("cut", 5, 1, "cannot be used: rows"),
    ],
)
def test_games_that_cannot_serve_are_refused_before_anything_is_made(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    side: int,
    min_games: int,
    why: str,
) -> None:
    folder, out = tmp_path / name, tmp_path / "out"
    if name == "empty":
        folder.mkdir()
    if side:
        path = write_games(folder, side)
        if name == "cut":
            path.write_bytes(path.read_bytes()[:-10])
    assert cli.main(words(out, folder, min_games)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"store.imported ({folder}" in line
    assert why in line
    assert not out.exists()


def test_a_run_keeps_the_full_path_of_its_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_games(tmp_path / "games")
    monkeypatch.chdir(tmp_path)
    train_task(
        "go/5",
        recipe="mlperf_minigo_small",
        games=0,
        out="run",
        threads=1,
        settings=[
            "store.imported=games",
            "store.min_games=2",
            "store.num_generations=1",
        ],
    )
    # Another working directory, as that of a role on another machine.
    monkeypatch.chdir("/")
    kept = read_config(RunDirectory(tmp_path / "run"))
    assert kept.store.imported == str(tmp_path / "games")
    stock = GenerationStock(kept.task, tmp_path / "run", kept.store, seed=0)
    assert stock.num_rows == NUM_GAMES
