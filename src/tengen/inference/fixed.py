"""A fixed batch size, for a backend whose answers' bits depend on the batch size.

Every batch is cut and padded to the same number of rows, so that neither the port's
size nor the number of rows in a batch can change an answer. This costs a copy and the
padding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.inference.backend import NO_STATE, Arrays, Backend, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature

__all__ = ["FixedBackend"]


class FixedBackend:
    """A ``Backend`` that has another backend evaluate batches of one size.

    Attributes:
        name: The other backend's.
        version: The other backend's.
        precision: The other backend's.
        batch_shape: ``fixed``.
        signature: The other backend's.
    """

    batch_shape: BatchShape = "fixed"

    def __init__(self, backend: Backend, batch_rows: int) -> None:
        """Wraps a backend.

        Args:
            backend: The backend that evaluates.
            batch_rows: Rows of every batch.
        """
        self.name: str = backend.name
        self.version: str = backend.version
        self.precision: Precision = backend.precision
        self.signature: Signature = backend.signature
        self._backend = backend
        self._batch_rows = batch_rows

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> FixedRunner:
        """Returns a runner over these arrays; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        return FixedRunner(self._backend, self._batch_rows, inputs, outputs, state)


_Pairs = list[tuple[NDArray[Any], NDArray[Any]]]


class FixedRunner:
    """A ``Runner`` with one batch of its own between the arrays and the backend."""

    def __init__(
        self,
        backend: Backend,
        batch_rows: int,
        inputs: Arrays,
        outputs: Arrays,
        state: Arrays,
    ) -> None:
        self._batch_rows = batch_rows
        own = [
            {
                name: np.zeros((batch_rows, *array.shape[1:]), array.dtype)
                for name, array in arrays.items()
            }
            for arrays in (inputs, outputs, state)
        ]
        pairs: list[_Pairs] = [
            [(array, batch[name]) for name, array in arrays.items()]
            for arrays, batch in zip((inputs, outputs, state), own, strict=True)
        ]
        self._read = pairs[0] + pairs[2]
        self._written = pairs[1] + pairs[2]
        self._runner = backend.bind(*own)

    def run(self, num_rows: int) -> None:
        """Evaluates the first rows; see ``Runner.run``."""
        for start in range(0, num_rows, self._batch_rows):
            end = min(start + self._batch_rows, num_rows)
            n = end - start
            for array, batch in self._read:
                batch[:n] = array[start:end]
            self._runner.run(self._batch_rows)
            for array, batch in self._written:
                array[start:end] = batch[:n]
