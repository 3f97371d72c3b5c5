"""Translates torch's operations to those of ``tengen._core.Program``.

Each function below translates the operations in its table entry, given the ``Call``.
Tensors may be split into views and expanded, because a view needs no operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tengen.learners.recording import Call, NotRecordable, memory_of, tensors_in

__all__ = ["TYPES", "Step", "Translation"]

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
# Operations whose results are the same in every call, unless another changes them.
_CONSTANT = {
    name: float(value)
    for value, names in (
        (0, ("new_zeros", "zeros", "zeros_like")),
        (1, ("ones", "ones_like")),
    )
    for name in names
}

Number: TypeAlias = float | int | bool
Value: TypeAlias = Tensor | Number


class _Untranslated(Exception):
    """The core has no operation for a call."""


class Step(NamedTuple):
    """An operation of the core, or one that torch performs."""

    kind: str
    """The operation in ``core/replay/program.h``; empty for torch's."""
    sizes: Sequence[int]
    operands: list[Tensor]
    constants: Sequence[float] = ()
    call: Call | None = None
    """The operation that torch performs."""


class Translation:
    """The steps of a program, translated from calls.

    Attributes:
        steps: The steps, in order.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        """Translates recorded calls.

        Raises:
            NotRecordable: A tensor is not on the CPU or has an unsupported dtype.
        """
        self.steps: list[Step] = []
        self._written = {memory_of(tensor) for call in calls for tensor in call.written}
        for call in calls:
            self._translate(call)

    def _translate(self, call: Call) -> None:
        inputs, outputs = call.inputs, call.outputs
        for tensor in (*inputs, *outputs):
            if tensor.device.type != "cpu" or tensor.dtype not in TYPES:
                raise NotRecordable(f"{call.name} of {tensor.dtype}")
        shared = {memory_of(tensor) for tensor in inputs}
        is_view = all(memory_of(tensor) in shared for tensor in outputs)
        if is_view and not call.written:
            return
        is_constant = not inputs or call.name in _CONSTANT
        if is_constant and not self._written & {memory_of(out) for out in outputs}:
            return
        num_before = len(self.steps)
        try:
            name = call.name
            if name in _CONSTANT:
                self.map("copy", outputs[0], _CONSTANT[name])
            elif (translate := _TABLE.get(name)) is not None:
                translate(self, call)
            elif (translate := _TABLE.get(name.removesuffix("_"))) is not None:
                # The variant of an operation that replaces its first argument.
                translate(self, call._replace(result=call.arguments[0]))
            else:
                raise _Untranslated
        except _Untranslated:
            del self.steps[num_before:]
            self.steps.append(Step("", (), [*inputs, *outputs], call=call))

    def add(
        self,
        kind: str,
        sizes: Sequence[int],
        operands: list[Tensor],
        constants: Sequence[float] = (),
    ) -> None:
        """Appends a step of the core."""
        if len(sizes) > _MAX_AXES:
            raise _Untranslated
        self.steps.append(Step(kind, sizes, operands, constants))

    def map(
        self, kind: str, out: Tensor, *inputs: Value, constants: Sequence[float] = ()
    ) -> Tensor:
        """Appends an elementwise operation; returns ``out``."""
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        # The core computes in double if an operand has more bits than a float.
        is_wide = any(tensor.dtype in _WIDE for tensor in (out, *tensors))
        dtype = torch.float64 if is_wide else torch.float32
        operands = [
            value
            if isinstance(value, Tensor)
            else torch.tensor(float(value), dtype=dtype)
            for value in inputs
        ]
        expanded = [operand.expand(out.shape) for operand in operands]
        self.add(kind, out.shape, [out, *expanded], constants)
        return out

    def new(self, kind: str, *inputs: Value, constants: Sequence[float] = ()) -> Tensor:
        """Appends an elementwise operation; returns its result, a new float tensor."""
        shapes = [value.shape for value in inputs if isinstance(value, Tensor)]
        out = torch.empty(torch.Size(np.broadcast_shapes(*shapes)))
        return self.map(kind, out, *inputs, constants=constants)

    def reduce(
        self,
        x: Tensor,
        axes: Sequence[int],
        out: Tensor | None = None,
        *,
        squares: bool = False,
        factor: float = 1.0,
    ) -> Tensor:
        """Appends the sum of ``x`` over axes times ``factor``; returns it.

        Args:
            x: The elements.
            axes: The axes to sum over; no axis means all.
            out: The result with or without the axes; None to create it with them.
            squares: Whether to square the elements.
            factor: The factor of the sum.
        """
        summed = {axis % x.dim() for axis in axes} if axes else set(range(x.dim()))
        kept = [1 if axis in summed else size for axis, size in enumerate(x.shape)]
        out = wide = torch.empty(kept) if out is None else out
        for axis in sorted(summed) if wide.dim() < x.dim() else ():
            wide = wide.unsqueeze(axis)
        self.map("copy", wide, 0.0)
        kind = "accumulate_squares" if squares else "accumulate"
        self.add(kind, x.shape, [wide.expand(x.shape), x])
        if factor != 1.0:
            self.map("mul", wide, wide, factor)
        return out


_Translate: TypeAlias = Callable[[Translation, Call], Any]
_TABLE: dict[str, _Translate] = {}


def _translates(*names: str) -> Callable[[_Translate], _Translate]:
    def register(function: _Translate) -> _Translate:
        _TABLE.update(dict.fromkeys(names, function))
        return function

    return register


def _setting(call: Call, place: int, name: str, default: Any = None) -> Any:
    """Returns an argument that a call has by position or by name, or neither."""
    if place < len(call.arguments):
        return call.arguments[place]
    return call.settings.get(name, default)


def _require(holds: bool) -> None:
    if not holds:
        raise _Untranslated


for _name, _kind in {
    "abs": "abs",
    "bitwise_not": "not",
    "clone": "copy",
    "_to_copy": "copy",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "logical_not": "not",
    "neg": "neg",
    "reciprocal": "reciprocal",
    "relu": "relu",
    "sqrt": "sqrt",
    "tanh": "tanh",
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "logical_and": "and",
    "logical_or": "or",
    "maximum": "maximum",
    "minimum": "minimum",
    "mul": "mul",
    "where": "where",
    "tanh_backward": "tanh_backward",
}.items():

    @_translates(_name)
    def _plain(to: Translation, call: Call, kind: str = _kind) -> None:
        # On integers, bitwise_not is another operation than "not".
        _require(call.name != "bitwise_not" or call.arguments[0].dtype == torch.bool)
        to.map(kind, call.result, *call.arguments)


@_translates("copy", "fill")
def _copy(to: Translation, call: Call) -> None:
    to.map("copy", call.arguments[0], call.arguments[1])


@_translates("zero")
def _zero(to: Translation, call: Call) -> None:
    to.map("copy", call.arguments[0], 0.0)


@_translates("add", "sub")
def _add(to: Translation, call: Call) -> None:
    factor = call.settings.get("alpha", 1)
    kind = "sub" if "sub" in call.name else "add"
    to.map(kind, call.result, *call.arguments[:2], constants=[factor])


@_translates("rsub")
def _subtract_from(to: Translation, call: Call) -> None:
    x, other, *rest = call.arguments
    to.map("sub", call.result, other, x, constants=rest or [1.0])


@_translates("div")
def _divide(to: Translation, call: Call) -> None:
    _require(call.settings.get("rounding_mode") is None)
    to.map("div", call.result, *call.arguments)


@_translates("pow")
def _power(to: Translation, call: Call) -> None:
    x, exponent = call.arguments
    kinds = {0.5: "sqrt", 1.0: "copy", 2.0: "square"}
    _require(isinstance(exponent, int | float) and exponent in kinds)
    to.map(kinds[exponent], call.result, x)


@_translates("clamp", "clamp_min", "clamp_max")
def _clamp(to: Translation, call: Call) -> None:
    bounds = call.arguments[1:]
    least = None if "max" in call.name else _setting(call, 1, "min")
    most = bounds[0] if "max" in call.name else _setting(call, 2, "max")
    _require(not tensors_in([least, most]))
    least = -torch.inf if least is None else least
    most = torch.inf if most is None else most
    to.map("clamp", call.result, call.arguments[0], constants=[least, most])


@_translates("masked_fill")
def _masked_fill(to: Translation, call: Call) -> None:
    x, mask, value = call.arguments
    to.map("where", call.result, mask, value, x)


@_translates("lerp")
def _interpolate(to: Translation, call: Call) -> None:
    x, end, weight = call.arguments
    _require(not isinstance(weight, Tensor))
    to.map("lerp", call.result, x, end, constants=[weight])


@_translates("softplus", "softplus_backward")
def _softplus(to: Translation, call: Call) -> None:
    num_inputs = 2 if "backward" in call.name else 1
    beta = _setting(call, num_inputs, "beta", 1.0)
    threshold = _setting(call, num_inputs + 1, "threshold", 20.0)
    inputs = call.arguments[:num_inputs]
    to.map(call.name, call.result, *inputs, constants=[beta, threshold])


@_translates("huber_loss", "huber_loss_backward")
def _huber(to: Translation, call: Call) -> None:
    num_inputs = 3 if "backward" in call.name else 2
    _require(_setting(call, num_inputs, "reduction", 1) == 0)
    delta = _setting(call, num_inputs + 1, "delta", 1.0)
    kind = call.name.replace("_loss", "")
    to.map(kind, call.result, *call.arguments[:num_inputs], constants=[delta])


@_translates("threshold_backward")
def _threshold(to: Translation, call: Call) -> None:
    gradient, x, threshold = call.arguments
    to.map(call.name, call.result, gradient, x, constants=[threshold])


@_translates("addmm", "mm")
def _multiply(to: Translation, call: Call) -> None:
    *bias, a, b = call.arguments
    tensors = [call.result, a, b, *bias]
    _require(all(tensor.dtype == torch.float32 for tensor in tensors))
    _require(not call.settings and all(one.dim() == 1 for one in bias))
    _require(call.result.is_contiguous())
    to.add("multiply", (*call.result.shape, a.shape[1]), tensors)


@_translates("sum", "mean")
def _sum(to: Translation, call: Call) -> None:
    x, axes = call.arguments[0], list(_setting(call, 1, "dim") or ())
    _require(x.dtype not in (torch.int32, torch.int64))
    share = call.result.numel() / x.numel() if call.name == "mean" and x.numel() else 1
    to.reduce(x, axes, call.result, factor=share)


@_translates("linalg_vector_norm", "_foreach_norm")
def _norm(to: Translation, call: Call) -> None:
    _require(_setting(call, 1, "ord", 2) == 2 and len(call.arguments) < 3)
    for x, out in zip(tensors_in(call.arguments[0]), call.outputs, strict=True):
        to.map("sqrt", out, to.reduce(x, [], out, squares=True))


@_translates("cat", "stack")
def _join(to: Translation, call: Call) -> None:
    axis, place = _setting(call, 1, "dim", 0), 0
    for part in call.arguments[0]:
        if call.name == "stack":
            to.map("copy", call.result.select(axis, place), part)
            place += 1
        elif part.numel() > 0:
            to.map("copy", call.result.narrow(axis, place, part.shape[axis]), part)
            place += part.shape[axis]


@_translates("roll")
def _roll(to: Translation, call: Call) -> None:
    x, shifts, axes = call.arguments
    _require(len(shifts) == len(axes) == 1)
    (axis,), size = axes, x.shape[axes[0]]
    shift = shifts[0] % size
    for start, source, length in ((0, size - shift, shift), (shift, 0, size - shift)):
        if length > 0:
            part = x.narrow(axis, source, length)
            to.map("copy", call.result.narrow(axis, start, length), part)


@_translates("max", "min", "argmax", "argmin")
def _extreme(to: Translation, call: Call) -> None:
    x, axis = call.arguments[0], _setting(call, 1, "dim")
    _require(isinstance(axis, int) and x.dim() > 0)
    if "arg" in call.name:
        indices = call.result
        values = torch.empty(indices.shape, dtype=x.dtype)
    else:
        values, indices = call.result
    if values.dim() < x.dim():
        values, indices = values.unsqueeze(axis), indices.unsqueeze(axis)
    ends = [one.expand(x.shape).movedim(axis, -1) for one in (values, indices)]
    last = x.movedim(axis, -1)
    to.add("largest" if "max" in call.name else "smallest", last.shape, [*ends, last])


def _without(x: Tensor, axes: Sequence[int]) -> tuple[Tensor, list[float]]:
    """Returns ``x`` with strides of 0 on axes, and each axis' stride and size."""
    strides = [0 if axis in axes else s for axis, s in enumerate(x.stride())]
    numbers = [(x.stride(axis) * x.element_size(), x.shape[axis]) for axis in axes]
    flat = x.as_strided(x.shape, strides)
    return flat, [float(number) for pair in numbers for number in pair]


@_translates("gather", "scatter", "scatter_add")
def _gather(to: Translation, call: Call) -> None:
    x, axis, index = call.arguments[:3]
    _require(x.dim() > 0)
    axis %= x.dim()
    out = call.result
    if call.name == "gather":
        flat, axes = _without(x, [axis])
        source = flat.as_strided(index.shape, flat.stride())
        to.add("gather", index.shape, [out, source, index], axes)
        return
    (value,) = tensors_in(call.arguments[3])
    if memory_of(out) != memory_of(x):
        to.map("copy", out, x)
    flat, axes = _without(out, [axis])
    target = flat.as_strided(index.shape, flat.stride())
    given = value.as_strided(index.shape, value.stride())
    to.add(call.name.removesuffix("_"), index.shape, [target, given, index], axes)


@_translates("index", "index_put")
def _index(to: Translation, call: Call) -> None:
    x, indices = call.arguments[:2]
    _require(0 < len(indices) <= 2 and not _setting(call, 3, "accumulate", False))
    _require(all(one is not None and one.dtype == torch.int64 for one in indices))
    num_axes, shape = len(indices), indices[0].shape
    _require(all(one.shape == shape for one in indices))
    rest = x.shape[num_axes:]
    flat, axes = _without(x, range(num_axes))
    strides = [*[0] * len(shape), *flat.stride()[num_axes:]]
    part = flat.as_strided((*shape, *rest), strides)
    columns = [one[(..., *[None] * len(rest))] for one in indices]
    wide = [column.expand(part.shape) for column in columns]
    if call.name == "index":
        to.add("gather", part.shape, [call.result, part, *wide], axes)
        return
    _require(call.name == "index_put_")
    value = call.arguments[2].expand(part.shape)
    to.add("scatter", part.shape, [part, value, *wide], axes)


@_translates("_log_softmax")
def _log_softmax(to: Translation, call: Call) -> None:
    x, axis = call.arguments[:2]
    _require(axis % x.dim() == x.dim() - 1)
    largest = torch.empty(*x.shape[:-1], 1)
    indices = torch.empty(largest.shape, dtype=torch.int64)
    ends = [one.expand(x.shape) for one in (largest, indices)]
    to.add("largest", x.shape, [*ends, x])
    lower = to.new("sub", x, largest, constants=[1.0])
    total = to.reduce(to.new("exp", lower), [-1])
    to.map("sub", call.result, lower, to.new("log", total), constants=[1.0])


@_translates("_log_softmax_backward_data")
def _log_softmax_backward(to: Translation, call: Call) -> None:
    gradient, out, axis = call.arguments[:3]
    _require(axis % out.dim() == out.dim() - 1)
    total = to.reduce(gradient, [-1])
    scaled = to.new("mul", to.new("exp", out), total)
    to.map("sub", call.result, gradient, scaled, constants=[1.0])


@_translates("native_group_norm")
def _group_norm(to: Translation, call: Call) -> None:
    x, weight, bias, _, _, _, num_groups, epsilon = call.arguments
    _require(x.dim() == 2 and num_groups == 1)
    out, mean, scale = call.result
    share = 1.0 / x.shape[1]
    centred = to.new("sub", x, to.reduce(x, [1], mean, factor=share), constants=[1.0])
    to.reduce(centred, [1], scale, squares=True, factor=share)
    to.map("add", scale, scale, epsilon, constants=[1.0])
    to.map("reciprocal", scale, to.map("sqrt", scale, scale))
    to.map("mul", centred, centred, scale)
    to.map("mul", centred, centred, weight)
    to.map("add", out, centred, bias, constants=[1.0])


@_translates("native_group_norm_backward")
def _group_norm_backward(to: Translation, call: Call) -> None:
    gradient, x, mean, scale, weight, _, _, _, num_groups, _ = call.arguments
    _require(x.dim() == 2 and num_groups == 1 and None not in call.result)
    to_x, to_weight, to_bias = call.result
    share = 1.0 / x.shape[1]
    normal = to.new("sub", x, mean, constants=[1.0])
    to.map("mul", normal, normal, scale)
    to.reduce(gradient, [0], to_bias)
    to.reduce(to.new("mul", gradient, normal), [0], to_weight)
    # The gradient of the normalized units, without its parts that the norm removes.
    inner = to.new("mul", gradient, weight)
    along = to.reduce(to.new("mul", inner, normal), [1], factor=share)
    shift = to.reduce(inner, [1], factor=share)
    to.map("sub", inner, inner, shift, constants=[1.0])
    to.map("sub", inner, inner, to.map("mul", normal, normal, along), constants=[1.0])
    to.map("mul", to_x, inner, scale)


@_translates("_fused_adamw_")
def _adamw(to: Translation, call: Call) -> None:
    parameters, gradients, means, squares, _, steps = call.arguments
    settings = call.settings
    _require(isinstance(settings["lr"], Tensor))
    _require(not settings["amsgrad"] and not settings["maximize"])
    constants = [settings[n] for n in ("beta1", "beta2", "eps", "weight_decay")]
    columns = zip(parameters, gradients, means, squares, steps, strict=True)
    for parameter, gradient, mean, square, step in columns:
        tensors = [parameter, gradient, mean, square]
        for tensor in tensors:
            _require(tensor.dtype == torch.float32 and tensor.is_contiguous())
        sizes = (parameter.numel(),)
        to.add("adamw", sizes, [*tensors, step, settings["lr"]], constants)


for _name, _inner in {
    "_foreach_add_": _add,
    "_foreach_copy_": _copy,
    "_foreach_div_": _divide,
    "_foreach_lerp_": _interpolate,
    "_foreach_mul_": _plain,
}.items():

    @_translates(_name)
    def _each(to: Translation, call: Call, inner: _Translate = _inner) -> None:
        first, *others = call.arguments
        kind = {"kind": "mul"} if inner is _plain else {}
        for place, tensor in enumerate(first):
            own = [o[place] if isinstance(o, list | tuple) else o for o in others]
            inner(to, call._replace(arguments=(tensor, *own), result=tensor), **kind)
