"""The ONNX graph of an architecture, into which weights are patched; without torch.

Tracing a network takes seconds, replacing the bytes of its initializers takes
milliseconds, so each architecture is traced once, and its models are the same graph
with other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray

from tengen.errors import RunError, did_you_mean

__all__ = ["OnnxTemplate"]

# The metadata key for the names of tensors that inference never reads.
_UNUSED_KEY = "tengen.unused"


class OnnxTemplate:
    """A graph whose initializers have the network's own tensor names.

    Attributes:
        data: The serialised graph.
    """

    def __init__(self, data: bytes, where: str = "in memory") -> None:
        """Parses a template made by ``from_graph``.

        Args:
            data: A serialised ``ModelProto``.
            where: The file, for messages.

        Raises:
            RunError: The data is damaged or holds no graph.
        """
        self.data = data
        try:
            self._proto = onnx.load_model_from_string(data)
        except Exception as error:
            raise RunError(
                f"template ({where}) is not an ONNX graph; delete it, it is made again"
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
                f"template ({where}) holds no weights; delete it, it is made again"
            )

    @classmethod
    def from_graph(cls, graph: onnx.ModelProto, names: set[str]) -> OnnxTemplate:
        """Makes a template from a traced graph.

        Args:
            graph: The graph, traced without optimisation.
            names: Every tensor of the network.

        Raises:
            RunError: The graph holds a tensor that the network does not have, which
                patching could not replace.
        """
        used = {item.name for item in graph.graph.initializer}
        if unexpected := sorted(used - names):
            raise RunError(
                f"graph tensor ({unexpected[0]}) is no tensor of the network; make it "
                f"a parameter or a persistent buffer"
            )
        onnx.helper.set_model_props(
            graph, {_UNUSED_KEY: " ".join(sorted(names - used))}
        )
        return cls(graph.SerializeToString())

    @property
    def tensor_names(self) -> frozenset[str]:
        """All tensors of the network, even those that inference never reads."""
        return frozenset(self._initializers) | self._unused

    def patch(self, tensors: Mapping[str, NDArray[np.generic]]) -> bytes:
        """Returns the graph with these weights. Not safe to call from two threads.

        Args:
            tensors: Exactly the network's tensors, by name.

        Raises:
            RunError: A name is missing or unexpected, or a shape or dtype differs.
        """
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
                    f"tensor ({name}) is {tensor.dtype} {list(tensor.shape)} and must "
                    f"be {dtype} {list(item.dims)}; export with the right architecture"
                )
            # ONNX stores raw data in little-endian order whatever the machine's.
            item.raw_data = tensor.astype(dtype.newbyteorder("<"), copy=False).tobytes()
        return bytes(self._proto.SerializeToString())
