"""The int8 graph of a network of KataGo's, calibrated on positions that it chose.

Legend: C planes, H W board, A actions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.games import Game
from tengen.inference import InferenceConfig, allocate, open_backend
from tengen.models.int8 import can_quantise, quantise
from tengen.models.meta import INT8_FILE

__all__ = ["add_int8_graph"]

# Games that are begun, moves that the network makes in each, and those of them that it
# needs to make something sensible of what random moves left.
_NUM_GAMES = 24
_NUM_MOVES = 6
_NUM_FIRST = 2
# Smaller boards have no more than a few.
_LEAST_POSITIONS = 30
# Of the board's points random moves fill so many at most.
_MOST_FILLED = 0.6
_FLOAT = InferenceConfig(backend="openvino", precision="fp32", batch_shape="dynamic")


def add_int8_graph(directory: Path, game: Game) -> None:
    """Writes ``model_int8.onnx`` where the CPU computes it and little is lost. Blocks.

    Args:
        directory: A model directory that is not published yet.
        game: Whose planes the network reads.
    """
    if not can_quantise():
        return
    planes, legal = _positions(directory, game)
    if len(planes) < _LEAST_POSITIONS:
        return
    try:
        is_lossy = quantise(directory, np.stack(planes), np.stack(legal)).refusal()
    except RunError:
        # Nothing in it is wide enough.
        return
    if is_lossy:
        (directory / INT8_FILE).unlink()


def _positions(
    directory: Path, game: Game
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.bool_]]]:
    """Returns the planes ``[C, H, W]`` of each, and its legal actions ``[A]``."""
    backend = open_backend(directory, _FLOAT, 1, outputs=("policy",))
    inputs = allocate(backend.signature.inputs, _NUM_GAMES)
    outputs = allocate(backend.signature.outputs, _NUM_GAMES)
    runner = backend.bind(inputs, outputs)
    rng = np.random.default_rng(0)
    states = [game.new_state() for _ in range(_NUM_GAMES)]
    num_points = game.height * game.width
    for index, state in enumerate(states):
        for _ in range(int(index / _NUM_GAMES * _MOST_FILLED * num_points)):
            # But for the pass, which is the last.
            stones = np.asarray(state.legal_actions())[:-1]
            if len(stones) == 0:
                break
            state.apply(int(rng.choice(stones)))
    planes: list[NDArray[np.float32]] = []
    legal: list[NDArray[np.bool_]] = []
    for move in range(_NUM_MOVES):
        for row, state in enumerate(states):
            inputs["planes"][row] = state.observation()
        runner.run(_NUM_GAMES)
        for row, state in enumerate(states):
            if state.is_terminal():
                continue
            actions = np.asarray(state.legal_actions())
            if move >= _NUM_FIRST:
                planes.append(inputs["planes"][row].copy())
                legal.append(np.isin(np.arange(game.num_actions), actions))
            logits = outputs["policy"][row][actions].astype(np.float64)
            shares = np.exp(logits - logits.max())
            state.apply(int(rng.choice(actions, p=shares / shares.sum())))
    return planes, legal
