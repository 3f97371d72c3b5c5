"""Checkpoints: the complete state of a learner, for exact resumption.

A checkpoint is a published folder ``RUN/checkpoints/NNNNNN`` with two files:

- ``state.safetensors``: weights, averaged weights, optimizer moments, generator state.
- ``state.json``: schema, network, counters, ``extra``, and the hashes of both files.
  ``extra`` is any JSON value from the caller, such as the state of the experience.

Loading never unpickles data. Importing this module does not import torch, because
launchers and other roles read only ``state.json``.
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

_SCHEMA = 6
# The oldest readable schema; older checkpoints lack the network's signature.
_OLDEST_SCHEMA = 5
_JSON = "state.json"
_JSON_HASH = "json_sha256"

CHECKPOINT_ADVICE = "remove its folder to resume from the one before"


def write_checkpoint_json(folder: Path, content: dict[str, Any]) -> None:
    """Writes ``content`` to ``state.json`` in ``folder``, with a schema and a hash."""
    content = {"schema": _SCHEMA, **content}
    text = json.dumps({**content, _JSON_HASH: _hash(content)}, indent=2) + "\n"
    (folder / _JSON).write_text(text)


def read_checkpoint_json(folder: Path) -> dict[str, Any]:
    """Returns the content of a checkpoint's ``state.json``, including the schema.

    Raises:
        UsageError: The checkpoint has an unsupported schema.
        RunError: ``state.json`` is absent or damaged.
    """
    path = folder / _JSON
    content = read_object(path, "checkpoint", schema=_SCHEMA, advice=CHECKPOINT_ADVICE)
    if content["schema"] < _OLDEST_SCHEMA:
        raise UsageError(
            f"schema ({content['schema']}) of {path} must be {_OLDEST_SCHEMA} to "
            f"{_SCHEMA} for this version; use the tengen that made it"
        )
    if content.pop(_JSON_HASH, None) != _hash(content):
        raise damaged_checkpoint(path)
    return content


def read_extra(folder: Path) -> Any:
    """Returns the value that ``save_checkpoint`` stored as ``extra`` in a checkpoint.

    Raises:
        UsageError: The checkpoint has an unsupported schema.
        RunError: ``state.json`` is absent or damaged.
    """
    return read_checkpoint_json(folder)["extra"]


def damaged_checkpoint(path: Path) -> RunError:
    """Returns the error for a damaged checkpoint file at ``path``."""
    return RunError(f"checkpoint ({path}) is damaged; {CHECKPOINT_ADVICE}")


def _hash(content: dict[str, Any]) -> str:
    """Returns a hash of JSON values that does not depend on their formatting."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_NUM_KEPT = 3
_TENSORS = "state.safetensors"


def save_checkpoint(
    folder: NumberedFolder,
    number: int,
    learner: Learner,
    extra: Any = None,
) -> Path:
    """Publishes a learner's state, and removes all but the three newest checkpoints.

    Blocks until the new checkpoint is durable, and then removes the older ones.

    Args:
        folder: ``RunDirectory.checkpoints``.
        number: The new checkpoint's number, greater than all published numbers.
        learner: The learner to save; no batch may be in flight.
        extra: Any JSON value; ``load_checkpoint`` returns it.

    Returns:
        The path of the checkpoint.

    Raises:
        RunError: A batch is in flight, ``number`` exists, or writing fails.
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
    """Restores a learner with the same configs from the checkpoint at ``path``.

    Args:
        path: A checkpoint's folder.
        learner: The learner to restore; unchanged if the checkpoint is invalid.

    Returns:
        The value saved as ``extra``.

    Raises:
        UsageError: The checkpoint's schema is unsupported, or its network differs.
        RunError: A file is absent, is damaged or does not match the learner.
    """
    import safetensors.torch

    from tengen.learners.states import LearnerState

    content = read_checkpoint_json(path)
    _verify(path, content)
    # Config fields that are newer than the checkpoint get their defaults.
    saved = {**content, **to_dict(parse_architecture(content, str(path)))}
    for name, value in _identity(learner).items():
        if saved[name] != value:
            raise UsageError(
                f"{name} ({json.dumps(value)}) must be {json.dumps(saved[name])}, as "
                f"in {path}; start a new run for another value"
            )
    try:
        # Clone the tensors, which map the file, because the optimizer updates them.
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
    """The contents of a checkpoint that the role export needs to write a model."""

    net: NetConfig
    """The network's config."""
    signature: Signature
    """The network's inputs, outputs and state."""
    tensors: dict[str, NDArray[np.generic]]
    """The averaged weights and norm statistics, by name in the network."""
    num_steps: int
    """Number of learner steps before the checkpoint."""
    num_samples: int
    """Number of rows trained on before the checkpoint."""
    extra: Any
    """The value that ``save_checkpoint`` stored as ``extra``."""


def read_model(path: Path) -> SavedModel:
    """Returns the averaged network and the counters of the checkpoint at ``path``.

    Raises:
        UsageError: The checkpoint has an unsupported schema.
        RunError: The checkpoint is absent or damaged.
    """
    content = read_checkpoint_json(path)
    _verify(path, content)
    prefix, tensors = "average.", {}
    try:
        with safetensors.safe_open(path / _TENSORS, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
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
    """Checks a checkpoint: the fields in ``content``, and the hash of its tensors."""
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
    """Returns the learner's settings that must equal those in a checkpoint."""
    return {
        "net": to_dict(learner.net.config),
        "signature": to_dict(learner.net.signature),
        "optimizer": learner.config.optimizer.kind,
    }
