"""The arrays of a caller's rows, in its own memory or in shared memory."""

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
    """The inputs, outputs and recurrent state of N rows.

    Attributes:
        inputs: ``[N, ...]`` each, by the signature's names; the caller writes them.
        outputs: ``[N, ...]`` each; inference writes them.
        state: ``[N, ...]`` each, the recurrent state after the last evaluation and
            before the next.
        is_first: ``[N]`` bool, rows that begin an episode, so that their state is zero
            at the next evaluation.
        version: Version (learner steps) of the model that answered last; -1 before.
        wants_state: Whether ``state`` must be current after the next evaluation, where
            inference in another process keeps the state.
        num_moves: How often another inference server took over the rows, with their
            state zeroed.
    """

    def __init__(
        self,
        signature: Signature,
        num_rows: int,
        memory: memoryview | None = None,
    ) -> None:
        """Makes arrays of zeros, or arrays over given memory.

        Args:
            signature: The network's signature, its state included.
            num_rows: Number N of rows, at least 1.
            memory: Writable memory of ``num_bytes`` bytes, aligned to 64; None for
                memory of this process alone.
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
        """Copies the caller's data to other arrays, and uses these from then on.

        This object then gives the new arrays; runners bound to the old arrays must be
        bound again.
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
    """Yields the part, name, spec of a row and first byte of each array."""
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
