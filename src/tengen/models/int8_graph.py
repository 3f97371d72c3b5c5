"""Quantises the trunk convolutions of a floating-point graph to int8.

Weights become int8 with one scale per output channel, and activations uint8 with one
scale per tensor. Standard ``QuantizeLinear`` and ``DequantizeLinear`` nodes around a
convolution express this; a backend that recognizes the nodes computes in integers. The
first convolution and the heads stay in floating point, because they are cheap.

On x86 processors without VNNI, the sum of two products of uint8 and int8 saturates at
32,767, but it can reach 2 * 255 * 127. So the scale of an output channel keeps the sum
of any two weights that may form a pair within 128 levels. The graph then has the same
outputs with and without VNNI. ``INT8_RULE`` marks graphs with this property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.inference.openvino_backend import INT8_RULE

PEAK_PREFIX = "peak."
"""Prefix of the names of outputs with an activation's maximum in each row."""

# ONNX's reference interpreter supports (De)QuantizeLinear from this opset on.
_OPSET = 19
_IR_VERSION = 9
_WEIGHT_LEVELS = 127
_ACTIVATION_LEVELS = 255
# Processors may add the products of any two input channels in a group of this size.
_GROUP = 4


def peak_graph(graph: bytes) -> bytes:
    """Adds outputs with the maxima of activations to a graph, for calibration.

    Args:
        graph: A serialised ``ModelProto`` with weights.

    Returns:
        The graph with an additional output ``peak.NAME``, ``[B]`` float32, for each
        activation that an int8 convolution reads: the activation's maximum per row.
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
    """Replaces the trunk convolutions of a graph with int8 convolutions.

    Args:
        graph: A serialised ``ModelProto`` with weights, in float32.
        peaks: The maximum of each activation that ``peak_graph`` outputs, by the
            activation's name; at least 0, because a ReLU precedes each convolution.

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
            "graph (no 3x3 convolution after the first) has nothing to compute in "
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
    """Builds a quantised graph: collects its nodes and additional tensors.

    Attributes:
        nodes: The nodes, in topological order.
        tensors: Scales and int8 weights.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._known: dict[str, str] = {}

    def activation(self, name: str, peak: float) -> str:
        """Adds nodes that round an activation to uint8; returns the result's name."""
        if name not in self._known:
            levels = np.array(_scales(np.array(peak), _ACTIVATION_LEVELS))
            scale = self._tensor(f"{name}.scale", levels)
            self._emit("QuantizeLinear", [name, scale], f"{name}.uint8")
            self._known[name] = self._emit(
                "DequantizeLinear", [f"{name}.uint8", scale], f"{name}.rounded"
            )
        return self._known[name]

    def weight(self, tensor: onnx.TensorProto) -> str:
        """Quantises a weight ``[O, I, kH, kW]``; returns the result's name."""
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
    """Returns the maximum absolute sum of two paired weights, per output channel.

    Args:
        weight: ``[O, I, kH, kW]``. A pair is two weights of equal sign in the same
            kernel cell and group of input channels; zeros pad the last group.

    Returns:
        ``[O]``; at least the maximum absolute weight of the channel.
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
    """Returns each peak's step between quantisation levels; 1 for a peak of 0."""
    return np.where(peaks > 0, peaks / num_levels, 1.0).astype(np.float32)


def _convolutions(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    weights = {item.name: item for item in proto.graph.initializer}
    return (node for node in proto.graph.node if _is_rounded(node, weights))


def _is_rounded(node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto]) -> bool:
    """Returns whether ``node`` is a convolution to quantise: not 1x1, not the first."""
    if node.op_type != "Conv" or node.input[0] == "planes":
        return False
    weight = weights.get(node.input[1])
    return weight is not None and tuple(weight.dims[2:]) != (1, 1)
