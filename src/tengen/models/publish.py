"""Publishes models: writes and verifies a directory, then renames it to its final path.

So every directory in ``candidates`` or ``models`` is complete and immutable.
The role export writes candidates; only the gate accepts or rejects candidates.
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
from tengen.models.load import (
    GRAPH_FILES,
    META_FILE,
    ONNX_FILE,
    WEIGHTS_FILE,
    ModelDir,
    ModelMeta,
    load_model,
)
from tengen.run import (
    RunDirectory,
    file_sha256,
    move_directory,
    publish_directory,
)


def publish_model(
    final: Path,
    meta: ModelMeta,
    tensors: Mapping[str, NDArray[np.generic]],
    exporter: ModelExporter | None,
    complete: Callable[[Path], ModelMeta] | None = None,
) -> ModelDir:
    """Publishes a model directory. Blocks until the directory is durable.

    Args:
        final: The directory to create, such as an entry of a run's ``candidates``; its
            parent must exist.
        meta: The model's metadata, except ``sha256``, which this function computes.
        tensors: The network's complete state dict.
        exporter: Creates ``model.onnx``; None for a model without an ONNX graph.
        complete: Called with the temporary directory before publication; returns the
            final metadata, and may add an int8 graph. If ``complete`` raises, the model
            is not published.

    Raises:
        UsageError: The network has recurrent state, which graphs do not support.
        RunError: ``final`` exists, the tensors do not fit the architecture, the network
            cannot be exported, or a file operation fails.
    """
    graph = b""
    if exporter is not None:
        graph = exporter.export(meta.signature, meta.net, tensors)
    # Read metadata before publication, after which the gate may move the directory.
    published: list[ModelMeta] = []

    def write(path: Path) -> None:
        if graph:
            (path / ONNX_FILE).write_bytes(graph)
        contiguous = {name: np.ascontiguousarray(t) for name, t in tensors.items()}
        # Not safetensors' save_file, which hides the OSError of a full disk.
        (path / WEIGHTS_FILE).write_bytes(save(contiguous))
        _write_meta(path, meta)
        if complete is not None:
            # Write meta.json again, because complete() may have added an int8 graph.
            _write_meta(path, complete(path))
        published.append(load_model(path).meta)

    publish_directory(final, write)
    return ModelDir(final, published[-1])


def _write_meta(path: Path, meta: ModelMeta) -> None:
    names = [name for name in (WEIGHTS_FILE, *GRAPH_FILES) if (path / name).exists()]
    sha256 = {name: file_sha256(path / name) for name in names}
    content = to_dict(dataclasses.replace(meta, sha256=sha256))
    (path / META_FILE).write_text(json.dumps(content, indent=2) + "\n")


def next_number(run: RunDirectory) -> int:
    """Returns the number for the next candidate, which is 0 in a new run.

    A model keeps its number when it is accepted or rejected, so numbers are unique.
    """
    folders = (run.candidates, run.models, run.rejected)
    newest = [number for folder in folders for number in folder.numbers()]
    return max(newest, default=-1) + 1


def accept(run: RunDirectory, number: int) -> ModelDir:
    """Moves candidate ``number`` into ``models``. Only the gate calls this.

    Raises:
        UsageError: The candidate has a newer schema.
        RunError: The candidate is missing or damaged, or a file operation fails.
    """
    candidate, final = run.candidates.entry(number), run.models.entry(number)
    # Verify the candidate before other processes load it as the newest model.
    meta = load_model(candidate, error=RunError).meta
    move_directory(candidate, final)
    return ModelDir(final, meta)


def reject(run: RunDirectory, number: int) -> Path:
    """Moves candidate ``number`` into ``rejected``. Only the gate calls this.

    Returns:
        The candidate's new path.

    Raises:
        RunError: The candidate is missing, or a file operation fails.
    """
    final = run.rejected.entry(number)
    move_directory(run.candidates.entry(number), final)
    return final
