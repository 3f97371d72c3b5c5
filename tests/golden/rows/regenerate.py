"""Rewrites the golden rows and the golden shuffle beside this file.

Run ``python -m tests.golden.rows.regenerate`` in the root of the repository.

Golden rows are the keys and the column checksums of batches from fixed games. The
golden shuffle is the output of two turns of the role shuffle. Regenerate the files only
if a change of rows, sampling or file contents is intended.
"""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.experience import (
    ExperienceWriter,
    GameWindow,
    SamplesPerInsertConfig,
    Shuffler,
    WindowConfig,
)
from tengen.experience.rows.derived_rows import WindowDraw
from tengen.experience.rows.shuffled_files import read_shard, shard_name
from tengen.run import NumberedFolder
from tests.unit.experience.store_games import random_game

FOLDER = Path(__file__).parent

CASES: dict[str, dict[str, Any]] = {
    "tictactoe": {"game": "tictactoe", "variants": [""]},
    "connect4": {"game": "connect4", "variants": [""]},
    "gomoku_9": {"game": "gomoku/9", "variants": [""]},
    "go_5": {"game": "go/5", "variants": [""]},
    "go_9_variants": {
        "game": "go/9",
        "variants": [
            "",
            "go/4x6/simple/komi=-2.5",
            "go/5/nosuicide",
            "go/9/handicap=2",
        ],
    },
}
"""The game and its variants, by file name; four games cycle through the variants."""

_CONFIG = WindowConfig(
    min_rows=1,
    validation_share=0.2,
    limiter=SamplesPerInsertConfig(samples_per_row=1.0),
)


def crc(array: NDArray[Any]) -> str:
    """Returns the checksum of an array's type, shape and bytes."""
    head = f"{array.dtype.str} {array.shape} ".encode()
    return f"{_core.crc32c(head + np.ascontiguousarray(array).tobytes()):08x}"


def rows(case: dict[str, Any]) -> dict[str, Any]:
    """Returns a batch sampled from four games, as JSON values."""
    with tempfile.TemporaryDirectory() as folder:
        experience = Path(folder)
        _play(experience, case, 1, 4)
        config = WindowConfig(min_rows=1, limiter=SamplesPerInsertConfig())
        window = GameWindow(case["game"], experience, config, 5, auxiliary=True)
        window.refresh()
        size = window.window_rows
        draw = WindowDraw(3, 24, window.num_rows - size, size, place=None)
        keys, symmetries = window.rows.draw(5, draw)
        columns = window.rows.derive(keys, symmetries)
    return {
        "case": case,
        "num_rows": window.num_rows,
        "keys": keys.tolist(),
        "symmetries": symmetries.tolist(),
        "columns": {name: crc(column) for name, column in columns.items()},
    }


def shuffle() -> list[dict[str, Any]]:
    """Returns the output of two shuffle turns on games of go/5, as JSON values."""
    case, turns = CASES["go_5"], []
    with tempfile.TemporaryDirectory() as folder:
        shuffled = NumberedFolder(Path(folder) / "shuffled")
        experience = Path(folder) / "experience"
        shuffler = Shuffler(
            shuffled,
            lambda state: GameWindow("go/5", experience, _CONFIG, 5, state, True),
            batch_size=16,
            num_threads=1,
        )
        for generation in (1, 2):
            _play(experience, case, generation, 12)
            turn = shuffler.turn(threading.Event())
            assert turn is not None
            folder_of_turn = shuffled.entry(shuffler.newest)
            shard = read_shard(folder_of_turn / shard_name(0), "go/5")
            kept = read_shard(folder_of_turn / "validation.npz", "go/5")
            turns.append(
                {
                    "num_rows": turn.num_rows,
                    "shard_rows": list(turn.shard_rows),
                    "keys": shard.keys[:32].tolist(),
                    "columns": {n: crc(column) for n, column in shard.columns.items()},
                    "validation": {n: crc(c) for n, c in kept.columns.items()},
                }
            )
    return turns


def _play(
    experience: Path, case: dict[str, Any], generation: int, num_games: int
) -> None:
    variants = case["variants"]
    with ExperienceWriter(experience / "selfplay-0", generation) as writer:
        segment = writer.open_games(generation, case["game"])
        for index in range(num_games):
            variant = variants[index % len(variants)]
            segment.sink.put(
                random_game(case["game"], index, generation, variant=variant)
            )
        segment.close()
        writer.seal(generation)


def main() -> None:
    """Writes the files of all cases."""
    for name, case in CASES.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(rows(case), indent=1) + "\n")
    (FOLDER / "shuffle.json").write_text(json.dumps(shuffle(), indent=1) + "\n")


if __name__ == "__main__":
    main()
