"""Model directories: their metadata, and verifying them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tengen.config import from_dict, to_dict
from tengen.errors import TengenError, UsageError, os_reason
from tengen.inference.architecture import parse_architecture
from tengen.inference.openvino_backend import INT8_FILE, ONNX_FILE
from tengen.nets import NetConfig
from tengen.run import file_sha256, read_object
from tengen.search import PlayConfig
from tengen.tensors import Signature

__all__ = [
    "GRAPH_FILES",
    "INT8_FILE",
    "META_FILE",
    "MODEL_SCHEMA",
    "ONNX_FILE",
    "WEIGHTS_FILE",
    "ModelDir",
    "ModelMeta",
    "ModelOrigin",
    "differences",
    "load_model",
    "read_meta",
    "read_weights",
]

MODEL_SCHEMA = 5
"""The schema of model directories that is written, and the newest that can be read."""

META_FILE = "meta.json"
WEIGHTS_FILE = "weights.safetensors"
"""The weights, which every model has. ``meta.json`` has the file's sha256."""
GRAPH_FILES = (ONNX_FILE, INT8_FILE)
"""Graphs that a model may have: in floats if its run uses graphs, and in int8.
``meta.json`` has the sha256 of each."""

_ADVICE = "restore it from a copy, or remove its folder to do without this model"


@dataclass(frozen=True, kw_only=True)
class ModelOrigin:
    """The data that a model was trained on, as known at its export."""

    run: str
    """The run's folder, as given to export."""
    seed: int
    """Seed of the run."""
    checkpoint: int
    """Number of the checkpoint with its weights."""
    num_games: int | None = None
    """Games in the run at that time; None for environments."""
    num_rows: int | None = None
    """Training rows of these games; None for environments."""
    window_rows: int | None = None
    """Rows in the learner's window at that time; None for environments."""
    pass_generation: int | None = None
    """The newest generation in its training data: the number of the model that the
    games ended on, or below 0 for imported games. None without passes over
    generations."""
    pass_games: int | None = None
    """Games of this generation when it was learned from; None without passes."""
    learned_from_at: float | None = None
    """When its own training steps began, UNIX seconds; None up to schema 4."""
    learned_to_at: float | None = None
    """When its own training steps ended, UNIX seconds; None up to schema 4."""
    learn_from: str = ""
    """The run whose games it learned from; empty for its own."""
    initial_model: str = ""
    """The model whose weights the run began with; empty for random weights."""


@dataclass(frozen=True, kw_only=True)
class ModelMeta:
    """Metadata of a model: its origin, and its network."""

    schema: int = MODEL_SCHEMA
    """Schema of the directory."""
    task: str
    """The game or environment, as on the command line."""
    agent: str
    """The agent that trained it."""
    net: NetConfig
    """The network's size."""
    signature: Signature
    """The network's inputs, outputs and state."""
    generation: int
    """Generation of self-play of its newest training data."""
    num_steps: int
    """Learner steps so far, over the whole run."""
    num_samples: int
    """Training rows so far, over the whole run; repeated rows count again."""
    origin: ModelOrigin | None = None
    """Its training data; None in schema 1, and for models without a run."""
    made_at: float | None = None
    """When it was exported, UNIX seconds; None up to schema 4."""
    play: PlayConfig | None = None
    """How it plays; None in older models, and for environments."""
    sha256: dict[str, str]
    """Lower-case hexadecimal sha256 of each other file of the directory."""


@dataclass(frozen=True)
class ModelDir:
    """A model directory that was verified when this was made.

    Attributes:
        path: The directory.
        meta: Its ``meta.json``.
        boards: Makes the model for another board from height and width; None unless the
            network plays on boards of all sizes.
    """

    path: Path
    meta: ModelMeta
    boards: Callable[[int, int], ModelDir] | None = None


def load_model(
    path: Path,
    task: str | None = None,
    wanted: Signature | None = None,
    *,
    error: type[TengenError] = UsageError,
) -> ModelDir:
    """Returns the model directory at ``path`` after reading every byte of it.

    Args:
        path: The directory.
        task: The task that the model must have; None for any.
        wanted: Inputs and outputs that it must have; it may have more outputs. None for
            any.
        error: The exception for a missing or damaged file; ``RunError`` if the user did
            not name the model.

    Raises:
        TengenError: ``error``, if a file is missing, truncated, changed or foreign.
        UsageError: The schema is newer than this code, or the model is of another task
            or shape.
    """
    meta = read_meta(path, error=error)
    wrong = differences(meta.signature, wanted) if wanted is not None else ""
    if task is not None and meta.task != task:
        wrong = f"task {meta.task} instead of {task}"
    if wrong:
        raise UsageError(f"model ({path}) is foreign here, with {wrong}; {_ADVICE}")
    if WEIGHTS_FILE not in meta.sha256:
        raise error(
            f"meta.json ({path / META_FILE}) has no sha256 of {WEIGHTS_FILE}; "
            f"publish the model again"
        )
    for name in (WEIGHTS_FILE, *GRAPH_FILES):
        if name in meta.sha256:
            _verify(path / name, meta.sha256[name], error)
        elif (path / name).exists():
            # A backend would use it.
            raise error(
                f"model file ({path / name}) has no sha256 in meta.json; remove it"
            )
    return ModelDir(path, meta)


def read_weights(directory: Path) -> dict[str, NDArray[np.generic]]:
    """Returns a network's whole state, by its own names.

    Half precision, which bundled players have, becomes float32.

    Args:
        directory: The directory of a verified model.
    """
    tensors = safetensors.numpy.load_file(directory / WEIGHTS_FILE)
    return {
        name: tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor
        for name, tensor in tensors.items()
    }


def differences(found: Signature, wanted: Signature) -> str:
    """Describes how a network differs from the wanted signature; empty if it fits.

    It may have more outputs than wanted, and any state.
    """
    theirs, ours = _described(found), _described(wanted)
    names = {**ours, **{name: None for name in theirs if name not in found.outputs}}
    return ", ".join(
        f"{name} {theirs.get(name)} instead of {ours.get(name)}"
        for name in names
        if theirs.get(name) != ours.get(name)
    )


def _described(signature: Signature) -> dict[str, Any]:
    """Returns the properties to compare: fields of a board, or named tensors."""
    if signature.board is not None:
        return dict(to_dict(signature.board))
    tensors = {**signature.inputs, **signature.outputs}
    return {name: f"{t.dtype} {list(t.shape)}" for name, t in tensors.items()}


def read_meta(directory: Path, *, error: type[TengenError] = UsageError) -> ModelMeta:
    """Returns the metadata of a model directory, without reading its weights.

    Args:
        directory: The model directory.
        error: As for ``load_model``.

    Raises:
        TengenError: ``error``, if the file is missing or damaged.
        UsageError: The file is foreign or has a newer schema.
    """
    path = directory / META_FILE
    content = read_object(
        path,
        META_FILE,
        schema=MODEL_SCHEMA,
        advice=_ADVICE,
        error=error,
    )
    if "signature" not in content:
        # Up to schema 2 there are features instead, which determine the signature.
        signature = parse_architecture(content, str(path)).signature
        content["signature"] = to_dict(signature)
        content.pop("features", None)
    return from_dict(ModelMeta, content, where=str(path))


def _verify(path: Path, expected: str, error: type[TengenError]) -> None:
    try:
        found = file_sha256(path)
    except OSError as reason:
        raise error(
            f"model file ({path}) cannot be read, {os_reason(reason)}; {_ADVICE}"
        ) from reason
    if found != expected:
        raise error(
            f"model file ({path}) is damaged, its sha256 is not the one in meta.json; "
            f"{_ADVICE}"
        )
