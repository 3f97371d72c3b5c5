"""Models: export, check against torch, publication, lookup by name, verification.

A model is an immutable, numbered directory ``{weights.safetensors, meta.json}``. It
also has ``model.onnx`` if its run evaluates ONNX graphs, and ``model_int8.onnx`` if it
can be evaluated in int8. Importing this package does not import torch.
"""

from __future__ import annotations

from tengen.models.check import ExportCheck, check_export
from tengen.models.export import ModelExporter
from tengen.models.int8 import Int8Check, can_quantise, quantise
from tengen.models.load import (
    INT8_FILE,
    ModelDir,
    ModelMeta,
    ModelOrigin,
    load_model,
)
from tengen.models.publish import accept, next_number, publish_model, reject
from tengen.models.resolve import KATAGO, resolve_model

__all__ = [
    "INT8_FILE",
    "KATAGO",
    "ExportCheck",
    "Int8Check",
    "ModelDir",
    "ModelExporter",
    "ModelMeta",
    "ModelOrigin",
    "accept",
    "can_quantise",
    "check_export",
    "load_model",
    "next_number",
    "publish_model",
    "quantise",
    "reject",
    "resolve_model",
]
