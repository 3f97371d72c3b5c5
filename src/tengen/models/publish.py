"""Publishes models: writes and verifies a directory, then renames it into place.

A directory in ``candidates`` or ``models`` is complete and immutable as soon as it
exists. Export writes candidates; only the gate accepts or rejects them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from tengen.config import to_dict
from tengen.errors import RunError
from tengen.models.export import ModelExporter
from tengen.models.load import load_model
from tengen.models.meta import (
    GRAPH_FILES,
    META_FILE,
    ONNX_FILE,
    WEIGHTS_FILE,
    ModelDir,
    ModelMeta,
)
from tengen.run import (
    NumberedFolder,
    RunDirectory,
    file_sha256,
    move_directory,
    publish_directory,
)

__all__ = ["accept", "next_number", "publish_model", "publish_model_at", "reject"]


def publish_model(
    folder: NumberedFolder,
    number: int,
    meta: ModelMeta,
    tensors: Mapping[str, NDArray[np.generic]],
    exporter: ModelExporter | None,
    complete: Callable[[Path], ModelMeta] | None = None,
) -> ModelDir:
    """Writes one model directory. Blocks until it is durable.

    Args:
        folder: The folder, ``candidates`` of a run.
        number: The model's number.
        meta: The model's metadata; ``sha256`` is filled in.
        tensors: The network's whole state, by its own names.
        exporter: Makes ``model.onnx``; None for a model without it.
        complete: Called with the temporary directory before it is published. It may
            add an int8 graph, and returns the final metadata. If it raises, the model
            is not published.

    Raises:
        UsageError: The network keeps state, which graphs cannot.
        RunError: The number is taken, the tensors do not fit the architecture, the
            network cannot be exported, or the disk fails.
    """
    write, published = _writer(meta, tensors, exporter, complete)
    return ModelDir(folder.publish(number, write), published[-1])


def publish_model_at(
    final: Path,
    meta: ModelMeta,
    tensors: Mapping[str, NDArray[np.generic]],
    exporter: ModelExporter | None,
    complete: Callable[[Path], ModelMeta] | None = None,
) -> ModelDir:
    """Writes a model directory outside a run. Blocks until it is durable.

    Args:
        final: The directory to create; its parent exists.
        meta: As for ``publish_model``.
        tensors: As for ``publish_model``.
        exporter: As for ``publish_model``.
        complete: As for ``publish_model``.

    Raises:
        RunError: The directory exists, or as ``publish_model``.
    """
    write, published = _writer(meta, tensors, exporter, complete)
    publish_directory(final, write)
    return ModelDir(final, published[-1])


def _writer(
    meta: ModelMeta,
    tensors: Mapping[str, NDArray[np.generic]],
    exporter: ModelExporter | None,
    complete: Callable[[Path], ModelMeta] | None = None,
) -> tuple[Callable[[Path], None], list[ModelMeta]]:
    """Returns a function that writes a model into a folder, and a list.

    The function appends the final metadata to the list.
    """
    graphs = []
    if exporter is not None:
        graphs.append(exporter.export(meta.signature, meta.net, tensors))

    def write(path: Path) -> None:
        for graph in graphs:
            (path / ONNX_FILE).write_bytes(graph)
        contiguous = {name: np.ascontiguousarray(t) for name, t in tensors.items()}
        # safetensors' save_file would report a full disk as another kind of error.
        (path / WEIGHTS_FILE).write_bytes(save(contiguous))
        _write_meta(path, meta)
        if complete is not None:
            # Again, because the int8 graph may exist now.
            _write_meta(path, complete(path))
        published.append(load_model(path).meta)

    # Verified before it is published, because the gate may move it away at once.
    published: list[ModelMeta] = []
    return write, published


def _write_meta(path: Path, meta: ModelMeta) -> None:
    names = [name for name in (WEIGHTS_FILE, *GRAPH_FILES) if (path / name).exists()]
    sha256 = {name: file_sha256(path / name) for name in names}
    content = to_dict(dataclasses.replace(meta, sha256=sha256))
    (path / META_FILE).write_text(json.dumps(content, indent=2) + "\n")


def next_number(run: RunDirectory) -> int:
    """Returns the number of the next candidate, 0 in a new run.

    A model keeps its number in candidates, models and rejected, so a number never names
    another model.
    """
    folders = (run.candidates, run.models, run.rejected)
    newest = [number for folder in folders for number in folder.numbers()]
    return max(newest, default=-1) + 1


def accept(run: RunDirectory, number: int) -> ModelDir:
    """Moves candidate ``number`` into ``models``. Only the gate calls this.

    Raises:
        UsageError: The candidate has a newer schema.
        RunError: The candidate is missing or damaged and not moved, or the disk fails.
    """
    candidate, final = run.candidates.entry(number), run.models.entry(number)
    # Verified before others see it as the newest model.
    meta = load_model(candidate, error=RunError).meta
    move_directory(candidate, final)
    return ModelDir(final, meta)


def reject(run: RunDirectory, number: int) -> Path:
    """Moves candidate ``number`` into ``rejected``. Only the gate calls this.

    Returns:
        Its new path.

    Raises:
        RunError: The candidate is missing, or the disk fails.
    """
    final = run.rejected.entry(number)
    move_directory(run.candidates.entry(number), final)
    return final
