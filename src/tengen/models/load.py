"""Loads and verifies model directories and their metadata."""

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
"""Schema version of new model directories, and the newest that can be read."""

META_FILE = "meta.json"
WEIGHTS_FILE = "weights.safetensors"
"""Name of the weights file in a model directory; ``meta.json`` has its SHA-256."""
GRAPH_FILES = (ONNX_FILE, INT8_FILE)
"""Names of the optional graph files of a model, in floating point and in int8.
``meta.json`` has the SHA-256 of each existing file."""

_ADVICE = "restore it from a copy, or remove its folder to continue without this model"


@dataclass(frozen=True, kw_only=True)
class ModelOrigin:
    """The run and the training data from which a model was exported."""

    run: str
    """The path of the run directory, as given to the role export."""
    seed: int
    """Seed of the run."""
    checkpoint: int
    """The number of the checkpoint from which the weights were exported."""
    num_games: int | None = None
    """Number of games in the run at the checkpoint; None for environments."""
    num_rows: int | None = None
    """Number of training rows in the run at the checkpoint; None for environments."""
    window_rows: int | None = None
    """Rows in the learner's window at the checkpoint; None for environments."""
    pass_generation: int | None = None
    """The newest generation in the training data: the number of the model that finished
    its games, negative for imported games; None without passes over generations."""
    pass_games: int | None = None
    """Games of ``pass_generation`` when the pass over it began; None without passes."""
    learned_from_at: float | None = None
    """UNIX time in seconds of the first learner step after the previous model; None in
    models up to schema 4."""
    learned_to_at: float | None = None
    """UNIX time in seconds of the last learner step; None in models up to schema 4."""
    learn_from: str = ""
    """The run whose games are the training data; empty if ``run`` played them."""
    initial_model: str = ""
    """The model from whose weights the run started; empty for random weights."""


@dataclass(frozen=True, kw_only=True)
class ModelMeta:
    """Metadata of a model, such as its task, network and training data."""

    schema: int = MODEL_SCHEMA
    """The schema version of the model directory."""
    task: str
    """The game or environment, as named on the command line."""
    agent: str
    """The kind of agent that trained the model."""
    net: NetConfig
    """The kind and size of the network."""
    signature: Signature
    """The network's inputs, outputs and state."""
    generation: int
    """The self-play generation of the newest training data."""
    num_steps: int
    """The number of learner steps since the start of the run."""
    num_samples: int
    """The number of sampled training rows since the start of the run."""
    origin: ModelOrigin | None = None
    """The run and training data; None in schema 1, and for models without a run."""
    made_at: float | None = None
    """UNIX time of the export, in seconds; None in models up to schema 4."""
    play: PlayConfig | None = None
    """Settings of the search in play; None in older models, and for environments."""
    sha256: dict[str, str]
    """The SHA-256 of every other file of the directory, in lower-case hexadecimal."""


@dataclass(frozen=True)
class ModelDir:
    """A verified model directory.

    Attributes:
        path: The path of the directory.
        meta: The content of ``meta.json``.
        boards: Returns the model for a given board height and width; None unless the
            network supports all board sizes.
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
    """Returns the model directory at ``path``, after verifying its files' SHA-256.

    Args:
        path: The directory.
        task: The task that the model must have; None for any task.
        wanted: The inputs and outputs that the network must have; more outputs are
            allowed. None for any.
        error: The exception type for a missing or damaged file; ``RunError`` if the
            user did not specify the model.

    Raises:
        TengenError: ``error``, if a file is missing, damaged or has no SHA-256.
        UsageError: The schema is newer than this version of tengen supports, or the
            model's task or signature differs from ``task`` or ``wanted``.
    """
    meta = read_meta(path, error=error)
    wrong = differences(meta.signature, wanted) if wanted is not None else ""
    if task is not None and meta.task != task:
        wrong = f"task {meta.task} instead of {task}"
    if wrong:
        raise UsageError(f"model ({path}) does not fit here, with {wrong}; {_ADVICE}")
    if WEIGHTS_FILE not in meta.sha256:
        raise error(
            f"meta.json ({path / META_FILE}) has no sha256 of {WEIGHTS_FILE}; "
            f"publish the model again"
        )
    for name in (WEIGHTS_FILE, *GRAPH_FILES):
        if name in meta.sha256:
            _verify(path / name, meta.sha256[name], error)
        elif (path / name).exists():
            # Reject the file, because a backend would read it unverified.
            raise error(
                f"model file ({path / name}) has no sha256 in meta.json; remove it"
            )
    return ModelDir(path, meta)


def read_weights(directory: Path) -> dict[str, NDArray[np.generic]]:
    """Reads all tensors of a model's state dict, by name.

    Half-precision tensors, which bundled players have, are converted to float32.

    Args:
        directory: The directory of a verified model.
    """
    tensors = safetensors.numpy.load_file(directory / WEIGHTS_FILE)
    return {
        name: tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor
        for name, tensor in tensors.items()
    }


def differences(found: Signature, wanted: Signature) -> str:
    """Returns how ``found`` differs from ``wanted``; empty if they are compatible.

    A compatible signature may have additional outputs, and any recurrent state.
    """
    theirs, ours = _described(found), _described(wanted)
    names = {**ours, **{name: None for name in theirs if name not in found.outputs}}
    return ", ".join(
        f"{name} {theirs.get(name)} instead of {ours.get(name)}"
        for name in names
        if theirs.get(name) != ours.get(name)
    )


def is_other_size(found: Signature, wanted: Signature) -> bool:
    """Returns whether two boards differ in size, but not in planes or policy layout."""
    a, b = found.board, wanted.board
    if a is None or b is None or (a.height, a.width) == (b.height, b.width):
        return False
    kinds = [(x.num_planes, x.policy_layout, x.max_score > 0) for x in (a, b)]
    return kinds[0] == kinds[1] and a.policy_layout != "flat"


def _described(signature: Signature) -> dict[str, Any]:
    """Returns what ``differences`` compares: the board's fields, or the tensors."""
    if signature.board is not None:
        return dict(to_dict(signature.board))
    tensors = {**signature.inputs, **signature.outputs}
    return {name: f"{t.dtype} {list(t.shape)}" for name, t in tensors.items()}


def read_meta(directory: Path, *, error: type[TengenError] = UsageError) -> ModelMeta:
    """Reads the metadata of a model directory, without reading its weights.

    Args:
        directory: The model directory.
        error: See ``load_model``.

    Raises:
        TengenError: ``error``, if ``meta.json`` is missing or damaged.
        UsageError: ``meta.json`` has unknown fields or a newer schema.
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
        # Up to schema 2, meta.json has features instead of a signature.
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
            f"model file ({path}) is damaged, its SHA-256 differs from that in "
            f"meta.json; {_ADVICE}"
        )
