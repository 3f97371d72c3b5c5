"""Publishing a model: everything in place and checked, then one rename.

A directory in ``candidates`` or ``models`` is whole and immutable from the instant it
is there. Export writes candidates; the gate alone accepts or rejects them.
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
        folder: Where, ``candidates`` of a run.
        number: Its number.
        meta: What it says about itself; ``sha256`` is filled in here.
        tensors: The network's whole state, under its own names.
        exporter: Makes ``model.onnx``; None for a model without.
        complete: Called with the finished temporary directory before it is published;
            it may add an int8 graph, returns what the model then says about itself,
            and what it raises keeps the model from being published.

    Raises:
        UsageError: The network keeps state, and no graph can.
        RunError: The number is taken, the tensors are not the architecture's, the
            network cannot be exported, or the disk refuses.
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
    """Writes a model directory of no run. Blocks until it is durable.

    Args:
        final: The directory to make; its parent exists.
        meta: As for ``publish_model``, and so the rest.
        tensors: The same.
        exporter: The same.
        complete: The same.

    Raises:
        RunError: It exists, or as ``publish_model``.
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
    """Returns what fills a folder with a model, and a list.

    The list has at its end what the model says about itself, once it is filled.
    """
    graphs = []
    if exporter is not None:
        graphs.append(exporter.export(meta.signature, meta.net, tensors))

    def write(path: Path) -> None:
        for graph in graphs:
            (path / ONNX_FILE).write_bytes(graph)
        contiguous = {name: np.ascontiguousarray(t) for name, t in tensors.items()}
        # Not its own save_file, which hides a full disk in an error of another kind.
        (path / WEIGHTS_FILE).write_bytes(save(contiguous))
        _write_meta(path, meta)
        if complete is not None:
            # With the int8 graph, which may be there by now.
            _write_meta(path, complete(path))
        published.append(load_model(path).meta)

    # Verified before it is there: the gate may take it away at once.
    published: list[ModelMeta] = []
    return write, published


def _write_meta(path: Path, meta: ModelMeta) -> None:
    names = [name for name in (WEIGHTS_FILE, *GRAPH_FILES) if (path / name).exists()]
    sha256 = {name: file_sha256(path / name) for name in names}
    content = to_dict(dataclasses.replace(meta, sha256=sha256))
    (path / META_FILE).write_text(json.dumps(content, indent=2) + "\n")


def next_number(run: RunDirectory) -> int:
    """Returns the number of the next candidate, 0 in a new run.

    A model keeps its number through candidates, models and rejected, so a number
    names one model for ever.
    """
    folders = (run.candidates, run.models, run.rejected)
    newest = [number for folder in folders for number in folder.numbers()]
    return max(newest, default=-1) + 1


def accept(run: RunDirectory, number: int) -> ModelDir:
    """Moves candidate ``number`` into ``models``. Only the gate may.

    Raises:
        UsageError: It is of a newer schema.
        RunError: The candidate is gone or damaged, it stays where it is; or the disk
            refuses.
    """
    candidate, final = run.candidates.entry(number), run.models.entry(number)
    # Before anyone can take it for the newest model.
    meta = load_model(candidate, error=RunError).meta
    move_directory(candidate, final)
    return ModelDir(final, meta)


def reject(run: RunDirectory, number: int) -> Path:
    """Moves candidate ``number`` into ``rejected``. Only the gate may.

    Returns:
        Where it is now.

    Raises:
        RunError: The candidate is gone, or the disk refuses.
    """
    final = run.rejected.entry(number)
    move_directory(run.candidates.entry(number), final)
    return final
