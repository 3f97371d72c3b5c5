"""Rules that translate the torch operations of tengen's networks to ONNX.

The rules keep tensor names, fold no constants and take milliseconds. torch's exporter
takes seconds and needs the package onnxscript. If a network calls a function without a
rule, ``tengen.models.trace`` uses torch's exporter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tengen.errors import RunError

OPSET = 18

# The end index of an ONNX slice that extends to the end of its axis.
_TO_END = 2**63 - 1


class NoRuleError(RunError):
    """Raised if an operation, or one of its arguments, has no rule for ONNX."""


class Value(str):
    """The name of a tensor in an ONNX graph, with the tensor's dtype and axes."""

    __slots__ = ("dtype", "num_axes")
    dtype: str
    """The name of the tensor's torch dtype, such as ``torch.float32``."""
    num_axes: int


class GraphBuilder:
    """Collects the nodes of an ONNX graph.

    Attributes:
        nodes: The nodes so far, in topological order.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []

    def emit(self, operation: str, *inputs: str, **attributes: Any) -> Value:
        """Adds a node with one output, and returns the output."""
        output = Value(f"{operation.lower()}_{len(self.nodes)}")
        self.nodes.append(
            onnx.helper.make_node(operation, inputs, [output], **attributes)
        )
        return output

    def constant(self, array: NDArray[np.generic]) -> Value:
        """Adds a constant node and returns its output; weights are initializers."""
        return self.emit("Constant", value=onnx.numpy_helper.from_array(array))

    def axes(self, *axes: int) -> Value:
        """Adds a constant with axis numbers, ``[len(axes)]`` int64, and returns it."""
        return self.constant(np.array(axes, np.int64))

    def tensor(self, operand: Value | float, kind: np.dtype[Any]) -> Value:
        """Returns ``operand`` as a tensor; adds a constant if it is a plain number."""
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


def _subtract_from(graph: GraphBuilder, b: Value, a: Value | float) -> Value:
    return _binary("Sub")(graph, a, b)


def _reduction(operation: str) -> Rule:
    def rule(
        graph: GraphBuilder, x: Value, dim: int | Sequence[int], keepdim: bool = False
    ) -> Value:
        axes = (dim,) if isinstance(dim, int) else dim
        return graph.emit(operation, x, graph.axes(*axes), keepdims=int(keepdim))

    return rule


def _cast_to(dtype: str) -> Rule:
    def rule(graph: GraphBuilder, x: Value) -> Value:
        return _to(graph, x, dtype)

    return rule


def _to(graph: GraphBuilder, x: Value, dtype: Any) -> Value:
    if not str(dtype).startswith("torch."):
        raise NoRuleError(f"to ({dtype}) has no ONNX rule; name a dtype")
    if str(dtype) == x.dtype:
        return x
    kind = np.dtype(str(dtype).removeprefix("torch."))
    return graph.emit("Cast", x, to=onnx.helper.np_dtype_to_tensor_dtype(kind))


def _clamp(
    graph: GraphBuilder,
    x: Value,
    min: float | None = None,
    max: float | None = None,
) -> Value:
    kind = np.dtype(x.dtype.removeprefix("torch."))
    bounds = [
        "" if bound is None else graph.constant(np.array(bound, kind))
        for bound in (min, max)
    ]
    return graph.emit("Clip", x, *bounds)


def _conv2d(
    graph: GraphBuilder,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Value:
    if isinstance(padding, str):
        raise NoRuleError(f"conv2d (padding {padding}) has no ONNX rule; give numbers")
    inputs = (x, weight) if bias is None else (x, weight, bias)
    return graph.emit(
        "Conv",
        *inputs,
        strides=_pair(stride),
        pads=2 * _pair(padding),
        dilations=_pair(dilation),
        group=groups,
    )


def _pair(size: int | Sequence[int]) -> list[int]:
    return [size, size] if isinstance(size, int) else list(size)


def _batch_norm(
    graph: GraphBuilder,
    x: Value,
    mean: Value,
    var: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    if training:
        raise RunError("network (training mode) cannot be exported; call eval() first")
    if weight is None or bias is None:
        # ONNX's BatchNormalization needs weight and bias, so emit Sub and Div instead.
        if weight is not None or bias is not None:
            raise NoRuleError(
                "batch_norm (a scale or a shift alone) has no ONNX rule; use both"
            )
        axes = graph.axes(*range(1, x.num_axes - 1))
        deviation = graph.emit(
            "Sqrt",
            graph.emit("Add", var, graph.constant(np.array(eps, np.float32))),
        )
        centred = graph.emit("Sub", x, graph.emit("Unsqueeze", mean, axes))
        return graph.emit("Div", centred, graph.emit("Unsqueeze", deviation, axes))
    return graph.emit("BatchNormalization", x, weight, bias, mean, var, epsilon=eps)


def _group_norm(
    graph: GraphBuilder,
    x: Value,
    num_groups: int,
    weight: Value,
    bias: Value,
    eps: float = 1e-5,
) -> Value:
    if num_groups != 1:
        raise NoRuleError(
            f"group_norm ({num_groups} groups) has no ONNX rule; use one group"
        )
    if x.num_axes == 2:
        return graph.emit("LayerNormalization", x, weight, bias, axis=1, epsilon=eps)
    axes = graph.axes(*range(1, x.num_axes))
    centred = graph.emit("Sub", x, graph.emit("ReduceMean", x, axes))
    square = graph.emit("ReduceMean", graph.emit("Mul", centred, centred), axes)
    shifted = graph.emit("Add", square, graph.constant(np.array(eps, np.float32)))
    normal = graph.emit("Div", centred, graph.emit("Sqrt", shifted))
    outer = graph.axes(*range(1, x.num_axes - 1))
    scaled = graph.emit("Mul", normal, graph.emit("Unsqueeze", weight, outer))
    return graph.emit("Add", scaled, graph.emit("Unsqueeze", bias, outer))


def _linear(
    graph: GraphBuilder, x: Value, weight: Value, bias: Value | None = None
) -> Value:
    if x.num_axes == 2:
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return graph.emit("Gemm", *inputs, transB=1)
    product = graph.emit("MatMul", x, graph.emit("Transpose", weight, perm=[1, 0]))
    return product if bias is None else graph.emit("Add", product, bias)


def _cat(graph: GraphBuilder, parts: Sequence[Value], dim: int = 0) -> Value:
    return graph.emit("Concat", *parts, axis=dim)


def _item(graph: GraphBuilder, x: Value, index: Any) -> Value:
    """Translates ``x[index]`` for slices, integers and None: ``x[:, 2:, None]``."""
    axis = 0
    for part in index if isinstance(index, tuple) else (index,):
        if part is None:
            x = graph.emit("Unsqueeze", x, graph.axes(axis))
            axis += 1
        elif isinstance(part, slice):
            x = _slice(graph, x, axis, part)
            axis += 1
        elif isinstance(part, int) and not isinstance(part, bool):
            x = graph.emit("Gather", x, graph.constant(np.array(part)), axis=axis)
        else:
            raise NoRuleError(f"index ({part}) has no ONNX rule; use a slice")
    return x


def _slice(graph: GraphBuilder, x: Value, axis: int, part: slice) -> Value:
    if any(isinstance(number, str) for number in (part.start, part.stop, part.step)):
        raise NoRuleError("index (a tensor) has no ONNX rule; slice with numbers")
    start, step = part.start or 0, part.step or 1
    end = _TO_END if part.stop is None else part.stop
    if (start, end, step) == (0, _TO_END, 1):
        return x
    bounds = (graph.axes(number) for number in (start, end, axis, step))
    return graph.emit("Slice", x, *bounds)


def _select(graph: GraphBuilder, x: Value, dim: int, index: int) -> Value:
    return graph.emit("Gather", x, graph.constant(np.array(index)), axis=dim)


def _squeeze(graph: GraphBuilder, x: Value, dim: int) -> Value:
    return graph.emit("Squeeze", x, graph.axes(dim))


def _unsqueeze(graph: GraphBuilder, x: Value, dim: int) -> Value:
    return graph.emit("Unsqueeze", x, graph.axes(dim))


def _transpose(graph: GraphBuilder, x: Value, dim0: int, dim1: int) -> Value:
    order = list(range(x.num_axes))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return graph.emit("Transpose", x, perm=order)


def _flatten(
    graph: GraphBuilder, x: Value, start_dim: int = 0, end_dim: int = -1
) -> Value:
    if start_dim != 1 or end_dim not in (-1, x.num_axes - 1):
        raise NoRuleError(
            f"flatten (axes {start_dim} to {end_dim}) has no ONNX rule; "
            f"flatten all axes after the batch"
        )
    return graph.emit("Flatten", x, axis=1)


def _unflatten(graph: GraphBuilder, x: Value, dim: int, sizes: Sequence[int]) -> Value:
    if dim != 1 or x.num_axes != 2:
        raise NoRuleError("unflatten has an ONNX rule only for axis 1 of two")
    # A size of 0 stands for that of the batch.
    return graph.emit("Reshape", x, graph.constant(np.array([0, *sizes], np.int64)))


def _where(graph: GraphBuilder, is_first: Value, a: Value, b: Value) -> Value:
    return graph.emit("Where", is_first, a, b)


def _softmax(graph: GraphBuilder, x: Value, dim: int) -> Value:
    return graph.emit("Softmax", x, axis=dim)


def _silu(graph: GraphBuilder, x: Value) -> Value:
    return graph.emit("Mul", x, graph.emit("Sigmoid", x))


def _full_like(graph: GraphBuilder, x: Value, number: float) -> Value:
    kind = np.dtype(x.dtype.removeprefix("torch."))
    value = onnx.numpy_helper.from_array(np.array([number], kind))
    return graph.emit("ConstantOfShape", graph.emit("Shape", x), value=value)


def _arange(
    graph: GraphBuilder, start: float, end: float, *, device: Any = None
) -> Value:
    return graph.constant(np.arange(start, end, dtype=np.float32))


RULES: dict[str, Rule] = {
    "__getitem__": _item,
    "__rsub__": _subtract_from,
    "add": _binary("Add"),
    "amax": _reduction("ReduceMax"),
    "arange": _arange,
    "batch_norm": _batch_norm,
    "bool": _cast_to("torch.bool"),
    "cat": _cat,
    "clamp": _clamp,
    "conv2d": _conv2d,
    "div": _binary("Div"),
    "double": _cast_to("torch.float64"),
    "flatten": _flatten,
    "float": _cast_to("torch.float32"),
    "full_like": _full_like,
    "group_norm": _group_norm,
    "linear": _linear,
    "mean": _reduction("ReduceMean"),
    "mish": _unary("Mish"),
    "mul": _binary("Mul"),
    "relu": _unary("Relu"),
    "select": _select,
    "silu": _silu,
    "softmax": _softmax,
    "softplus": _unary("Softplus"),
    "sqrt": _unary("Sqrt"),
    "squeeze": _squeeze,
    "sub": _binary("Sub"),
    "sum": _reduction("ReduceSum"),
    "tanh": _unary("Tanh"),
    "to": _to,
    "transpose": _transpose,
    "unflatten": _unflatten,
    "unsqueeze": _unsqueeze,
    "where": _where,
}
"""Rules by name of the torch function or tensor method; they take its arguments."""
