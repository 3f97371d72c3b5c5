"""Finds a model by its name, and verifies it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from tengen.bundled import bundled_folder, bundled_name, bundled_names
from tengen.config import from_dict, to_dict
from tengen.errors import TengenError, UsageError, did_you_mean, os_reason
from tengen.inference.architecture import parse_architecture
from tengen.models.meta import (
    GRAPH_FILES,
    META_FILE,
    MODEL_SCHEMA,
    WEIGHTS_FILE,
    ModelDir,
    ModelMeta,
)
from tengen.run import RunDirectory, file_sha256, read_object
from tengen.tensors import Signature

__all__ = [
    "KATAGO",
    "differences",
    "load_model",
    "read_meta",
    "read_weights",
    "resolve_model",
]

KATAGO = "katago:"
"""The prefix of a name for one of KataGo's networks, by its file."""

_ADVICE = "restore it from a copy, or remove its folder to do without this model"


def resolve_model(source: str | Path) -> ModelDir:
    """Returns the model that ``source`` names, verified.

    Args:
        source: A RUN (its newest model), ``RUN@17``, a model directory,
            ``katago:FILE`` with a network of KataGo's, or a bundled player,
            ``bundled:go/9`` or ``go/9``. An existing path takes precedence over the
            meanings with ``@`` and as a bundled player.

    Raises:
        UsageError: There is no such model, or it is damaged, foreign or newer than
            this code; the message names the file and the reason.
    """
    word = str(source)
    if word.startswith(KATAGO):
        # It imports onnx, which only KataGo's networks need.
        from tengen.models.katago_model import katago_model

        return katago_model(Path(word.removeprefix(KATAGO)))
    path = Path(source)
    if (path / META_FILE).exists():
        return load_model(path)
    if path.is_dir():
        return _newest(path)
    name, at, number = str(source).rpartition("@")
    if at and re.fullmatch("[0-9]{1,18}", number) and Path(name).is_dir():
        return _numbered(Path(name), int(number))
    if (bundled := bundled_name(word)) is not None:
        return load_model(bundled_folder(bundled))
    known = [] if Path(word).exists() else bundled_names()
    advice = did_you_mean(word, known, "check the path")
    raise UsageError(
        f"model ({source}) is neither a run directory, RUN@NUMBER, a model directory "
        f"nor a bundled player; {advice}"
    )


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


def _newest(path: Path) -> ModelDir:
    run = RunDirectory.open(path)
    number = run.models.latest()
    if number is None:
        raise UsageError(
            f"run ({path}) has no published model yet; train it longer or name one"
        )
    return load_model(run.models.entry(number), _task(run))


def _numbered(path: Path, number: int) -> ModelDir:
    run = RunDirectory.open(path)
    numbers = run.models.numbers()
    if number not in numbers:
        known = f"it has {numbers[0]} to {numbers[-1]}" if numbers else "it has none"
        raise UsageError(
            f"model ({path}@{number}) is not published in this run; {known}"
        )
    return load_model(run.models.entry(number), _task(run))


def _task(run: RunDirectory) -> str | None:
    task = run.read_run().get("config", {}).get("task")
    return None if task is None else str(task)


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
