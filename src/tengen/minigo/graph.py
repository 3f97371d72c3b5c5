"""TensorFlow's frozen graphs: the constants among their nodes.

Source: TensorFlow, ``tensorflow/core/framework``: ``graph.proto``, ``node_def.proto``,
``attr_value.proto`` and ``tensor.proto`` (Apache License 2.0) for the fields.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.minigo.files import read_bounded, reading
from tengen.minigo.tensors import DTYPES, read_shape
from tengen.minigo.wire import Message

__all__ = ["FrozenGraph"]

_WHAT = "graph"
_MAX_BYTES = 1 << 26
_FLOAT = 1


class FrozenGraph:
    """The float32 constants of a ``GraphDef`` whose variables were frozen.

    Attributes:
        name: What messages call it, with its path.
        shapes: Of each float32 constant.
    """

    def __init__(self, path: Path) -> None:
        """Reads the graph; a tensor only when it is asked for.

        Args:
            path: The file, ``.pb``.

        Raises:
            RunError: It is missing, damaged or no graph.
        """
        self.name = f"{_WHAT} ({path})"
        self._path = path
        self._constants: dict[str, memoryview] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        with reading(_WHAT, path):
            graph = Message(memoryview(read_bounded(path, _MAX_BYTES)))
            for node in graph.messages(1):
                if node.text(2) == "Const":
                    self._add(node)

    def read(self, name: str) -> NDArray[np.generic]:
        """Returns a constant that ``shapes`` has.

        Raises:
            RunError: It has more numbers than its shape, or none.
        """
        shape = self.shapes[name]
        with reading(_WHAT, self._path):
            tensor = Message(self._constants[name])
            content = tensor.raw(4)
            if content:
                array = np.frombuffer(content, DTYPES[_FLOAT])
            else:
                array = tensor.floats(5)
                num_entries = math.prod(shape)
                if 0 < len(array) < num_entries:
                    # The last one stands for all that follow.
                    array = np.pad(array, (0, num_entries - len(array)), "edge")
            return array.reshape(shape)

    def _add(self, node: Message) -> None:
        for attribute in node.messages(5):
            if attribute.text(1) == "value":
                data = attribute.message(2).raw(8)
                tensor = Message(data)
                if tensor.whole(1) == _FLOAT:
                    name = node.text(1)
                    self._constants[name] = data
                    self.shapes[name] = read_shape(tensor.message(2))
