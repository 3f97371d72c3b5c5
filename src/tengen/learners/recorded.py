"""Performs the array operations of learner steps without Python and without autograd.

In a learner step of a small network, most of the time is spent in Python and in torch's
dispatcher, once per operation. `Recorded` records a function's operations for each
combination of input shapes, and then runs them as a program of the core. The function
remains the definition: results of a new program are compared with its results.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen import _core
from tengen.learners.batches import joined_priorities
from tengen.learners.config import AdamWConfig, LearnerConfig
from tengen.learners.operations import TYPES, Step, Translation
from tengen.learners.optimizer import Optimizer
from tengen.learners.recording import (
    NotRecordable,
    Observed,
    Recording,
    Tensors,
    are_near,
    copies_of,
    memory_of,
    observe,
)
from tengen.learners.shards import Shards
from tengen.learners.update import Update
from tengen.nets import Net

# Maximum number of programs of a function; a new one then takes the oldest's place.
# PPO's minibatches differ in size by a few rows, because steps between episodes are
# left out.
_MOST_PROGRAMS = 64
# Maximum number of programs that lose their place. A function with even more shapes
# would spend its time on recording.
_MOST_EVICTIONS = 64
# Alignment of arrays in memory, in bytes.
_ALIGNMENT = 64
# Maximum number of trained parameters. In larger networks, arithmetic takes most of the
# time of a step.
_MOST_PARAMETERS = 1 << 19


class RecordedStep:
    """The optimizer step of a minibatch of a small network, with `Recorded` functions.

    The functions are those of the learner loop: loss, gradients and clipping in one,
    and the optimizer's update with all that follows from it in another, because between
    them the learner checks that the gradient is finite. Not thread-safe.

    Args:
        net: The network in training.
        shards: The network's only copy.
        optimizer: The network's optimizer.
        update: The agent's update.
    """

    def __init__(
        self, net: Net, shards: Shards, optimizer: Optimizer, update: Update
    ) -> None:
        self._net = net
        self._shards = shards
        self._optimizer = optimizer
        self._update = update
        self._names: list[str] = []
        self._gradients = Recorded()
        self._application = Recorded()

    @staticmethod
    def supports(config: LearnerConfig, net: Net, update: Update) -> bool:
        """Returns whether a learner without a group records its steps.

        The network must be small and consist of matrices and vectors without a state,
        on the CPU, in one part, with AdamW; and the update's own class must declare
        that it is recordable, because a subclass may perform other operations.
        """
        parameters = [*net.parameters(), *update.parameters()]
        return (
            update.is_recordable
            and "is_recordable" in vars(type(update))
            and config.num_shards == 1
            and isinstance(config.optimizer, AdamWConfig)
            and not net.signature.state
            and all(p.dim() <= 2 and p.device.type == "cpu" for p in parameters)
            and sum(p.numel() for p in parameters) <= _MOST_PARAMETERS
        )

    @property
    def is_recorded(self) -> bool:
        """Whether steps were performed, and all of them without Python."""
        return self._gradients.is_recorded and self._application.is_recorded

    def __call__(
        self, columns: dict[str, Tensor], remaining: float | None, asked: float | None
    ) -> tuple[dict[str, float], NDArray[np.float64] | None]:
        """Performs the optimizer step of a minibatch, except ``Update.stepped``.

        Args:
            columns: The minibatch, tensors ``[rows, ...]``.
            remaining: As in ``learning_rate_at``.
            asked: As in ``learning_rate_at``.

        Returns:
            The metrics, and the priorities of the items if the agent has any.

        Raises:
            RunError: The gradient is not finite; no parameter was changed.
        """
        found = self._gradients(self._compute, columns)
        *values, norm = found["numbers"].tolist()
        priorities = joined_priorities([found.get("priorities")])
        rate = self._optimizer.begin(norm, remaining, asked)
        self._application(self._apply, {})
        if not self._has_plain_average:
            self._optimizer.update_average()
        metrics = dict(zip(self._names, values, strict=True))
        return {**metrics, "grad_norm": norm, "learning_rate": rate}, priorities

    @property
    def _has_plain_average(self) -> bool:
        """Whether the weights' share in the average is constant, thus recordable."""
        return self._optimizer.config.average_decay == 0

    def _compute(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        parts = self._shards.compute(columns)
        self._shards.add_gradients(parts)
        norm = self._optimizer.clip(self._shards.gradients)
        (part,) = parts
        self._names = list(part.metrics)
        numbers = torch.stack([*part.metrics.values(), norm])
        found = {} if part.priorities is None else {"priorities": part.priorities}
        return {"numbers": numbers, **found}

    def _apply(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        self._optimizer.apply()
        self._shards.merge_statistics()
        if self._has_plain_average:
            self._optimizer.update_average()
        self._update.move_targets(self._net)
        return {}


class Recorded:
    """Calls a function of tensors that performs the same operations in every call.

    The operations may depend on shapes, and on nothing else. The function may change
    other tensors in place, but not its inputs. It must not draw random numbers, read a
    tensor's value, or compute outside torch. Integers must be below 2 ** 53.

    Each result of a call is the program's, also that of the first call, so results do
    not depend on the calls before. Results differ from the function's by rounding. A
    function that cannot be recorded is called instead, and so are shapes beyond the
    first 128. Not thread-safe.
    """

    def __init__(self) -> None:
        """Creates an object without programs."""
        self._programs: dict[object, _Program | None] = {}
        self._num_recorded = 0
        self._is_recorded = True
        # The memory of all programs, because only one of them runs at a time.
        self._memory = torch.empty(0, dtype=torch.uint8)

    @property
    def is_recorded(self) -> bool:
        """Whether there were calls, and all of them ran a program."""
        return self._num_recorded > 0 and self._is_recorded

    def __call__(
        self, function: Callable[[Tensors], Tensors], inputs: Tensors
    ) -> Tensors:
        """Returns the function's results, valid until the next call.

        Args:
            function: A function from CPU tensors by name to CPU tensors by name; the
                same in every call.
            inputs: The function's argument.
        """
        key = tuple((name, x.shape, x.dtype) for name, x in inputs.items())
        if key not in self._programs and self._has_place:
            if len(self._programs) == _MOST_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            self._programs[key] = self._new_program(function, inputs)
            self._num_recorded += 1
        program = self._programs.get(key)
        if program is None:
            self._is_recorded = False
            return function(inputs)
        return program.run(inputs, self._memory)

    @property
    def _has_place(self) -> bool:
        return self._num_recorded < _MOST_PROGRAMS + _MOST_EVICTIONS

    def _new_program(
        self, function: Callable[[Tensors], Tensors], inputs: Tensors
    ) -> _Program | None:
        """Returns a program for the shapes of ``inputs``; None if there is none.

        All tensors have their previous values at the end.
        """
        given = {name: x.contiguous().clone() for name, x in inputs.items()}
        if any(x.numel() == 0 for x in given.values()):
            return None
        # Other rows, with other sums, show operations that the recording missed.
        others = {
            name: torch.cat([x[:1], x[:-1]]) if x.dim() else x
            for name, x in given.items()
        }
        try:
            # The first call may create objects that the function keeps.
            observe(function, given)
            # The program refers to memory of the last recording. Keep the one before,
            # so that memory at an address of both existed before both.
            other = observe(function, others)
            last = observe(function, given)
            program = _Program(last.recording, last.results, other.recording)
            if program.num_bytes > len(self._memory):
                self._memory = torch.empty(program.num_bytes, dtype=torch.uint8)
            is_right = all(
                self._is_right(program, one, last.recording) for one in (other, last)
            )
        except Exception:
            # Whatever the recording does not support, the function itself performs, or
            # raises its error.
            return None
        return program if is_right else None

    def _is_right(
        self, program: _Program, expected: Observed, recording: Recording
    ) -> bool:
        """Returns whether a program has the effect of an observed call; undoes it."""
        try:
            results = program.run(expected.recording.inputs, self._memory)
            found = copies_of(results.values())
            changes = copies_of(recording.changed)
        finally:
            recording.restore()
        return are_near(found, expected.numbers) and are_near(
            changes, expected.changes, copies_of(recording.changed)
        )


class _Program:
    """The operations of a function for inputs of fixed shapes.

    Attributes:
        num_bytes: Number of bytes of memory that ``run`` needs.
    """

    def __init__(self, recording: Recording, results: Tensors, other: Recording):
        """Creates a program.

        Args:
            recording: The function's operations.
            results: The function's results in the recording, by name.
            other: A recording of the same function with other inputs.

        Raises:
            NotRecordable: The core lacks an operation, or the function depends on more
                than its inputs and lasting memory.
            CoreError: The core does not support an operation's strides.
        """
        if [call.name for call in recording.calls] != [c.name for c in other.calls]:
            raise NotRecordable("operations that depend on values")
        self._changed = recording.changed
        translation = Translation(recording.calls)
        steps = translation.steps
        known = {
            memory_of(x): slot for slot, x in enumerate(recording.inputs.values(), 1)
        }
        written = {memory_of(x) for step in steps for x in _written(step)}
        if written & known.keys():
            raise NotRecordable("a changed input")
        own = written - recording.existing
        if not own >= {memory_of(x) for x in results.values()}:
            raise NotRecordable("a result that is no result of an operation")
        # Other memory was filled outside torch, such as by numpy.
        lasting = (recording.existing & other.existing) | translation.constants
        lasting |= _lifted(recording, other) - written
        places, self.num_bytes = _planned(steps, own, [*results.values()])
        # The core numbers the program's own memory 0, then inputs, then other memory.
        self._addresses = [0, *known]
        self._kept: list[Tensor] = []
        self._program = _core.Program()
        for step in steps:
            operands = []
            for x in step.operands:
                address, size = memory_of(x), x.element_size()
                if address not in known and address not in places:
                    if address not in lasting:
                        raise NotRecordable("memory of an unknown origin")
                    known[address] = len(self._addresses)
                    self._addresses.append(address)
                    self._kept.append(x)
                offset = places.get(address, 0) + int(x.storage_offset()) * size
                strides = [stride * size for stride in x.stride()]
                slot = 0 if address in places else known[address]
                operands.append((slot, offset, TYPES[x.dtype], strides))
            self._program.add(step.kind, step.sizes, operands, step.constants)
        # The memory of the last run, and the results in it.
        self._memory: Tensor | None = None
        self._results: Tensors = {}
        self._places = {
            name: _Place(
                x.dtype,
                x.shape,
                x.stride(),
                places[memory_of(x)] // x.element_size() + int(x.storage_offset()),
            )
            for name, x in results.items()
        }

    def run(self, inputs: Mapping[str, Tensor], memory: Tensor) -> Tensors:
        """Returns the results, valid until ``memory`` is used again.

        Args:
            inputs: The inputs by name.
            memory: At least ``num_bytes`` bytes.
        """
        given = [x.contiguous() for x in inputs.values()]
        self._addresses[1 : 1 + len(given)] = [x.data_ptr() for x in given]
        if memory is not self._memory:
            self._memory, self._addresses[0] = memory, memory.data_ptr()
            self._results = {name: at.of(memory) for name, at in self._places.items()}
        self._program.run(self._addresses)
        # Networks cache numbers that they derive from tensors until these change.
        torch.autograd.graph.increment_version(self._changed)
        return self._results


def _lifted(recording: Recording, other: Recording) -> set[int]:
    """Returns the addresses of numbers that a function makes equal in both calls."""
    return {
        memory_of(x)
        for call, same in zip(recording.calls, other.calls, strict=True)
        if call.name == "lift_fresh"
        for x, y in zip(call.outputs, same.outputs, strict=True)
        if torch.equal(x, y)
    }


class _Place(NamedTuple):
    """The place of a result in the memory of a program."""

    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...]
    first: int
    """The index of the first element."""

    def of(self, memory: Tensor) -> Tensor:
        """Returns the result, a view of ``memory``."""
        size = self.dtype.itemsize
        whole = memory[: len(memory) // size * size].view(self.dtype)
        return whole.as_strided(self.shape, self.strides, self.first)


def _written(step: Step) -> list[Tensor]:
    """Returns the tensors that a step writes."""
    num_results = {"adamw": 4, "largest": 2, "smallest": 2}.get(step.kind, 1)
    return step.operands[:num_results]


def _planned(
    steps: Sequence[Step], own: set[int], results: Sequence[Tensor]
) -> tuple[dict[int, int], int]:
    """Places a program's own arrays, so that arrays share memory if they can.

    Few arrays are in use at the same time, so they fit in the processor's cache.

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
