"""Replays the array operations of learner steps without Python and without autograd.

In a learner step of a small network, most of the time is spent in Python and in torch's
dispatcher, once per operation. `Replayed` records a function's operations for each
combination of input shapes, and then runs them as a program of the core. The function
remains the definition: the first result of a program is compared with its result.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen import _core
from tengen.learners.batches import joined_priorities
from tengen.learners.config import AdamWConfig, LearnerConfig
from tengen.learners.operations import TYPES, Step, Translation
from tengen.learners.optimizer import Optimizer
from tengen.learners.recording import NotRecordable, Recording, memory_of
from tengen.learners.shards import Shards
from tengen.learners.update import Update
from tengen.nets import Net
from tengen.nets.modules.exporting import exporting

__all__ = ["Replayed", "ReplayedStep"]

Tensors: TypeAlias = dict[str, Tensor]

# Maximum number of programs of a function, which then starts afresh. PPO's minibatches
# differ in size by a few rows, because steps between episodes are left out.
_MOST_PROGRAMS = 64
# Alignment of arrays in memory, in bytes.
_ALIGNMENT = 64
# Maximum difference between a program and its function, relative to the changes that
# both make. It is far above rounding, and far below an operation with a wrong meaning.
_MOST_DIFFERENCE = 0.01
# Maximum number of trained parameters. In larger networks, arithmetic takes most of the
# time of a step.
_MOST_PARAMETERS = 1 << 19


class ReplayedStep:
    """The optimizer step of a minibatch of a small network, with `Replayed` functions.

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
        self._gradients = Replayed(self._compute)
        self._application = Replayed(self._apply)

    @staticmethod
    def supports(config: LearnerConfig, net: Net, update: Update) -> bool:
        """Returns whether a learner without a group can replay its steps.

        The network must be small and consist of matrices and vectors without a state,
        on the CPU, in one part, with AdamW; and the update must be traceable.
        """
        parameters = [*net.parameters(), *update.parameters()]
        return (
            update.is_traceable
            and config.num_shards == 1
            and isinstance(config.optimizer, AdamWConfig)
            and not net.signature.state
            and all(p.dim() <= 2 and p.device.type == "cpu" for p in parameters)
            and sum(p.numel() for p in parameters) <= _MOST_PARAMETERS
        )

    @property
    def is_replaying(self) -> bool:
        """Whether steps were performed, and all of them without Python."""
        return self._gradients.is_replaying and self._application.is_replaying

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
        found = self._gradients(columns)
        *values, norm = found["numbers"].tolist()
        priorities = joined_priorities([found.get("priorities")])
        rate = self._optimizer.begin(norm, remaining, asked)
        self._application({})
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
        self._update.follow(self._net)
        return {}


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
        self._programs: dict[object, _Program | None] = {}

    @property
    def is_replaying(self) -> bool:
        """Whether the function has been called, and has a program for each shape."""
        return bool(self._programs) and None not in self._programs.values()

    def __call__(self, inputs: Tensors) -> Tensors:
        """Returns the function's results, valid until the next call."""
        key = tuple((name, x.shape, x.dtype) for name, x in inputs.items())
        if key not in self._programs:
            if len(self._programs) == _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = self._recorded(inputs)
        program = self._programs[key]
        return self._function(inputs) if program is None else program.run(inputs)

    def _recorded(self, inputs: Tensors) -> _Program | None:
        """Returns a program for the shapes of ``inputs``; None if there is none.

        All tensors have their previous values at the end.
        """
        given = {name: x.contiguous().clone() for name, x in inputs.items()}
        if any(x.numel() == 0 for x in given.values()):
            return None
        try:
            # The first call may create objects that the function keeps.
            self._record(given)[0].restore()
            recording, results = self._record(given)
            expected, after = _joined(results.values()), _joined(recording.changed)
            recording.restore()
            before = _joined(recording.changed)
            program = _Program(recording, results)
        except (NotRecordable, _core.CoreError):
            return None
        found = _joined(program.run(given).values())
        is_right = _is_near(found, expected) and _is_near(
            _joined(recording.changed) - before, after - before
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
        NotRecordable: The core lacks an operation.
        CoreError: The core does not support an operation's strides.
    """

    def __init__(self, recording: Recording, results: Tensors) -> None:
        self._changed = recording.changed
        steps = Translation(recording.calls).steps
        known = {
            memory_of(x): slot for slot, x in enumerate(recording.inputs.values(), 1)
        }
        written = {memory_of(x) for step in steps for x in _written(step)}
        own = written - recording.existing - known.keys()
        if not own >= {memory_of(x) for x in results.values()}:
            raise NotRecordable("a result that is no result of an operation")
        places, num_bytes = _planned(steps, own, [*results.values()])
        self._memory = torch.empty(num_bytes, dtype=torch.uint8)
        # The core numbers the program's own memory 0, then inputs, then other memory.
        self._addresses = [self._memory.data_ptr(), *known]
        self._kept: list[Tensor] = []
        self._program = _core.Program()
        for step in steps:
            operands = []
            for x in step.operands:
                address, size = memory_of(x), x.element_size()
                if address not in known and address not in places:
                    known[address] = len(self._addresses)
                    self._addresses.append(address)
                    self._kept.append(x)
                offset = places.get(address, 0) + int(x.storage_offset()) * size
                strides = [stride * size for stride in x.stride()]
                slot = 0 if address in places else known[address]
                operands.append((slot, offset, TYPES[x.dtype], strides))
            self._program.add(step.kind, step.sizes, operands, step.constants)
        self._results = {}
        for name, x in results.items():
            first = places[memory_of(x)] // x.element_size() + x.storage_offset()
            memory = self._memory.view(x.dtype)
            self._results[name] = memory.as_strided(x.shape, x.stride(), first)

    def run(self, inputs: Tensors) -> Tensors:
        """Returns the results, valid until the next call."""
        given = [x.contiguous() for x in inputs.values()]
        self._addresses[1 : 1 + len(given)] = [x.data_ptr() for x in given]
        self._program.run(self._addresses)
        # Networks cache numbers that they derive from tensors until these change.
        torch.autograd.graph.increment_version(self._changed)
        return self._results


def _is_near(found: Tensor, expected: Tensor) -> bool:
    # A NaN is not near anything, so that the function itself reports it.
    limit = _MOST_DIFFERENCE * float(expected.norm())
    return float((found - expected).norm()) <= limit


def _joined(tensors: Iterable[Tensor]) -> Tensor:
    """Returns a copy of all numbers, ``[N]`` float64."""
    parts = [x.detach().double().flatten() for x in tensors]
    return torch.cat(parts) if parts else torch.empty(0)


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
