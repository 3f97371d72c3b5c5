"""Exports models to ONNX: traces an architecture once, then replaces its weights.

Tracing a network can take seconds, but replacing the weights of a graph takes
milliseconds. So all models of an architecture use one template graph. Templates are
cached in memory and, optionally, in a folder for other processes and resumed runs.
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
from tengen.errors import RunError, UsageError, did_you_mean, os_reason
from tengen.nets import NetConfig
from tengen.run import publish_file
from tengen.tensors import Signature

if TYPE_CHECKING:
    # At run time, only the functions that need onnx import it.
    import onnx

# Metadata key of a graph for the names of network tensors that inference never reads.
_UNUSED_KEY = "tengen.unused"

# Included in architecture_hash; increment it when tracing or the ONNX rules change.
_TRACE_VERSION = 3


def architecture_hash(signature: Signature, config: NetConfig) -> str:
    """Returns 16 hexadecimal digits that identify the template of an architecture."""
    content = [_TRACE_VERSION, to_dict(signature), to_dict(config)]
    text = json.dumps(content, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


class OnnxTemplate:
    """An ONNX graph in which the weights of a network can be replaced by name.

    Attributes:
        data: The serialised graph.
    """

    def __init__(self, data: bytes, where: str = "in memory") -> None:
        """Parses the serialised graph of a template that ``from_graph`` created.

        Args:
            data: A serialised ``ModelProto``.
            where: The path of the template's file, for error messages.

        Raises:
            RunError: The data is damaged or contains no graph.
        """
        import onnx

        self.data = data
        try:
            self._proto = onnx.load_model_from_string(data)
        except Exception as error:
            raise RunError(
                f"template ({where}) is not an ONNX graph; delete it to make it again"
            ) from error
        self._initializers = {item.name: item for item in self._proto.graph.initializer}
        self._unused = {
            name
            for item in self._proto.metadata_props
            if item.key == _UNUSED_KEY
            for name in item.value.split()
        }
        if not self._initializers:
            raise RunError(
                f"template ({where}) contains no weights; delete it to make it again"
            )

    @classmethod
    def from_graph(cls, graph: onnx.ModelProto, names: set[str]) -> OnnxTemplate:
        """Creates a template from a traced graph.

        Args:
            graph: The graph, traced without optimisation.
            names: The names of all of the network's tensors.

        Raises:
            RunError: The graph has a tensor that the network lacks, so ``patch`` could
                not replace it.
        """
        import onnx

        used = {item.name for item in graph.graph.initializer}
        if unexpected := sorted(used - names):
            raise RunError(
                f"graph tensor ({unexpected[0]}) is not a tensor of the network; make "
                "it a parameter or a persistent buffer"
            )
        onnx.helper.set_model_props(
            graph, {_UNUSED_KEY: " ".join(sorted(names - used))}
        )
        return cls(graph.SerializeToString())

    @property
    def tensor_names(self) -> frozenset[str]:
        """Names of all network tensors, including those that inference ignores."""
        return frozenset(self._initializers) | self._unused

    def patch(self, tensors: Mapping[str, NDArray[np.generic]]) -> bytes:
        """Returns the serialised graph with the given weights. Not thread-safe.

        Args:
            tensors: All of the network's tensors, by name.

        Raises:
            RunError: A name is missing or unexpected, or a shape or dtype differs.
        """
        import onnx

        if unexpected := sorted(tensors.keys() - self.tensor_names):
            name = unexpected[0]
            raise RunError(
                f"tensor ({name}) is not part of the exported architecture; "
                f"{did_you_mean(name, self.tensor_names)}"
            )
        if missing := sorted(self.tensor_names - tensors.keys()):
            raise RunError(
                f"tensor ({missing[0]}) is missing from the weights; save the whole "
                f"state of the network"
            )
        for name, item in self._initializers.items():
            tensor = np.ascontiguousarray(tensors[name])
            dtype = onnx.helper.tensor_dtype_to_np_dtype(item.data_type)
            if tensor.dtype != dtype or tensor.shape != tuple(item.dims):
                raise RunError(
                    f"tensor ({name}) is {tensor.dtype} {list(tensor.shape)}, not "
                    f"{dtype} {list(item.dims)}; export with the right architecture"
                )
            # Convert to little-endian order, which ONNX's raw data has on any machine.
            item.raw_data = tensor.astype(dtype.newbyteorder("<"), copy=False).tobytes()
        return bytes(self._proto.SerializeToString())


class ModelExporter:
    """Creates the ONNX graphs of networks from templates. Used by one thread."""

    def __init__(self, templates: Path | None = None) -> None:
        """Creates an exporter.

        Args:
            templates: The folder in which templates are cached, created when needed;
                None to cache templates only in memory.
        """
        self._folder = templates
        self._templates: dict[str, OnnxTemplate] = {}

    def export(
        self,
        signature: Signature,
        config: NetConfig,
        tensors: Mapping[str, NDArray[np.generic]],
    ) -> bytes:
        """Returns the content of ``model.onnx`` for a network.

        Takes milliseconds, or longer for an architecture without a template.

        Args:
            signature: The network's inputs and outputs.
            config: The kind and size of the network.
            tensors: The network's complete state dict.

        Raises:
            UsageError: The network has recurrent state.
            RunError: A tensor is missing or unexpected, or has the wrong shape, or the
                network cannot be traced.
        """
        return self.template(signature, config).patch(tensors)

    def template(self, signature: Signature, config: NetConfig) -> OnnxTemplate:
        """Returns an architecture's template; traces the network if none is cached.

        Raises:
            UsageError: The network has recurrent state.
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
        path = self._folder / f"{key}.onnx"
        try:
            return OnnxTemplate(path.read_bytes(), str(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RunError(
                f"template ({path}) cannot be read, {os_reason(error)}; delete it, and "
                "it is made again"
            ) from error
        template = _traced(signature, config)
        self._folder.mkdir(parents=True, exist_ok=True)
        publish_file(path, template.data)
        return template


def _traced(signature: Signature, config: NetConfig) -> OnnxTemplate:
    if signature.state:
        raise UsageError(
            f"net ({config.kind}) is recurrent, which graphs do not support; set "
            "inference.backend=torch"
        )
    import torch

    from tengen.models.trace import trace
    from tengen.nets import InferenceHead

    # Building the network must not advance the learner's random number generator.
    with torch.random.fork_rng(devices=[]):
        net = config.build(signature)
    head = InferenceHead(net, outputs=tuple(signature.outputs))
    return OnnxTemplate.from_graph(trace(head.eval(), signature), set(net.state_dict()))
