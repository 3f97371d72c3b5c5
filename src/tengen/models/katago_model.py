"""A network of KataGo's as a model: made of its file once, and kept.

A model is of one board, as everywhere, and the network of all of them: for each that is
asked for there is a model directory, in the user's cache folder, whose weights are the
same. It can be removed at any time.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tengen.errors import RunError, UsageError, os_reason
from tengen.games import open_game
from tengen.katago.network import KatagoNetwork, read_network
from tengen.katago.stream import check_name
from tengen.models.export import ModelExporter
from tengen.models.katago_int8 import add_int8_graph
from tengen.models.load import load_model
from tengen.models.meta import META_FILE, ModelDir, ModelMeta
from tengen.models.publish import publish_model_at
from tengen.nets import board_of
from tengen.run import file_sha256

__all__ = ["katago_model"]

_FOLDER = "tengen/katago"
# Part of the folder's name: raise it when models are made otherwise.
_FORMAT = 1
_USUAL_SIDE = 19


def katago_model(path: Path, cache: Path | None = None) -> ModelDir:
    """Returns the model of a network's file, on a board of 19x19.

    It has ``boards`` for others. Blocks while it is made: the first time some seconds,
    with a trial of the network for its int8 graph.

    Args:
        path: ``.bin.gz`` or ``.txt.gz``, as KataGo publishes them.
        cache: Where models are kept; None for ``tengen/katago`` of the user's cache
            folder (``XDG_CACHE_HOME``, else ``~/.cache``).

    Raises:
        UsageError: The file cannot be read, is damaged, or is of a kind that is not
            supported.
        RunError: The disk refuses.
    """
    check_name(path)
    if cache is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(home) / _FOLDER
    try:
        digest = file_sha256(path)
    except OSError as error:
        raise UsageError(
            f"KataGo network ({path}) cannot be read, {os_reason(error)}; check the "
            f"path"
        ) from error
    boards = functools.partial(_on_board, path, cache / f"{digest[:32]}-{_FORMAT}")
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
        raise RunError(f"{error} (it is made again once {kept} is removed)") from error
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
            f"cache folder ({kept.parent}) cannot be made, {os_reason(error)}; set "
            f"XDG_CACHE_HOME to a folder that can be written"
        ) from error

    def complete(path: Path) -> ModelMeta:
        add_int8_graph(path, game)
        return meta

    try:
        publish_model_at(kept, meta, network.tensors, ModelExporter(), complete)
    except RunError:
        # Another process may have made it in the meantime.
        if not (kept / META_FILE).exists():
            raise
