"""Quantises a float graph: the trunk's convolutions are computed in int8.

Weights become int8 with a scale for each output channel, activations uint8 with one
scale. Standard ``QuantizeLinear`` and ``DequantizeLinear`` nodes around a convolution
describe this, and a backend that knows them computes in integers. The first convolution
stays in floats, because it has few planes, and so do the heads, which cost little.

x86 processors without VNNI add two products of uint8 and int8 in 16 bits, which
saturates above 32,767; two products of 255 * 127 would. So the scale of an output
channel keeps the sum of any two weights that may be added first within 128 levels. The
same graph then gives the same integers with and without VNNI. ``INT8_RULE`` marks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.inference.openvino_backend import INT8_RULE

__all__ = ["PEAK_PREFIX", "int8_graph", "peak_graph"]

PEAK_PREFIX = "peak."
"""The prefix of the output with the largest values of an activation."""

# The first opset in which ONNX's own interpreter computes both nodes.
_OPSET = 19
_IR_VERSION = 9
_WEIGHT_LEVELS = 127
_ACTIVATION_LEVELS = 255
# Input channels whose products a processor without VNNI adds in pairs.
_GROUP = 4


def peak_graph(graph: bytes) -> bytes:
    """Returns a float graph that also outputs the peaks of its activations.

    Args:
        graph: A serialised ``ModelProto`` with weights.

    Returns:
        The graph with one more output ``[B]`` float32 for each input of an int8
        convolution: its largest value in each row, named ``peak.`` and its name.
    """
    proto = onnx.load_model_from_string(graph)
    for name in dict.fromkeys(node.input[0] for node in _convolutions(proto)):
        axes = onnx.numpy_helper.from_array(np.array([1, 2, 3], np.int64))
        output, constant = PEAK_PREFIX + name, f"{PEAK_PREFIX}{name}.axes"
        proto.graph.node.extend(
            [
                onnx.helper.make_node("Constant", [], [constant], value=axes),
                onnx.helper.make_node(
                    "ReduceMax", [name, constant], [output], keepdims=0
                ),
            ]
        )
        proto.graph.output.append(
            onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, ["B"])
        )
    return bytes(proto.SerializeToString())


def int8_graph(graph: bytes, peaks: Mapping[str, float]) -> bytes:
    """Returns the graph with int8 convolutions.

    Args:
        graph: A serialised ``ModelProto`` with weights, in float32.
        peaks: The largest value of each activation of ``peak_graph``, by its name. They
            are never negative, because a ReLU precedes them.

    Raises:
        RunError: The graph has no convolution to quantise.
    """
    proto = onnx.load_model_from_string(graph)
    weights = {item.name: item for item in proto.graph.initializer}
    rounding = _Rounding()
    for node in proto.graph.node:
        if _is_rounded(node, weights):
            activation, weight = node.input[:2]
            node.input[0] = rounding.activation(activation, peaks[activation])
            node.input[1] = rounding.weight(weights.pop(weight))
        rounding.nodes.append(node)
    if not rounding.tensors:
        raise RunError(
            "graph (no 3x3 convolution behind the first) has nothing to compute in "
            "int8; set inference.precision=bf16"
        )
    tensors = [*weights.values(), *rounding.tensors]
    del proto.graph.node[:], proto.graph.initializer[:]
    proto.graph.node.extend(rounding.nodes)
    proto.graph.initializer.extend(tensors)
    proto.opset_import[0].version = _OPSET
    proto.ir_version = _IR_VERSION
    onnx.helper.set_model_props(proto, {INT8_RULE: "1"})
    return bytes(proto.SerializeToString())


class _Rounding:
    """Collects the nodes and the additional tensors of the new graph.

    Attributes:
        nodes: The nodes, in topological order.
        tensors: Scales and int8 weights.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._known: dict[str, str] = {}

    def activation(self, name: str, peak: float) -> str:
        """Returns the name of an activation rounded to uint8 and made float again."""
        if name not in self._known:
            levels = np.array(_scales(np.array(peak), _ACTIVATION_LEVELS))
            scale = self._tensor(f"{name}.scale", levels)
            self._emit("QuantizeLinear", [name, scale], f"{name}.uint8")
            self._known[name] = self._emit(
                "DequantizeLinear", [f"{name}.uint8", scale], f"{name}.rounded"
            )
        return self._known[name]

    def weight(self, tensor: onnx.TensorProto) -> str:
        """Returns the name of a weight ``[O, I, kH, kW]`` that is kept in int8."""
        array = onnx.numpy_helper.to_array(tensor)
        scales = _scales(_pair_peaks(array), _WEIGHT_LEVELS)
        levels = np.rint(array / scales[:, None, None, None])
        name = self._tensor(tensor.name, levels.astype(np.int8))
        scale = self._tensor(f"{name}.scale", scales)
        return self._emit("DequantizeLinear", [name, scale], f"{name}.rounded", axis=0)

    def _tensor(self, name: str, array: NDArray[np.generic]) -> str:
        self.tensors.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _emit(
        self, operation: str, inputs: list[str], output: str, **attributes: Any
    ) -> str:
        self.nodes.append(
            onnx.helper.make_node(operation, inputs, [output], **attributes)
        )
        return output


def _pair_peaks(weight: NDArray[np.floating]) -> NDArray[np.floating]:
    """Returns the largest sum of two weights of one sign, for each output channel.

    Args:
        weight: ``[O, I, kH, kW]``. Two weights count together if they are of one cell
            of the kernel and of one group of input channels; zeros complete a group.

    Returns:
        ``[O]``, at least the largest absolute weight.
    """
    num_outputs, num_inputs, *kernel = weight.shape
    padding = ((0, 0), (0, -num_inputs % _GROUP), (0, 0), (0, 0))
    groups = np.pad(weight, padding).reshape(num_outputs, -1, _GROUP, *kernel)
    sums = [
        np.sort(np.maximum(signed, 0), axis=2)[:, :, -2:].sum(axis=2)
        for signed in (groups, -groups)
    ]
    return np.asarray(np.maximum(*sums).max(axis=(1, 2, 3)))


def _scales(peaks: NDArray[np.floating], num_levels: int) -> NDArray[np.float32]:
    """Returns the step between levels; 1 if all values are zero."""
    return np.where(peaks > 0, peaks / num_levels, 1.0).astype(np.float32)


def _convolutions(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    weights = {item.name: item for item in proto.graph.initializer}
    return (node for node in proto.graph.node if _is_rounded(node, weights))


def _is_rounded(node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether a node is a convolution larger than 1x1, and not the first one."""
    if node.op_type != "Conv" or node.input[0] == "planes":
        return False
    weight = weights.get(node.input[1])
    return weight is not None and tuple(weight.dims[2:]) != (1, 1)
