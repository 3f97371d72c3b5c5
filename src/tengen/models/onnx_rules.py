"""A rule for each torch operation of tengen's networks: its equivalent in ONNX.

These rules keep every tensor's name, fold nothing, and take milliseconds, while torch's
exporter takes seconds and needs another package. A network
with an operation without a rule goes through that exporter (``export_by_torch``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tengen.errors import RunError

__all__ = ["OPSET", "RULES", "GraphBuilder", "NoRuleError", "Value"]

OPSET = 18

# The end of a slice that torch writes for "to the end".
_TO_END = 2**63 - 1


class NoRuleError(RunError):
    """There is no rule for an operation, or for its arguments."""


class Value(str):
    """The name of a tensor in the graph. Other arguments are plain numbers."""

    __slots__ = ("dtype", "num_axes")
    dtype: str
    """The dtype in torch's form, ``torch.float32``."""
    num_axes: int


class GraphBuilder:
    """Collects ONNX nodes.

    Attributes:
        nodes: The nodes so far, in topological order.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []

    def emit(self, operation: str, *inputs: str, **attributes: Any) -> Value:
        """Adds a node and returns its only output."""
        output = Value(f"{operation.lower()}_{len(self.nodes)}")
        self.nodes.append(
            onnx.helper.make_node(operation, inputs, [output], **attributes)
        )
        return output

    def constant(self, array: NDArray[np.generic]) -> Value:
        """Adds a constant as a node, so that initializers are only weights."""
        return self.emit("Constant", value=onnx.numpy_helper.from_array(array))

    def axes(self, *axes: int) -> Value:
        """Adds a constant ``[num_axes]`` int64."""
        return self.constant(np.array(axes, np.int64))

    def tensor(self, operand: Value | float, kind: np.dtype[Any]) -> Value:
        """Returns the tensor of an operand that may be a number in torch."""
        if isinstance(operand, Value):
            return operand
        return self.constant(np.array(operand, kind))


Rule = Callable[..., Value]


def _unary(operation: str) -> Rule:
    def rule(graph: GraphBuilder, x: Value) -> Value:
        return graph.emit(operation, x)

    return rule


def _binary(operation: str) -> Rule:
    def rule(graph: GraphBuilder, a: Value | float, b: Value | float) -> Value:
        kind = np.dtype(np.float32)
        for operand in (a, b):
            if isinstance(operand, Value):
                kind = np.dtype(operand.dtype.removeprefix("torch."))
        return graph.emit(operation, graph.tensor(a, kind), graph.tensor(b, kind))

    return rule


def _reduction(operation: str) -> Rule:
    def rule(
        graph: GraphBuilder, x: Value, axes: Sequence[int], keepdim: bool = False
    ) -> Value:
        return graph.emit(operation, x, graph.axes(*axes), keepdims=int(keepdim))

    return rule


def _to(graph: GraphBuilder, x: Value, dtype: Any, *_: Any, **__: Any) -> Value:
    if str(dtype) == x.dtype:
        return x
    kind = np.dtype(str(dtype).removeprefix("torch."))
    return graph.emit("Cast", x, to=onnx.helper.np_dtype_to_tensor_dtype(kind))


def _clamp(
    graph: GraphBuilder,
    x: Value,
    least: float | None = None,
    most: float | None = None,
) -> Value:
    kind = np.dtype(x.dtype.removeprefix("torch."))
    bounds = [
        "" if bound is None else graph.constant(np.array(bound, kind))
        for bound in (least, most)
    ]
    return graph.emit("Clip", x, *bounds)


def _conv2d(
    graph: GraphBuilder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
) -> Value:
    inputs = (x, weight) if bias is None else (x, weight, bias)
    return graph.emit(
        "Conv",
        *inputs,
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        group=groups,
    )


def _batch_norm(
    graph: GraphBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    var: Value,
    training: bool,
    momentum: float,
    epsilon: float,
    *_: Any,
) -> Value:
    if training:
        raise RunError("network (training mode) cannot be exported; call eval() first")
    if weight is None or bias is None:
        # ONNX's operator needs both; without them it is a difference and a quotient.
        if weight is not None or bias is not None:
            raise NoRuleError(
                "batch_norm (a scale or a shift alone) has no ONNX rule; have both"
            )
        axes = graph.axes(*range(1, x.num_axes - 1))
        deviation = graph.emit(
            "Sqrt",
            graph.emit("Add", var, graph.constant(np.array(epsilon, np.float32))),
        )
        centred = graph.emit("Sub", x, graph.emit("Unsqueeze", mean, axes))
        return graph.emit("Div", centred, graph.emit("Unsqueeze", deviation, axes))
    return graph.emit("BatchNormalization", x, weight, bias, mean, var, epsilon=epsilon)


def _linear(
    graph: GraphBuilder, x: Value, weight: Value, bias: Value | None = None
) -> Value:
    if x.num_axes == 2:
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return graph.emit("Gemm", *inputs, transB=1)
    product = graph.emit("MatMul", x, graph.emit("Transpose", weight, perm=[1, 0]))
    return product if bias is None else graph.emit("Add", product, bias)


def _cat(graph: GraphBuilder, parts: Sequence[Value], axis: int = 0) -> Value:
    return graph.emit("Concat", *parts, axis=axis)


def _slice(
    graph: GraphBuilder,
    x: Value,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    start, end = start or 0, _TO_END if end is None else end
    if (start, end, step) == (0, _TO_END, 1):
        return x
    bounds = (graph.axes(item) for item in (start, end, axis, step))
    return graph.emit("Slice", x, *bounds)


def _select(graph: GraphBuilder, x: Value, axis: int, index: int) -> Value:
    return graph.emit("Gather", x, graph.constant(np.array(index)), axis=axis)


def _squeeze(graph: GraphBuilder, x: Value, axis: int) -> Value:
    return graph.emit("Squeeze", x, graph.axes(axis))


def _unsqueeze(graph: GraphBuilder, x: Value, axis: int) -> Value:
    return graph.emit("Unsqueeze", x, graph.axes(axis))


def _transpose(graph: GraphBuilder, x: Value, first: int, second: int) -> Value:
    order = list(range(x.num_axes))
    order[first], order[second] = order[second], order[first]
    return graph.emit("Transpose", x, perm=order)


def _flatten(graph: GraphBuilder, x: Value, start: int = 0, end: int = -1) -> Value:
    if start != 1 or end not in (-1, x.num_axes - 1):
        raise NoRuleError(
            f"flatten (axes {start} to {end}) has no ONNX rule; flatten all axes "
            f"after the batch"
        )
    return graph.emit("Flatten", x, axis=1)


def _softmax(graph: GraphBuilder, x: Value, axis: int, *_: Any) -> Value:
    return graph.emit("Softmax", x, axis=axis)


def _silu(graph: GraphBuilder, x: Value) -> Value:
    return graph.emit("Mul", x, graph.emit("Sigmoid", x))


def _full_like(graph: GraphBuilder, x: Value, number: float, **_: Any) -> Value:
    kind = np.dtype(x.dtype.removeprefix("torch."))
    value = onnx.numpy_helper.from_array(np.array([number], kind))
    return graph.emit("ConstantOfShape", graph.emit("Shape", x), value=value)


def _arange(graph: GraphBuilder, start: float, end: float, **_: Any) -> Value:
    return graph.constant(np.arange(start, end, dtype=np.float32))


RULES: dict[str, Rule] = {
    "aten.add.Tensor": _binary("Add"),
    "aten.amax.default": _reduction("ReduceMax"),
    "aten.arange.start": _arange,
    "aten.batch_norm.default": _batch_norm,
    "aten.cat.default": _cat,
    "aten.clamp.default": _clamp,
    "aten.conv2d.default": _conv2d,
    "aten.div.Tensor": _binary("Div"),
    "aten.flatten.using_ints": _flatten,
    "aten.full_like.default": _full_like,
    "aten.linear.default": _linear,
    "aten.mean.dim": _reduction("ReduceMean"),
    "aten.mish.default": _unary("Mish"),
    "aten.mul.Tensor": _binary("Mul"),
    "aten.relu.default": _unary("Relu"),
    "aten.select.int": _select,
    "aten.slice.Tensor": _slice,
    "aten.silu.default": _silu,
    "aten.softmax.int": _softmax,
    "aten.softplus.default": _unary("Softplus"),
    "aten.sqrt.default": _unary("Sqrt"),
    "aten.squeeze.dim": _squeeze,
    "aten.sub.Tensor": _binary("Sub"),
    "aten.sum.dim_IntList": _reduction("ReduceSum"),
    "aten.tanh.default": _unary("Tanh"),
    "aten.to.dtype": _to,
    "aten.transpose.int": _transpose,
    "aten.unsqueeze.default": _unsqueeze,
}
"""Rule by torch's name of the operation; takes the operation's own arguments."""
