"""Exports models to ONNX: an architecture is traced once, then weights are patched in.

Templates are kept in memory and, if a folder is given, on disk, where other processes
and resumed runs find them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tengen.config import to_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.nets import NetConfig
from tengen.run import publish_file
from tengen.tensors import Signature

if TYPE_CHECKING:
    # It imports onnx, which is needed only for exports.
    from tengen.models.onnx_template import OnnxTemplate

__all__ = ["ModelExporter", "architecture_hash"]

# A part of the names of templates; raise it when tracing or the rules change.
_TRACE_VERSION = 3


def architecture_hash(signature: Signature, config: NetConfig) -> str:
    """Returns 16 hexadecimal digits that name an architecture's template."""
    content = [_TRACE_VERSION, to_dict(signature), to_dict(config)]
    text = json.dumps(content, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


class ModelExporter:
    """Makes ``model.onnx`` from weights. Used by one thread."""

    def __init__(self, templates: Path | None = None) -> None:
        """Starts with no template in memory.

        Args:
            templates: Folder of templates, created when needed; None to keep them in
                memory only.
        """
        self._folder = templates
        self._templates: dict[str, OnnxTemplate] = {}

    def export(
        self,
        signature: Signature,
        config: NetConfig,
        tensors: Mapping[str, NDArray[np.generic]],
    ) -> bytes:
        """Returns the ONNX file of a network with these weights.

        Takes milliseconds, or one to two seconds for the first of an architecture.

        Args:
            signature: The network's inputs and outputs.
            config: The network's size.
            tensors: The network's whole state, by its own names.

        Raises:
            UsageError: The network keeps state.
            RunError: A tensor is missing, unexpected or of another shape, or the
                network cannot be traced.
        """
        return self.template(signature, config).patch(tensors)

    def template(self, signature: Signature, config: NetConfig) -> OnnxTemplate:
        """Returns the architecture's template; traces the network if there is none yet.

        Raises:
            UsageError: The network keeps state.
            RunError: The network cannot be traced, or the template on disk is
                damaged.
        """
        key = architecture_hash(signature, config)
        if key not in self._templates:
            self._templates[key] = self._from_disk(key, signature, config)
        return self._templates[key]

    def _from_disk(
        self, key: str, signature: Signature, config: NetConfig
    ) -> OnnxTemplate:
        if self._folder is None:
            return _traced(signature, config)
        from tengen.models.onnx_template import OnnxTemplate

        path = self._folder / f"{key}.onnx"
        try:
            return OnnxTemplate(path.read_bytes(), str(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RunError(
                f"template ({path}) cannot be read, {os_reason(error)}; "
                f"delete it, it is made again"
            ) from error
        template = _traced(signature, config)
        self._folder.mkdir(parents=True, exist_ok=True)
        publish_file(path, template.data)
        return template


def _traced(signature: Signature, config: NetConfig) -> OnnxTemplate:
    if signature.state:
        raise UsageError(
            f"net ({config.kind}) keeps state, which graphs do not; "
            f"set inference.backend=torch"
        )
    import torch

    from tengen.models.onnx_template import OnnxTemplate
    from tengen.models.trace import trace
    from tengen.nets import InferenceHead

    # The weights are patched away; torch's generator belongs to the learner.
    with torch.random.fork_rng(devices=[]):
        net = config.build(signature)
    head = InferenceHead(net, outputs=tuple(signature.outputs))
    return OnnxTemplate.from_graph(trace(head.eval(), signature), set(net.state_dict()))
