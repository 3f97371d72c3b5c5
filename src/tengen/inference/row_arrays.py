"""The inputs, outputs and state of a caller of inference, in its memory or shared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.tensors import Signature, TensorSpec

_ALIGNMENT = 64
_FIRST = TensorSpec(dtype="bool")


class RowArrays:
    """The inputs, outputs and recurrent state of N rows.

    Attributes:
        inputs: Arrays ``[N, ...]`` by name, written by the caller.
        outputs: Arrays ``[N, ...]`` by name, written by inference.
        state: Arrays ``[N, ...]`` by name, the recurrent state before the next
            evaluation.
        is_first: ``[N]`` bool, whether a row begins an episode; the next evaluation
            zeroes the row's state.
        version: Version (learner steps) of the last evaluation's model; initially -1.
        wants_state: Whether the next evaluation must update ``state``. Used only if
            another process stores the recurrent state between evaluations.
        num_moves: Number of changes of the inference server; each zeroes the state.
    """

    def __init__(
        self,
        signature: Signature,
        num_rows: int,
        memory: memoryview | None = None,
    ) -> None:
        """Creates zero-filled arrays, or uses ``memory`` for the arrays.

        Args:
            signature: The network's signature, including its state.
            num_rows: Number N of rows, at least 1.
            memory: Writable memory of ``num_bytes`` bytes, aligned to 64 bytes; None
                for private memory.
        """
        self.num_rows = num_rows
        self.version = -1
        self.wants_state = False
        self.num_moves = 0
        size = self.num_bytes(signature, num_rows)
        if memory is None:
            memory = memoryview(bytearray(size))
        arrays: dict[str, dict[str, NDArray[Any]]] = {}
        for part, name, spec, first in _layout(signature, num_rows):
            arrays.setdefault(part, {})[name] = np.ndarray(
                (num_rows, *spec.shape), spec.dtype, memory, first
            )
        self.is_first: NDArray[np.bool_] = arrays["first"][""]
        self.inputs: dict[str, NDArray[Any]] = arrays["inputs"]
        self.outputs: dict[str, NDArray[Any]] = arrays["outputs"]
        self.state: dict[str, NDArray[Any]] = arrays.get("state", {})

    def move_to(self, other: RowArrays) -> None:
        """Copies all data to the arrays of ``other``, and then uses those arrays.

        Runners that are bound to the previous arrays must be bound again.
        """
        for mine, theirs in (
            ({"": self.is_first}, {"": other.is_first}),
            (self.inputs, other.inputs),
            (self.outputs, other.outputs),
            (self.state, other.state),
        ):
            for name, array in mine.items():
                np.copyto(theirs[name], array)
        self.is_first, self.inputs = other.is_first, other.inputs
        self.outputs, self.state = other.outputs, other.state

    @staticmethod
    def num_bytes(signature: Signature, num_rows: int) -> int:
        """Returns the size in bytes of all arrays for ``num_rows`` rows."""
        last = 0
        for _, _, spec, first in _layout(signature, num_rows):
            last = first + spec.num_bytes * num_rows
        return last


def _layout(
    signature: Signature, num_rows: int
) -> Iterator[tuple[str, str, TensorSpec, int]]:
    """Yields each array's kind, name, row spec and byte offset in the memory."""
    first = 0
    parts = {
        "first": {"": _FIRST},
        "inputs": signature.inputs,
        "outputs": signature.outputs,
        "state": signature.state,
    }
    for part, specs in parts.items():
        for name, spec in specs.items():
            yield part, name, spec, first
            end = first + spec.num_bytes * num_rows
            first = -(-end // _ALIGNMENT) * _ALIGNMENT
