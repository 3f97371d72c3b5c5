"""Records the array operations of a function, as a program that runs without Python.

`recorded` calls a function once, and notes every operation that torch performs, also in
the backward pass. The result is a list of operations of ``tengen._core.Program``, which
has no dispatcher and no autograd. An operation that the core lacks is performed by
torch between two parts of the program.

A view is not an operation: the program knows each tensor by the memory that it shares,
its offset and its strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Call", "NotRecordable", "Recording", "memory_of", "tensors_in"]

# Values of these tags cannot be known from shapes, or change from call to call.
_REFUSED = (
    torch.Tag.nondeterministic_seeded,
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
)
_MASKS = (torch.bool, torch.uint8)


class NotRecordable(Exception):
    """A function reads a value, draws random numbers, or uses an unsupported dtype."""


class Call(NamedTuple):
    """One operation, with its arguments and results at the time of the recording."""

    operation: Any
    """The ``torch._ops.OpOverload``."""
    arguments: tuple[Any, ...]
    settings: dict[str, Any]
    """The keyword arguments."""
    result: Any

    @property
    def name(self) -> str:
        """The operation's name without namespace and overload."""
        name: str = self.operation._schema.name
        return name.partition("::")[2]

    @property
    def inputs(self) -> list[Tensor]:
        """All tensors in the arguments."""
        return tensors_in([self.arguments, self.settings])

    @property
    def outputs(self) -> list[Tensor]:
        """All tensors in the result."""
        return tensors_in(self.result)

    @property
    def written(self) -> list[Tensor]:
        """The tensors in the arguments that the operation changes."""
        found = []
        for place, argument in enumerate(self.operation._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            has_place = place < len(self.arguments)
            given = self.arguments[place] if has_place else self.settings[argument.name]
            found += tensors_in(given)
        return found


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context that notes the operations of this thread, and copies what they change.

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
        self.inputs = dict(inputs)
        self.calls: list[Call] = []
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
        """Performs and notes an operation; see ``TorchDispatchMode``."""
        call = Call(func, args, kwargs or {}, None)
        # Indices have a fixed shape unless they are masks.
        has_mask = any(tensor.dtype in _MASKS for tensor in tensors_in(args[1:2]))
        is_fixed = call.name == "index" and not has_mask
        if not is_fixed and any(tag in func.tags for tag in _REFUSED):
            raise NotRecordable(call.name)
        self.existing |= {memory_of(tensor) for tensor in call.inputs} - self._made
        for tensor in call.written:
            address = memory_of(tensor)
            if address not in self.existing:
                continue
            if not any(tensor is other for other in self.changed):
                self.changed.append(tensor)
            if address not in self._before:
                whole = _whole(tensor)
                self._before[address] = (whole, whole.clone())
        call = call._replace(result=func(*args, **call.settings))
        made = {memory_of(tensor) for tensor in call.outputs}
        self._made |= made - self.existing
        self.calls.append(call)
        return call.result

    def restore(self) -> None:
        """Undoes all changes of memory that existed before the recording."""
        for whole, before in self._before.values():
            whole.copy_(before)
        torch.autograd.graph.increment_version(self.changed)


def memory_of(tensor: Tensor) -> int:
    """Returns the address of the memory that a tensor shares with its views."""
    return tensor.untyped_storage().data_ptr()


def tensors_in(value: Any) -> list[Tensor]:
    """Returns the tensors in nested tuples, lists and dictionaries, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return []
    return [tensor for item in value for tensor in tensors_in(item)]


def mapped(value: Any, replace: Callable[[Tensor], Tensor]) -> Any:
    """Returns ``value`` with each tensor in nested lists and tuples replaced."""
    if isinstance(value, Tensor):
        return replace(value)
    if isinstance(value, list | tuple):
        return type(value)(mapped(item, replace) for item in value)
    return value


def _whole(tensor: Tensor) -> Tensor:
    """Returns all memory that a tensor shares with its views, as bytes."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
