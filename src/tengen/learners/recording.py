"""Records the array operations that a function performs, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tengen.nets.modules.exporting import exporting

Tensors: TypeAlias = dict[str, Tensor]

# Maximum difference between a program and its function in each tensor, relative to the
# tensor's change. It is far above rounding, and far below an operation with a wrong
# meaning.
_MOST_DIFFERENCE = 0.01
# Rounding of float32, relative to a tensor's values, and to the largest change of all
# tensors, because the gradient of a tensor may be a small difference of large numbers.
_ROUNDING = 2.0**-22
# Operations with these tags draw random numbers, or depend on the values of tensors.
_REFUSED = (
    torch.Tag.nondeterministic_seeded,
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
)


class NotRecordable(Exception):
    """A function performs an operation that cannot be recorded or translated."""


class Call(NamedTuple):
    """One operation of torch."""

    name: str
    """The operation's name without namespace and overload."""
    values: list[Any]
    """All arguments in the schema's order, including those with default values."""
    written: list[Tensor]
    """The tensors in the arguments that the operation changes."""
    outputs: list[Tensor]
    """The tensors in the result."""


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context that records the operations of this thread, which can be undone.

    Attributes:
        calls: The operations, in order.
        inputs: The tensors given to the constructor.
        existing: Addresses of the memory that existed before the recording and is not
            of an input.
        changed: The tensors in this memory that an operation changed.
    """

    def __init__(self, inputs: Mapping[str, Tensor]) -> None:
        """Creates a recording without operations.

        Args:
            inputs: The tensors that differ from call to call, by name.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Call] = []
        self.inputs = dict(inputs)
        self.existing: set[int] = set()
        self.changed: list[Tensor] = []
        # The changed memory as bytes, and its content before the change, by address.
        self._before: dict[int, tuple[Tensor, Tensor]] = {}
        self._made = {memory_of(tensor) for tensor in inputs.values()}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Avoids the import of torch's compiler, which takes as long as torch's."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Performs and records an operation; see ``TorchDispatchMode``."""
        name, given = func._schema.name.partition("::")[2], kwargs or {}
        values, written = [], []
        for place, argument in enumerate(func._schema.arguments):
            default = given.get(argument.name, argument.default_value)
            values.append(args[place] if place < len(args) else default)
            if argument.alias_info is not None and argument.alias_info.is_write:
                written += tensors_in(values[-1])
        # An index with integers has a fixed shape, unlike one with a mask.
        is_fixed = name == "index" and all(
            one.dtype == torch.int64 for one in tensors_in(values[1])
        )
        if not is_fixed and any(tag in func.tags for tag in _REFUSED):
            raise NotRecordable(name)
        self.existing |= {memory_of(x) for x in tensors_in(values)} - self._made
        for tensor in written:
            self._keep(tensor)
        result = func(*args, **given)
        outputs = tensors_in(result)
        self._made |= {memory_of(x) for x in outputs} - self.existing
        self.calls.append(Call(name, values, written, outputs))
        return result

    def restore(self) -> None:
        """Undoes all changes of memory that existed before the recording."""
        for whole, before in self._before.values():
            whole.copy_(before)
        torch.autograd.graph.increment_version(self.changed)

    def _keep(self, tensor: Tensor) -> None:
        """Keeps the content of memory that an operation will change."""
        address = memory_of(tensor)
        if address not in self.existing:
            return
        if not any(tensor is other for other in self.changed):
            self.changed.append(tensor)
        if address not in self._before:
            storage = tensor.untyped_storage()
            whole = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._before[address] = (whole, whole.clone())


def memory_of(tensor: Tensor) -> int:
    """Returns the address of the memory that a tensor shares with its views."""
    return tensor.untyped_storage().data_ptr()


def tensors_in(value: Any) -> list[Tensor]:
    """Returns the tensors in nested lists and tuples, in order."""
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in tensors_in(item)]


class Observed(NamedTuple):
    """A recorded call of a function, whose effect was undone."""

    recording: Recording
    """The operations, and the tensors that they changed."""
    results: Tensors
    """The results in the recording, by name."""
    numbers: list[Tensor]
    """The values of the results."""
    changes: list[Tensor]
    """The values of the recording's ``changed`` after the call."""


def observe(function: Callable[[Tensors], Tensors], inputs: Tensors) -> Observed:
    """Records a call of a function and undoes its effect; see ``Recording``."""
    recording = Recording(inputs)
    try:
        # Caches would hide operations whose inputs differ in the next call.
        with exporting(), recording:
            results = function(inputs)
        numbers = copies_of(results.values())
        return Observed(recording, results, numbers, copies_of(recording.changed))
    finally:
        recording.restore()


def copies_of(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Returns copies of tensors, as float64."""
    return [x.detach().double().clone() for x in tensors]


def are_near(
    found: Sequence[Tensor],
    expected: Sequence[Tensor],
    before: Sequence[Tensor] | None = None,
) -> bool:
    """Returns whether all numbers are equal except for rounding.

    NaN equals NaN, so that a batch with such numbers does not affect which of function
    and program runs.

    Args:
        found: The tensors of a program.
        expected: The tensors of its function.
        before: The tensors before; None if they are new.
    """
    old = [torch.zeros_like(x) for x in expected] if before is None else before
    sizes = [
        float((x - one).nan_to_num(0.0, 0.0, 0.0).norm())
        for x, one in zip(expected, old, strict=True)
    ]
    # The counters of steps change by 1, much more than weights.
    largest = [n for n, x in zip(sizes, expected, strict=True) if x.numel() > 1]
    floor = 0.0 if before is None else _ROUNDING * max(largest, default=0.0)
    for x, y, size in zip(found, expected, sizes, strict=True):
        is_same = (x == y) | (x.isnan() & y.isnan())
        difference = float(torch.where(is_same, 0.0, x - y).norm())
        values = float(y.nan_to_num(0.0, 0.0, 0.0).norm())
        if not difference <= _MOST_DIFFERENCE * size + _ROUNDING * values + floor:
            return False
    return True
