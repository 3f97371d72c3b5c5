"""``tengen data export-onnx``: exports a model as an ONNX graph for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.models.export import ModelExporter
from tengen.models.load import read_weights
from tengen.models.resolve import resolve_model
from tengen.observe.progress_line import ProgressLine
from tengen.run import check_new_file, publish_file
from tengen.tensors import TensorSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``data export-onnx``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="RUN (its newest model), RUN@17, a model directory or bundled:go/9",
    )
    parser.add_argument("onnx", metavar="FILE", help="the file to write")


def export_onnx(args: argparse.Namespace) -> dict[str, Any]:
    """Exports a model; returns ``model``, ``onnx``, ``task``, ``inputs``, ``outputs``.

    ``inputs`` and ``outputs`` map the name of each tensor to the ``dtype`` and
    ``shape`` of one row. The exported graph accepts any batch size.

    Raises:
        UsageError: The model or the output folder does not exist, or the network is
            recurrent.
        RunError: The network cannot be traced, or the write fails.
    """
    path = Path(args.onnx)
    check_new_file("onnx", path)
    model = resolve_model(args.model)
    signature = model.meta.signature
    check(
        not signature.state,
        "model",
        args.model,
        "is recurrent, which graphs do not support; use tengen.load",
    )
    check(
        not model.meta.net.is_native,
        "model",
        args.model,
        f"has no graph, because the core evaluates net.kind {model.meta.net.kind}; use "
        "tengen.load",
    )
    tensors = read_weights(model.path)
    with ProgressLine("making the graph"):
        data = ModelExporter().export(signature, model.meta.net, tensors)
    publish_file(path, data)
    report: dict[str, Any] = {
        "model": str(model.path),
        "onnx": str(path),
        "task": model.meta.task,
        "inputs": _described(signature.inputs),
        "outputs": _described(signature.outputs),
    }
    if not args.json:
        print(f"{path}: {len(data) / 1000:,.0f} kB, {model.meta.task}")
        for part in ("inputs", "outputs"):
            for name, row in report[part].items():
                print(f"{part[:-1]} {name}: {row['dtype']} {['rows', *row['shape']]}")
    return report


def _described(tensors: dict[str, TensorSpec]) -> dict[str, Any]:
    return {
        name: {"dtype": spec.dtype, "shape": list(spec.shape)}
        for name, spec in tensors.items()
    }
