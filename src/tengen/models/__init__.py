"""Models: exporting, checking, publishing, finding and verifying them.

A model is a directory ``{weights.safetensors, model.onnx, meta.json}``, immutable and
numbered. Importing this imports no torch.
"""

from __future__ import annotations

from tengen.models.check import ExportCheck, check_export
from tengen.models.export import ModelExporter
from tengen.models.load import load_model, resolve_model
from tengen.models.meta import MODEL_SCHEMA, ModelDir, ModelMeta
from tengen.models.publish import accept, next_number, publish_model, reject

__all__ = [
    "MODEL_SCHEMA",
    "ExportCheck",
    "ModelDir",
    "ModelExporter",
    "ModelMeta",
    "accept",
    "check_export",
    "load_model",
    "next_number",
    "publish_model",
    "reject",
    "resolve_model",
]
