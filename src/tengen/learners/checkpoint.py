"""Checkpoints: a learner's whole state, to resume from exactly.

A checkpoint is a published folder ``RUN/checkpoints/NNNNNN`` of two files:

- ``state.safetensors``: weights, averaged weights, moments and generator.
- ``state.json``: schema, network, counters, ``extra``, and the hashes of
  ``state.safetensors`` and of this file's own content. ``extra`` is any JSON value that
  the caller keeps, such as the store's manifest.

Nothing is ever unpickled. Importing this imports no torch, because launchers and other
roles read ``state.json``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import safetensors
from numpy.typing import NDArray

from tengen.config import to_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.inference.architecture import parse_architecture
from tengen.nets import NetConfig
from tengen.run import NumberedFolder, file_sha256, read_object, remember_sha256
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.learners.loop import Learner

__all__ = [
    "CHECKPOINT_ADVICE",
    "SavedModel",
    "damaged_checkpoint",
    "load_checkpoint",
    "read_checkpoint_json",
    "read_extra",
    "read_model",
    "save_checkpoint",
    "write_checkpoint_json",
]

_SCHEMA = 6
# The oldest schema that can be read; older ones have features and no signature.
_OLDEST_SCHEMA = 5
_JSON = "state.json"
_JSON_HASH = "json_sha256"

CHECKPOINT_ADVICE = "remove its folder to resume from the one before"


def write_checkpoint_json(folder: Path, content: dict[str, Any]) -> None:
    """Writes the file into a checkpoint's folder, with its schema and its hash."""
    content = {"schema": _SCHEMA, **content}
    text = json.dumps({**content, _JSON_HASH: _hash(content)}, indent=2) + "\n"
    (folder / _JSON).write_text(text)


def read_checkpoint_json(folder: Path) -> dict[str, Any]:
    """Returns what ``write_checkpoint_json`` was given, and the schema.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is absent or damaged.
    """
    path = folder / _JSON
    content = read_object(path, "checkpoint", schema=_SCHEMA, advice=CHECKPOINT_ADVICE)
    if content["schema"] < _OLDEST_SCHEMA:
        raise UsageError(
            f"schema ({content['schema']}) of {path} must be {_OLDEST_SCHEMA} to "
            f"{_SCHEMA}, what this tengen reads; use the tengen that made it"
        )
    if content.pop(_JSON_HASH, None) != _hash(content):
        raise damaged_checkpoint(path)
    return content


def read_extra(folder: Path) -> Any:
    """Returns what ``save_checkpoint`` was given as ``extra``.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is absent or damaged.
    """
    return read_checkpoint_json(folder)["extra"]


def damaged_checkpoint(path: Path) -> RunError:
    """Returns the error for a file that is damaged."""
    return RunError(f"checkpoint ({path}) is damaged; {CHECKPOINT_ADVICE}")


def _hash(content: dict[str, Any]) -> str:
    """Returns a hash of JSON values that does not depend on their layout in a file."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_NUM_KEPT = 3
_TENSORS = "state.safetensors"


def save_checkpoint(
    folder: NumberedFolder,
    number: int,
    learner: Learner,
    extra: Any = None,
) -> Path:
    """Publishes the learner's state and keeps the newest three checkpoints.

    Blocks until it is durable. Older ones are removed only after that.

    Args:
        folder: ``RunDirectory.checkpoints``.
        number: The checkpoint's number, greater than every published one.
        learner: The learner to save; no step may be in flight.
        extra: Any JSON value; ``load_checkpoint`` returns it.

    Returns:
        The path of the checkpoint.

    Raises:
        RunError: A batch is in flight, the number is taken, or the disk refuses.
    """
    import safetensors.torch

    state = learner.state()
    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    data = safetensors.torch.save(tensors)
    content = {
        **_identity(learner),
        "num_steps": state.num_steps,
        "num_optimizer_steps": state.num_optimizer_steps,
        "num_samples": state.num_samples,
        "sha256": hashlib.sha256(data).hexdigest(),
        "extra": extra,
    }

    def write(path: Path) -> None:
        (path / _TENSORS).write_bytes(data)
        remember_sha256(path / _TENSORS, content["sha256"])
        write_checkpoint_json(path, content)

    published = folder.publish(number, write)
    folder.retire(_NUM_KEPT)
    return published


def load_checkpoint(path: Path, learner: Learner) -> Any:
    """Puts the state at ``path`` into ``learner``, made with the same configs.

    Args:
        path: A checkpoint's folder.
        learner: Changed only if all of the checkpoint is sound.

    Returns:
        What was saved as ``extra``.

    Raises:
        UsageError: The checkpoint is of another schema or of another network.
        RunError: A file is absent, damaged or does not fit.
    """
    import safetensors.torch

    from tengen.learners.states import LearnerState

    content = read_checkpoint_json(path)
    _verify(path, content)
    # Fields that were added after this checkpoint have their defaults.
    saved = {**content, **to_dict(parse_architecture(content, str(path)))}
    for name, value in _identity(learner).items():
        if saved[name] != value:
            raise UsageError(
                f"{name} ({json.dumps(value)}) must be that of {path}, "
                f"{json.dumps(saved[name])}; start a new run for another one"
            )
    try:
        # Cloned, because the optimizer keeps the moments and must not map the file.
        tensors = {
            name: tensor.clone()
            for name, tensor in safetensors.torch.load_file(path / _TENSORS).items()
        }
        learner.load_state(
            LearnerState(
                tensors,
                content["num_steps"],
                content["num_optimizer_steps"],
                content["num_samples"],
            )
        )
    except (safetensors.SafetensorError, OSError, KeyError, ValueError) as error:
        raise damaged_checkpoint(path / _TENSORS) from error
    return content["extra"]


class SavedModel(NamedTuple):
    """The part of a checkpoint that export needs."""

    net: NetConfig
    """The network."""
    signature: Signature
    """The network's inputs, outputs and state."""
    tensors: dict[str, NDArray[np.generic]]
    """The network's averaged weights and norm statistics, by the network's names."""
    num_steps: int
    """Learner steps made until then."""
    num_samples: int
    """Rows learned from until then."""
    extra: Any
    """The value saved as ``extra``."""


def read_model(path: Path) -> SavedModel:
    """Returns the averaged network of a checkpoint.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is absent or damaged.
    """
    content = read_checkpoint_json(path)
    _verify(path, content)
    prefix, tensors = "average.", {}
    try:
        with safetensors.safe_open(path / _TENSORS, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - it is no dict
                if name.startswith(prefix):
                    tensors[name.removeprefix(prefix)] = file.get_tensor(name)
    except (safetensors.SafetensorError, OSError) as error:
        raise damaged_checkpoint(path / _TENSORS) from error
    architecture = parse_architecture(content, str(path))
    return SavedModel(
        net=architecture.net,
        signature=architecture.signature,
        tensors=tensors,
        num_steps=content["num_steps"],
        num_samples=content["num_samples"],
        extra=content["extra"],
    )


def _verify(path: Path, content: dict[str, Any]) -> None:
    """Checks that all fields are present, and that the tensors' hash is right."""
    counts = (content.get(name) for name in _COUNTS)
    has_counts = all(type(count) is int and count >= 0 for count in counts)
    if not has_counts or not {"sha256", "extra", *_IDENTITY} <= set(content):
        raise damaged_checkpoint(path)
    try:
        found = file_sha256(path / _TENSORS)
    except OSError as error:
        raise RunError(
            f"checkpoint ({path / _TENSORS}) cannot be read, {os_reason(error)}; "
            f"{CHECKPOINT_ADVICE}"
        ) from error
    if found != content["sha256"]:
        raise damaged_checkpoint(path / _TENSORS)


_COUNTS = ("num_steps", "num_optimizer_steps", "num_samples")
_IDENTITY = ("net", "optimizer")


def _identity(learner: Learner) -> dict[str, Any]:
    """Returns what a checkpoint and a learner must agree on; the rest may change."""
    return {
        "net": to_dict(learner.net.config),
        "signature": to_dict(learner.net.signature),
        "optimizer": learner.config.optimizer.kind,
    }
