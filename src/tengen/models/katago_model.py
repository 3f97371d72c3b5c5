"""Converts KataGo networks to models on first use, and caches them on disk.

A KataGo network supports all board sizes, but a model directory only one. So the user's
cache folder has a model directory for each requested size, with the same weights. Users
may remove these directories at any time.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError, UsageError, os_reason
from tengen.games import Game, open_game
from tengen.inference import InferenceConfig, allocate, open_backend
from tengen.katago.network import KatagoNetwork, read_network
from tengen.katago.stream import check_name
from tengen.models.export import ModelExporter
from tengen.models.int8 import can_quantise, quantise
from tengen.models.load import INT8_FILE, META_FILE, ModelDir, ModelMeta, load_model
from tengen.models.publish import publish_model
from tengen.nets import board_of
from tengen.run import file_sha256

_FOLDER = "tengen/katago"
# The version of the conversion, in the names of cache folders; increment on changes.
_FORMAT = 1
_USUAL_SIDE = 19


def katago_model(path: Path) -> ModelDir:
    """Returns the 19x19 model of a KataGo network file.

    The model's ``boards`` creates models for other board sizes. Models are stored in
    ``tengen/katago`` in the user's cache folder (``XDG_CACHE_HOME`` or ``~/.cache``).
    The first call for a file blocks for seconds, to convert and quantise the network.

    Args:
        path: A ``.bin.gz`` or ``.txt.gz`` file, as published by KataGo.

    Raises:
        UsageError: The file cannot be read, is damaged, or is not supported.
        RunError: A file operation fails.
    """
    check_name(path)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise UsageError(
            f"KataGo network ({path}) cannot be read, {os_reason(error)}; check the "
            f"path"
        ) from error
    boards = functools.partial(
        _on_board, path, Path(home, _FOLDER, f"{digest[:32]}-{_FORMAT}")
    )
    return boards(_USUAL_SIDE, _USUAL_SIDE)


def _on_board(path: Path, folder: Path, height: int, width: int) -> ModelDir:
    boards = functools.partial(_on_board, path, folder)
    size = str(width) if height == width else f"{height}x{width}"
    kept = folder / size
    if not (kept / META_FILE).exists():
        _make(read_network(path), kept, f"go/{size}/planes=katago")
    try:
        found = load_model(kept)
    except UsageError as error:
        raise RunError(f"{error} (remove {kept} to make it again)") from error
    return ModelDir(found.path, found.meta, boards)


def _make(network: KatagoNetwork, kept: Path, task: str) -> None:
    game = open_game(task)
    meta = ModelMeta(
        task=task,
        agent="alphazero",
        net=network.config,
        signature=network.config.signature(board_of(game).signature),
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"cache folder ({kept.parent}) cannot be created, {os_reason(error)}; set "
            "XDG_CACHE_HOME to a writable folder"
        ) from error

    def complete(path: Path) -> ModelMeta:
        add_int8_graph(path, game)
        return meta

    try:
        publish_model(kept, meta, network.tensors, ModelExporter(), complete)
    except RunError:
        # Ignore the error if another process has created the model in the meantime.
        if not (kept / META_FILE).exists():
            raise


# Calibration plays this many games: random moves, then _NUM_MOVES moves of the network.
# It skips the positions before the network's first _NUM_FIRST moves.
_NUM_GAMES = 24
_NUM_MOVES = 6
_NUM_FIRST = 2
# Minimum number of positions for calibration; small boards may yield fewer.
_LEAST_POSITIONS = 30
# The maximum number of random moves, as a fraction of the board's points.
_MOST_FILLED = 0.6
_FLOAT = InferenceConfig(backend="openvino", precision="fp32", batch_shape="dynamic")


def add_int8_graph(directory: Path, game: Game) -> None:
    """Adds ``model_int8.onnx`` if the CPU supports int8 and errors are small. Blocks.

    The int8 graph is calibrated on positions of games that the network plays.

    Args:
        directory: A model directory that is not yet published.
        game: The game that the network plays.
    """
    if not can_quantise():
        return
    planes, legal = _positions(directory, game)
    if len(planes) < _LEAST_POSITIONS:
        return
    try:
        is_lossy = quantise(directory, np.stack(planes), np.stack(legal)).refusal()
    except RunError:
        # The network has no convolution that could be computed in int8.
        return
    if is_lossy:
        (directory / INT8_FILE).unlink()


def _positions(
    directory: Path, game: Game
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.bool_]]]:
    """Returns planes ``[C, H, W]`` and legal actions ``[A]`` of played positions."""
    backend = open_backend(directory, _FLOAT, 1, outputs=("policy",))
    inputs = allocate(backend.signature.inputs, _NUM_GAMES)
    outputs = allocate(backend.signature.outputs, _NUM_GAMES)
    runner = backend.bind(inputs, outputs)
    rng = np.random.default_rng(0)
    states = [game.new_state() for _ in range(_NUM_GAMES)]
    num_points = game.height * game.width
    for index, state in enumerate(states):
        for _ in range(int(index / _NUM_GAMES * _MOST_FILLED * num_points)):
            # Exclude the pass, which is the last action.
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
