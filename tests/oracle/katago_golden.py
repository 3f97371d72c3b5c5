"""KataGo's own outputs for small networks; see tests/golden/katago/README.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[1] / "golden" / "katago"
NETWORKS = ("tiny-v8", "tiny-v14", "tiny-v17")
_NUM_POINT_PLANES = 18


@dataclass(frozen=True)
class Answers:
    """KataGo's outputs for positions of one game, from the view of the side to move.

    Attributes:
        outcome: ``[N, 3]``: win, loss, no result.
        score: ``[N]``, expected final score.
        square: ``[N]``, expected square of the final score.
        lead: ``[N]``.
        policy: ``[N, A]``, probabilities of legal moves, -1 for illegal ones.
        ownership: ``[N, H * W]``.
    """

    outcome: NDArray[np.float32]
    score: NDArray[np.float32]
    square: NDArray[np.float32]
    lead: NDArray[np.float32]
    policy: NDArray[np.float32]
    ownership: NDArray[np.float32]


@dataclass(frozen=True)
class Golden:
    """A game and some of its positions.

    Attributes:
        game: Its name, without the planes option.
        moves: Actions from the start.
        plies: The ply of each position.
        points: ``[N, 18, H, W]`` of 0 and 1, the planes that differ by point.
        constants: ``[N, 11]``, the values of the constant planes.
        answers: KataGo's outputs, by network name.
    """

    game: str
    moves: list[int]
    plies: list[int]
    points: NDArray[np.float32]
    constants: NDArray[np.float32]
    answers: dict[str, Answers]

    @property
    def size(self) -> tuple[int, int]:
        """Returns height and width."""
        height, _, width = self.game.split("/")[1].partition("x")
        return int(height), int(width or height)


def golden_games() -> Iterator[Golden]:
    """Yields all golden games."""
    content: Any = json.loads((FOLDER / "games.json").read_text())
    with np.load(FOLDER / "expected.npz") as arrays:
        for index, said in enumerate(content["games"]):
            game = Golden(
                said["game"],
                said["moves"],
                said["plies"],
                np.empty(0, np.float32),
                arrays[f"constants.{index}"],
                {},
            )
            height, width = game.size
            shape = (len(game.plies), _NUM_POINT_PLANES, height, width)
            bits = np.unpackbits(arrays[f"points.{index}"])[: np.prod(shape)]
            num_cells = height * width
            for name in NETWORKS:
                out = arrays[f"{name}.{index}"]
                game.answers[name] = Answers(
                    out[:, :3],
                    out[:, 3],
                    out[:, 4],
                    out[:, 5],
                    out[:, 6 : 7 + num_cells],
                    out[:, 7 + num_cells :],
                )
            points = bits.reshape(shape).astype(np.float32)
            yield Golden(
                game.game,
                game.moves,
                game.plies,
                points,
                game.constants,
                game.answers,
            )
