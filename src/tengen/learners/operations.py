"""Translates torch's operations to those of ``tengen._core.Program``.

Tensors are split into views and expanded, because a view needs no operation: a program
knows a tensor by its memory, its offset and its strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tengen.learners.recording import Call, NotRecordable, memory_of, tensors_in

TYPES = {
    torch.bool: 0,
    torch.uint8: 1,
    torch.int32: 2,
    torch.int64: 3,
    torch.float32: 4,
    torch.float64: 5,
}
"""Numbers of the dtypes in the core."""
_MAX_AXES = 4
_WIDE = (torch.int32, torch.int64, torch.float64)
# Operations that only move numbers.
_MOVES = ("copy", "where", "masked_fill")
_ZERO, _ONE = ("new_zeros", "zeros", "zeros_like"), ("ones", "ones_like")

# Elementwise operations: the number of inputs, which are the first arguments, and of
# constants, which follow. Also for the names with "_" and "_foreach_".
_MAPS = {
    **dict.fromkeys(
        ("abs", "copy", "exp", "expm1", "log", "logical_not", "neg"), (1, 0)
    ),
    **dict.fromkeys(("reciprocal", "relu", "sgn", "sqrt", "tanh"), (1, 0)),
    **dict.fromkeys(("div", "eq", "ge", "gt", "le", "logical_and", "lt"), (2, 0)),
    **dict.fromkeys(("logical_or", "maximum", "minimum", "mul", "ne"), (2, 0)),
    **dict.fromkeys(("add", "rsub", "sub", "lerp", "threshold_backward"), (2, 1)),
    **dict.fromkeys(("masked_fill", "where"), (3, 0)),
    "pow": (1, 1),
    "clamp": (1, 2),
    "softplus": (1, 2),
    "softplus_backward": (2, 2),
    "tanh_backward": (2, 0),
    "huber_loss": (2, 2),
    "huber_loss_backward": (3, 2),
}
# Operations that copy an argument, given by its place.
_COPIES = {"clone": 0, "_to_copy": 0, "copy_": 1, "fill_": 1, "_foreach_copy_": 1}


class Step(NamedTuple):
    """An operation of the core; see ``core/programs/program.h``."""

    kind: str
    sizes: Sequence[int]
    operands: list[Tensor]
    constants: Sequence[float] = ()


class Translation:
    """The steps of a program, translated from calls.

    Attributes:
        steps: The steps, in order.
        constants: The addresses of memory whose content is the same in every call.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        """Translates recorded calls.

        Raises:
            NotRecordable: The core lacks an operation, a dtype or a device.
        """
        self.steps: list[Step] = []
        self.constants: set[int] = set()
        written = {memory_of(tensor) for call in calls for tensor in call.written}
        for call in calls:
            inputs = tensors_in(call.values)
            for tensor in (*inputs, *call.outputs):
                _require(
                    tensor.device.type == "cpu" and tensor.dtype in TYPES, call.name
                )
            shared = {memory_of(tensor) for tensor in inputs}
            results = {memory_of(tensor) for tensor in call.outputs}
            # A call without results may be an assertion, which is no view.
            is_view = bool(results) and not call.written and results <= shared
            is_constant = not inputs or call.name in _ZERO or call.name in _ONE
            if is_constant and not results & written:
                # The content of an empty tensor is written elsewhere.
                self.constants |= set() if "empty" in call.name else results
            elif not is_view:
                self._translate(call)

    def _translate(self, call: Call) -> None:
        name, values = call.name, call.values
        if name in _ZERO or name in _ONE or name == "zero_":
            self.map("copy", call.outputs[0], [float(name in _ONE)])
        elif (function := FUNCTIONS.get(name.removesuffix("_"))) is not None:
            function(self, call)
        elif name.startswith("_foreach_"):
            for place, tensor in enumerate(call.written or call.outputs):
                own = [one[place] if isinstance(one, list) else one for one in values]
                self._elementwise(name, tensor, own)
        else:
            self._elementwise(name, call.outputs[0], values)

    def _elementwise(self, name: str, out: Tensor, values: list[Any]) -> None:
        if name in _COPIES:
            self.map("copy", out, [values[_COPIES[name]]])
            return
        kind = name.removeprefix("_foreach_").removesuffix("_")
        if kind == "clamp_min":
            kind, values = "clamp", [*values, None]
        if kind == "bitwise_not" and out.dtype == torch.bool:
            kind = "logical_not"
        _require(kind in _MAPS, name)
        num_inputs, num_constants = _MAPS[kind]
        inputs, constants = values[:num_inputs], values[num_inputs:][:num_constants]
        if kind == "clamp":
            limits = zip(constants, (-torch.inf, torch.inf), strict=True)
            constants = [limit if given is None else given for given, limit in limits]
        if "huber" in kind:  # with the loss of each element, not their mean
            _require(constants[0] == 0, name)
        is_known = all(isinstance(one, int | float) for one in constants)
        _require(is_known and not (kind == "div" and len(values) > 2), name)
        missing = num_constants - len(constants)  # factors, as in _foreach_add_
        self.map(kind, out, inputs, [*constants, *[1.0] * missing])

    def add(self, kind: str, shape: Sequence[int], operands: list[Tensor]) -> None:
        """Appends a step without constants."""
        _require(len(shape) <= _MAX_AXES, kind)
        self.steps.append(Step(kind, shape, operands))

    def map(
        self,
        kind: str,
        out: Tensor | None,
        inputs: Sequence[Any],
        constants: Sequence[float] = (),
    ) -> Tensor:
        """Appends an elementwise operation; returns ``out``, by default a new tensor.

        Args:
            kind: The operation.
            out: The result; None for new floats.
            inputs: Tensors or numbers, broadcast to the result's shape.
            constants: See ``_MAPS``.
        """
        tensors = tensors_in(inputs)
        if out is None:
            out = torch.empty(
                np.broadcast_shapes(*(tensor.shape for tensor in tensors))
            )
        # The core computes in double if an operand has more bits than a float.
        is_wide = any(tensor.dtype in _WIDE for tensor in (out, *tensors))
        dtype = torch.float64 if is_wide else torch.float32
        is_exact = kind in _MOVES and not any(x.is_floating_point() for x in tensors)
        is_plain = out.is_floating_point() or out.dtype == torch.bool
        # The core computes no integers: they would neither wrap nor be exact.
        _require(out.dim() <= _MAX_AXES and (is_plain or is_exact), kind)
        operands = []
        for one in inputs:
            if not isinstance(one, Tensor):
                one = torch.tensor(float(one), dtype=dtype)
                self.constants.add(memory_of(one))
            operands.append(one)
        expanded = [operand.expand(out.shape) for operand in operands]
        self.steps.append(Step(kind, out.shape, [out, *expanded], constants))
        return out

    def sum(
        self,
        x: Tensor,
        axes: Sequence[int],
        out: Tensor | None = None,
        *,
        kind: str = "accumulate",
        factor: float = 1.0,
    ) -> Tensor:
        """Appends the sum over axes times ``factor``; returns it.

        Args:
            x: The elements.
            axes: The axes to sum over; none means all.
            out: The result with or without the axes; None for new floats with them.
            kind: "accumulate", or "accumulate_squares" for the sum of squares.
            factor: The factor of the sum.
        """
        summed = sorted({axis % x.dim() for axis in axes} or range(x.dim()))
        kept = [1 if axis in summed else size for axis, size in enumerate(x.shape)]
        out = wide = torch.empty(kept) if out is None else out
        for axis in summed if wide.dim() < x.dim() else ():
            wide = wide.unsqueeze(axis)
        self.map("copy", wide, [0.0])
        self.add(kind, x.shape, [wide.expand(x.shape), x])
        if factor != 1.0:
            self.map("mul", wide, [wide, factor])
        return out


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise NotRecordable(name)


def _multiply(to: Translation, call: Call) -> None:
    *bias, a, b = tensors_in(call.values)
    (out,) = call.outputs
    is_simple = out.is_contiguous() and all(one.dim() == 1 for one in bias)
    is_simple &= set(call.values[3:]) <= {1}  # factors
    _require(is_simple and {x.dtype for x in (out, a, b)} == {torch.float32}, call.name)
    to.add("multiply", (*out.shape, a.shape[1]), [out, a, b, *bias])


def _sum(to: Translation, call: Call) -> None:
    (out,) = call.outputs
    x = call.values[0]
    axes = call.values[1] if isinstance(call.values[1], list) else []
    _require(out.dtype == torch.float32 and x.dim() > 0, call.name)
    factor = out.numel() / x.numel() if call.name == "mean" else 1.0
    to.sum(x, axes, out, factor=factor)


def _norm(to: Translation, call: Call) -> None:
    _require(call.values[1] == 2 and call.values[2] is None, call.name)
    for x, out in zip(tensors_in(call.values[0]), call.outputs, strict=True):
        flat = x if x.dim() else x[None]
        to.map("sqrt", out, [to.sum(flat, [], out, kind="accumulate_squares")])


def _join(to: Translation, call: Call) -> None:
    parts, axis = call.values
    (out,) = call.outputs
    pieces = parts if call.name == "cat" else [part.unsqueeze(axis) for part in parts]
    first = 0
    for piece in pieces:
        to.map("copy", out.narrow(axis, first, piece.shape[axis]), [piece])
        first += piece.shape[axis]


def _roll(to: Translation, call: Call) -> None:
    x, shifts, axes = call.values
    _require(len(shifts) == len(axes) == 1, call.name)
    size = x.shape[axes[0]]
    for first in range(size):
        source = x.narrow(axes[0], (first - shifts[0]) % size, 1)
        to.map("copy", call.outputs[0].narrow(axes[0], first, 1), [source])


def _view_backward(to: Translation, call: Call) -> None:
    gradient, _, *place = call.values
    (out,) = call.outputs
    view = torch.ops.aten.slice if "slice" in call.name else torch.ops.aten.select
    to.map("copy", out, [0.0])
    to.map("copy", view(out, *place), [gradient])


def _extreme(to: Translation, call: Call) -> None:
    x, axis = call.values[:2]
    _require(isinstance(axis, int) and x.dim() > 0, call.name)
    indices = call.outputs[-1]
    has_values = len(call.outputs) > 1
    values = (
        call.outputs[0] if has_values else torch.empty(indices.shape, dtype=x.dtype)
    )
    ends = [
        one if one.dim() == x.dim() else one.unsqueeze(axis)
        for one in (values, indices)
    ]
    tensors = [one.expand(x.shape).movedim(axis, -1) for one in (*ends, x)]
    kind = "largest" if "max" in call.name else "smallest"
    to.add(kind, tensors[-1].shape, tensors)


def _indexed(
    to: Translation,
    kind: str,
    x: Tensor,
    part: Tensor,
    other: Tensor,
    indices: Sequence[Tensor],
    axes: Sequence[int],
) -> None:
    """Appends a "gather" from ``x`` to ``other``, or a "scatter" from other to x.

    Args:
        to: The translation.
        kind: "gather", "scatter" or "scatter_add".
        x: The tensor with indexed axes.
        part: ``x`` with the shape of ``other``, and strides of 0 on indexed axes.
        other: The other tensor.
        indices: The indices along each axis, which expand to the shape of ``other``.
        axes: The indexed axes of ``x``, one or two.
    """
    pairs = [(x.stride(axis) * x.element_size(), x.shape[axis]) for axis in axes]
    constants = [float(number) for pair in pairs for number in pair]
    _require(other.dim() <= _MAX_AXES and len(axes) <= 2, kind)
    tensors = [other, part] if kind == "gather" else [part, other]
    tensors += [index.expand(other.shape) for index in indices]
    to.steps.append(Step(kind, other.shape, tensors, constants))


def _gather(to: Translation, call: Call) -> None:
    x, axis, index = call.values[:3]
    (other,) = call.outputs
    if call.name != "gather":
        _require(
            isinstance(call.values[3], Tensor) and len(call.values) == 4, call.name
        )
        if memory_of(other) != memory_of(x):
            to.map("copy", other, [x])
        x, other = other, call.values[3]
        other = other.as_strided(index.shape, other.stride())
    axis %= x.dim()
    strides = [0 if place == axis else x.stride(place) for place in range(x.dim())]
    part = x.as_strided(index.shape, strides)
    _indexed(to, call.name.removesuffix("_"), x, part, other, [index], [axis])


def _index(to: Translation, call: Call) -> None:
    x, indices = call.values[:2]
    is_plain = all(one is not None and one.dtype == torch.int64 for one in indices)
    is_plain &= len({one.shape for one in tensors_in(indices)}) == 1
    _require(is_plain and not any(call.values[3:4]), call.name)
    axes, first = len(indices), indices[0].shape
    kept = x.shape[axes:]
    part = x.as_strided((*first, *kept), (*[0] * len(first), *x.stride()[axes:]))
    wide = [one[(..., *[None] * len(kept))] for one in indices]
    reads = call.name == "index"
    other = call.outputs[0] if reads else call.values[2].expand(part.shape)
    kind = "gather" if reads else "scatter"
    _indexed(to, kind, x, part, other, wide, range(axes))


def _log_softmax(to: Translation, call: Call) -> None:
    x, axis = call.values[:2]
    _require(axis % x.dim() == x.dim() - 1, call.name)
    largest = torch.empty(*x.shape[:-1], 1)
    indices = torch.empty(largest.shape, dtype=torch.int64)
    to.add("largest", x.shape, [largest.expand(x.shape), indices.expand(x.shape), x])
    lower = to.map("sub", None, [x, largest], [1.0])
    total = to.sum(to.map("exp", None, [lower]), [-1])
    to.map("sub", call.outputs[0], [lower, to.map("log", None, [total])], [1.0])


def _log_softmax_backward(to: Translation, call: Call) -> None:
    gradient, out, axis = call.values[:3]
    _require(axis % out.dim() == out.dim() - 1, call.name)
    shares = [to.map("exp", None, [out]), to.sum(gradient, [-1])]
    to.map("sub", call.outputs[0], [gradient, to.map("mul", None, shares)], [1.0])


def _group_norm(to: Translation, call: Call) -> None:
    x, weight, bias, _, _, _, num_groups, epsilon = call.values
    _require(x.dim() == 2 and num_groups == 1 and weight is not None, call.name)
    out, mean, scale = call.outputs
    share = 1.0 / x.shape[1]
    normal = to.map("sub", None, [x, to.sum(x, [1], mean, factor=share)], [1.0])
    to.sum(normal, [1], scale, kind="accumulate_squares", factor=share)
    to.map("add", scale, [scale, epsilon], [1.0])
    to.map("reciprocal", scale, [to.map("sqrt", scale, [scale])])
    to.map("mul", normal, [to.map("mul", normal, [normal, scale]), weight])
    to.map("add", out, [normal, bias], [1.0])


def _group_norm_backward(to: Translation, call: Call) -> None:
    gradient, x, mean, scale, weight, _, _, _, num_groups, wanted = call.values
    # The weight and bias may be constant; then the call has only the first result.
    _require(x.dim() == 2 and num_groups == 1 and wanted[0], call.name)
    _require(wanted[1] == wanted[2], call.name)
    to_x, *to_others = call.outputs
    share = 1.0 / x.shape[1]
    normal = to.map("sub", None, [x, mean], [1.0])
    to.map("mul", normal, [normal, scale])
    if to_others:
        to_weight, to_bias = to_others
        to.sum(gradient, [0], to_bias)
        to.sum(to.map("mul", None, [gradient, normal]), [0], to_weight)
    # The gradient of the normalized units, without its parts that the norm removes.
    inner = to.map("mul", None, [gradient, weight])
    along = to.sum(to.map("mul", None, [inner, normal]), [1], factor=share)
    to.map("sub", inner, [inner, to.sum(inner, [1], factor=share)], [1.0])
    to.map("sub", inner, [inner, to.map("mul", normal, [normal, along])], [1.0])
    to.map("mul", to_x, [inner, scale])


def _adamw(to: Translation, call: Call) -> None:
    *columns, _, steps, rate, beta1, beta2, decay, epsilon, amsgrad, maximize = (
        call.values[:13]
    )
    _require(isinstance(rate, Tensor) and not (amsgrad or maximize), call.name)
    for *tensors, step in zip(*columns, steps, strict=True):
        is_plain = all(x.is_contiguous() and x.dtype == torch.float32 for x in tensors)
        _require(is_plain, call.name)
        sizes, constants = (tensors[0].numel(),), (beta1, beta2, epsilon, decay)
        to.steps.append(Step("adamw", sizes, [*tensors, step, rate], constants))


FUNCTIONS: dict[str, Callable[[Translation, Call], None]] = {
    **dict.fromkeys(("addmm", "mm"), _multiply),
    **dict.fromkeys(("sum", "mean"), _sum),
    **dict.fromkeys(("linalg_vector_norm", "_foreach_norm"), _norm),
    **dict.fromkeys(("cat", "stack"), _join),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), _extreme),
    **dict.fromkeys(("gather", "scatter", "scatter_add"), _gather),
    **dict.fromkeys(("index", "index_put"), _index),
    **dict.fromkeys(("select_backward", "slice_backward"), _view_backward),
    "roll": _roll,
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "native_group_norm": _group_norm,
    "native_group_norm_backward": _group_norm_backward,
    "_fused_adamw": _adamw,
}
"""Translations of operations that are not elementwise, by the name in torch."""
