"""What KataGo itself answered for small networks; tests/golden/katago/README.md."""

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
    """What it says of the positions of one game, for the side to move.

    Attributes:
        outcome: ``[N, 3]``: win, loss, no result.
        score: ``[N]`` mean of the final score.
        square: ``[N]`` mean of its square.
        lead: ``[N]``.
        policy: ``[N, A]`` of legal moves, -1 of others.
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
    """A game, and some of its positions.

    Attributes:
        game: Its name, without planes.
        moves: Actions from the start.
        plies: The positions: after so many moves each.
        points: ``[N, 18, H, W]`` of 0 and 1, the planes of points.
        constants: ``[N, 11]``, the numbers of the other planes.
        answers: By network.
    """

    game: str
    moves: list[int]
    plies: list[int]
    points: NDArray[np.float32]
    constants: NDArray[np.float32]
    answers: dict[str, Answers]

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        height, _, width = self.game.split("/")[1].partition("x")
        return int(height), int(width or height)


def golden_games() -> Iterator[Golden]:
    """Yields the games."""
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
