"""Replays the array operations of learner steps without Python and without autograd.

In a learner step of a small network, most of the time is spent in Python and in torch's
dispatcher, once per operation. `Replayed` records a function's operations for each
combination of input shapes, and then runs them as a program of the core. The function
remains the definition: the first result of a program is compared with its result.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from tengen import _core
from tengen.learners.operations import TYPES, Step, Translation
from tengen.learners.recording import (
    Call,
    NotRecordable,
    Recording,
    mapped,
    memory_of,
    tensors_in,
)
from tengen.nets.modules.exporting import exporting

__all__ = ["Replayed"]

Tensors: TypeAlias = dict[str, Tensor]

# Maximum number of programs of a function. PPO's minibatches differ in size by a few
# rows, because steps between episodes are left out.
_MOST_PROGRAMS = 64
# Alignment of arrays in memory, in bytes.
_ALIGNMENT = 64
# Maximum difference between a program and its function, relative to the changes that
# both make. It is far above rounding, and far below an operation with a wrong meaning.
_MOST_DIFFERENCE = 0.01


class Replayed:
    """A function of tensors that performs the same operations in every call.

    The operations may depend on shapes, and on nothing else. The function may change
    other tensors in place. It must not draw random numbers or read a tensor's value.

    Each result of a call is the program's, also that of the first call, so results do
    not depend on the calls before. Results differ from the function's by rounding. A
    function that cannot be recorded is called instead. Not thread-safe.
    """

    def __init__(self, function: Callable[[Tensors], Tensors]) -> None:
        """Wraps a function from CPU tensors by name to CPU tensors by name."""
        self._function = function
        self._programs: OrderedDict[object, _Program | None] = OrderedDict()

    @property
    def num_programs(self) -> int:
        """Number of programs in memory."""
        return sum(program is not None for program in self._programs.values())

    def __call__(self, inputs: Tensors) -> Tensors:
        """Returns the function's results, valid until the next call."""
        if any(x.numel() == 0 for x in inputs.values()):
            return self._function(inputs)
        key = tuple((name, x.shape, x.dtype) for name, x in inputs.items())
        if key not in self._programs:
            self._programs[key] = self._recorded(inputs)
            if len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        program = self._programs[key]
        return self._function(inputs) if program is None else program.run(inputs)

    def _recorded(self, inputs: Tensors) -> _Program | None:
        """Returns a program for the shapes of ``inputs``; None if there is none.

        All tensors have their previous values at the end.
        """
        given = {name: x.contiguous().clone() for name, x in inputs.items()}
        try:
            if not self._programs:
                # The first call may create objects that the function keeps.
                self._record(given)[0].restore()
            recording, results = self._record(given)
            expected = _copies(results.values())
            after = _copies(recording.changed)
            recording.restore()
            program = _Program(recording, results)
        except NotRecordable:
            return None
        before = _copies(recording.changed)
        found = program.run(given)
        is_right = _are_near(expected, [*found.values()]) and _are_near(
            _differences(after, before),
            _differences(recording.changed, before),
        )
        recording.restore()
        return program if is_right else None

    def _record(self, given: Tensors) -> tuple[Recording, Tensors]:
        recording = Recording(given)
        try:
            # Caches would hide operations whose inputs differ in the next call.
            with exporting(), recording:
                return recording, self._function(given)
        except NotRecordable:
            recording.restore()
            raise


class _Program:
    """The operations of a function for inputs of fixed shapes.

    Args:
        recording: The function's operations.
        results: The function's results in the recording, by name.

    Raises:
        NotRecordable: A tensor has an unsupported device or dtype.
    """

    def __init__(self, recording: Recording, results: Tensors) -> None:
        self._changed = recording.changed
        self._names = {memory_of(x): name for name, x in recording.inputs.items()}
        steps = Translation(recording.calls).steps
        written = {memory_of(x) for step in steps for x in _written(step)}
        own = written - recording.existing - self._names.keys()
        self._places, num_bytes = _planned(steps, own, [*results.values()])
        self._memory = torch.empty(num_bytes, dtype=torch.uint8)
        # The core numbers the program's own memory 0, then inputs, then other memory.
        self._others: dict[int, int] = {}
        self._kept: list[Tensor] = []
        self._program = _core.Program()
        self._calls: list[tuple[int, Call]] = []
        for step in steps:
            if step.call is not None:
                self._calls.append((len(self._program), self._here(step.call)))
                continue
            operands = [self._operand(x) for x in step.operands]
            self._program.add(step.kind, step.sizes, operands, step.constants)
        self._addresses = [self._memory.data_ptr(), *self._names, *self._others]
        self._results = {name: self._view(x.detach()) for name, x in results.items()}

    @torch.no_grad()
    def run(self, inputs: Tensors) -> Tensors:
        """Returns the results, valid until the next call."""
        given = {name: x.contiguous() for name, x in inputs.items()}
        addresses = self._addresses.copy()
        addresses[1 : 1 + len(given)] = [
            given[n].data_ptr() for n in self._names.values()
        ]
        done = 0
        for place, call in self._calls:
            self._program.run(addresses, done, place)
            done = place
            self._perform(call, given)
        self._program.run(addresses, done, len(self._program))
        # Networks cache numbers that they derive from tensors until these change.
        torch.autograd.graph.increment_version(self._changed)
        return {name: self._of_input(x, given) for name, x in self._results.items()}

    def _operand(self, x: Tensor) -> tuple[int, int, int, list[int]]:
        address, size = memory_of(x), x.element_size()
        offset = int(x.storage_offset()) * size
        strides = [stride * size for stride in x.stride()]
        if address in self._places:
            return 0, self._places[address] + offset, TYPES[x.dtype], strides
        if address in self._names:
            slot = 1 + list(self._names).index(address)
        else:
            self._kept.append(x)
            slot = self._others.setdefault(address, len(self._others)) + 1
            slot += len(self._names)
        return slot, offset, TYPES[x.dtype], strides

    def _view(self, x: Tensor) -> Tensor:
        """Returns ``x`` in the program's memory, if it is there."""
        if memory_of(x) not in self._places:
            return x
        first = self._places[memory_of(x)] // x.element_size() + x.storage_offset()
        return self._memory.view(x.dtype).as_strided(x.shape, x.stride(), first)

    def _here(self, call: Call) -> Call:
        view = self._view
        return call._replace(
            arguments=mapped(call.arguments, view), result=mapped(call.result, view)
        )

    def _of_input(self, x: Tensor, given: Tensors) -> Tensor:
        """Returns ``x`` in the memory of the current inputs, if it is of an input."""
        name = self._names.get(memory_of(x))
        if name is None:
            return x
        return given[name].as_strided(x.shape, x.stride(), x.storage_offset())

    def _perform(self, call: Call, given: Tensors) -> None:
        arguments = mapped(call.arguments, lambda x: self._of_input(x, given))
        found = call.operation(*arguments, **call.settings)
        for kept, new in zip(call.outputs, tensors_in(found), strict=True):
            if memory_of(kept) != memory_of(new):
                kept.copy_(new)


def _copies(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


def _differences(after: Sequence[Tensor], before: Sequence[Tensor]) -> list[Tensor]:
    return [a.double() - b.double() for a, b in zip(after, before, strict=True)]


def _are_near(expected: Sequence[Tensor], found: Sequence[Tensor]) -> bool:
    if not expected:
        return True
    one, other = (
        torch.cat([x.detach().double().flatten() for x in tensors])
        for tensors in (expected, found)
    )
    error = float((one - other).norm())
    return error <= _MOST_DIFFERENCE * float(one.norm())


def _written(step: Step) -> list[Tensor]:
    """Returns the tensors that a step writes."""
    if step.call is not None:
        return [*step.call.outputs, *step.call.written]
    num_results = {"adamw": 4, "largest": 2, "smallest": 2}.get(step.kind, 1)
    return step.operands[:num_results]


def _planned(
    steps: Sequence[Step], own: set[int], results: Sequence[Tensor]
) -> tuple[dict[int, int], int]:
    """Places a program's own arrays, so that arrays share memory if they can.

    An array that fits in the processor's cache is faster, and few arrays are in use at
    the same time.

    Args:
        steps: The program's steps.
        own: The addresses in the recording of the memory to place.
        results: Tensors that are used after the last step.

    Returns:
        The offset of each address, and the total number of bytes.
    """
    sizes: dict[int, int] = {}
    last: dict[int, int] = {}
    uses = [*(step.operands for step in steps), results]
    for place, tensors in enumerate(uses):
        for x in tensors:
            if memory_of(x) in own:
                num_bytes = x.untyped_storage().nbytes()
                sizes[memory_of(x)] = -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
                last[memory_of(x)] = place
    places: dict[int, int] = {}
    in_use: list[tuple[int, int, int]] = []  # sorted: offset, end, last use
    total = 0
    for now, tensors in enumerate(uses):
        in_use = [one for one in in_use if one[2] >= now]
        for x in tensors:
            address = memory_of(x)
            if address not in own or address in places:
                continue
            offset = 0
            for first, end, _ in in_use:
                if offset + sizes[address] <= first:
                    break
                offset = max(offset, end)
            places[address], end = offset, offset + sizes[address]
            bisect.insort(in_use, (offset, end, last[address]))
            total = max(total, end)
    return places, total
