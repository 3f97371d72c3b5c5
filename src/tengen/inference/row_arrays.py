"""The arrays of a caller's rows, in its own memory or in memory that it shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.tensors import Signature, TensorSpec

__all__ = ["RowArrays"]

_ALIGNMENT = 64
_FIRST = TensorSpec(dtype="bool")


class RowArrays:
    """What inference reads of N rows, answers, and keeps of them.

    Attributes:
        inputs: ``[N, ...]`` each, as the signature names them; the caller writes them.
        outputs: ``[N, ...]`` each; inference writes them.
        state: ``[N, ...]`` each, the recurrent state after the last evaluation, that is
            before the next one.
        is_first: ``[N]`` bool, rows whose state is zero at the next evaluation, as an
            episode begins with it.
        version: Learner steps behind the model that answered last; -1 before.
        wants_state: Whether ``state`` is to be right after the next evaluation, where
            inference in another process has it.
        num_moves: How often another inference server took the rows over, which has
            their state as zeros.
    """

    def __init__(
        self,
        signature: Signature,
        num_rows: int,
        memory: memoryview | None = None,
    ) -> None:
        """Makes arrays of zeros, or takes those that lie in a memory.

        Args:
            signature: Of the network, its state included.
            num_rows: N, at least 1.
            memory: Writable, of ``num_bytes`` bytes, aligned to 64; None for memory of
                this process alone.
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
        """Copies what the caller has written to other arrays, and becomes these.

        Whoever looks arrays up here sees the new ones; what was bound to the old ones
        must be bound again.
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
        """Returns the bytes of all arrays of N rows."""
        last = 0
        for _, _, spec, first in _layout(signature, num_rows):
            last = first + spec.num_bytes * num_rows
        return last


def _layout(
    signature: Signature, num_rows: int
) -> Iterator[tuple[str, str, TensorSpec, int]]:
    """Yields part, name, one row, and first byte of each array."""
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
