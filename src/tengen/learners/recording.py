"""Records the array operations that a function performs, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Call", "NotRecordable", "Recording", "memory_of", "tensors_in"]

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
