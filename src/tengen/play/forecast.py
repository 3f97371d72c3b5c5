"""Predicts the end of a game (ownership, score) with a network's auxiliary heads.

The auxiliary heads are evaluated on demand and separately from the search, whose
backend omits them. All symmetries of a position are evaluated in one batch, and the
outputs are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.games import Framed, State
from tengen.models.load import read_meta


@dataclass(frozen=True)
class Forecast:
    """A network's prediction of a game's final position, for the side to move."""

    ownership_to_play: NDArray[np.float32]
    """Predicted ownership, ``[H, W]`` in [-1, 1]; 1: owned by the side to move."""
    score_to_play: float
    """Predicted final score for the side to move, in points, including komi."""
    score_stdev: float
    """Predicted standard deviation of the final score, in points."""
    lead_to_play: float | None
    """Predicted lead of the side to move, in points; None if the network does not
    predict the lead."""


class Forecaster:
    """Evaluates the auxiliary heads of one model on the CPU. Thread-safe.

    Args:
        directory: The model directory, whose weights are loaded if the model has
            auxiliary heads; None for a player without a model directory.

    Raises:
        UsageError: A file of the model is missing or damaged.
    """

    def __init__(self, directory: Path | None) -> None:
        self._net: Any = None
        self._lock = Lock()
        self._last: tuple[tuple[str, tuple[int, ...]], Forecast] | None = None
        if directory is not None and _has_heads(directory):
            # Import torch only if needed: the import takes seconds, and few models have
            # auxiliary heads.
            from tengen.inference.torch_backend import load_head

            self._net = load_head(directory).head.net

    def forecast(self, framed: Framed, moves: Sequence[int]) -> Forecast | None:
        """Returns the forecast after ``moves``; None if the network has no such heads.

        The last forecast is cached. Blocks while the network evaluates a small batch.

        Args:
            framed: A game, in a frame that the network can evaluate.
            moves: Legal actions from the first move of the game.
        """
        if self._net is None:
            return None
        key = (framed.game.name, tuple(moves))
        with self._lock:
            if self._last is None or self._last[0] != key:
                self._last = (key, self._evaluate(framed, framed.new_state(moves)))
            return self._last[1]

    def _evaluate(self, framed: Framed, state: State) -> Forecast:
        import torch

        game = framed.game
        symmetries = range(framed.num_symmetries)
        planes = np.stack([state.observation(symmetry) for symmetry in symmetries])
        with torch.inference_mode():
            expected = self._net.expect(torch.from_numpy(planes))
            owners = expected["ownership"].flatten(1).numpy()
            # The score's mean and deviation over the mixture of all symmetries.
            means, stdevs = expected["score"].double().T
            mean = float(means.mean())
            stdev = float((stdevs**2 + (means - mean) ** 2).mean().sqrt())
            lead = float(expected["lead"].mean()) if "lead" in expected else None
        cells = np.arange(game.height * game.width)
        ownership = np.zeros(len(cells), np.float32)
        for symmetry in symmetries:
            images = [game.transform_action(int(cell), symmetry) for cell in cells]
            ownership += owners[symmetry][framed.to_frame(images)]
        ownership /= framed.num_symmetries
        owners_to_play = ownership.reshape(game.height, game.width)
        return Forecast(owners_to_play, mean, stdev, lead)


def _has_heads(directory: Path) -> bool:
    return "score" in read_meta(directory).signature.outputs
