"""One batch size for a backend whose bits depend on the batch size.

Every batch is cut and padded to the same number of rows, so that neither the port's
size nor how full a batch is can change an answer. It costs a copy and the padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tengen.inference.backend import Backend, FloatArray, check_buffers
from tengen.inference.config import BatchShape, Precision

__all__ = ["FixedBackend"]


class FixedBackend:
    """A ``Backend`` that evaluates another one in batches of one size.

    Attributes:
        name: The other backend's.
        version: The other backend's.
        precision: The other backend's.
        batch_shape: ``fixed``.
        has_score: The other backend's.
    """

    batch_shape: BatchShape = "fixed"

    def __init__(self, backend: Backend, batch_rows: int) -> None:
        """Wraps a backend.

        Args:
            backend: What evaluates.
            batch_rows: Rows of every batch.
        """
        self.name: str = backend.name
        self.version: str = backend.version
        self.precision: Precision = backend.precision
        self.has_score: bool = backend.has_score
        self._backend = backend
        self._batch_rows = batch_rows

    def bind(
        self,
        planes: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        score: FloatArray | None = None,
    ) -> FixedRunner:
        """Returns a runner over these buffers; see ``Backend.bind``."""
        check_buffers(self, planes, policy, value, score)
        answers = [policy, value] if score is None else [policy, value, score]
        return FixedRunner(self._backend, self._batch_rows, planes, answers)


class FixedRunner:
    """A ``Runner`` with one batch of its own between the buffers and the backend."""

    def __init__(
        self,
        backend: Backend,
        batch_rows: int,
        planes: FloatArray,
        answers: Sequence[FloatArray],
    ) -> None:
        self._planes, self._answers = planes, answers
        self._batch_rows = batch_rows
        self._batch_planes, *self._batch_answers = (
            np.zeros((batch_rows, *buffer.shape[1:]), np.float32)
            for buffer in (planes, *answers)
        )
        self._runner = backend.bind(self._batch_planes, *self._batch_answers)

    def run(self, num_rows: int) -> None:
        """Evaluates ``planes[:num_rows]``; see ``Runner.run``."""
        for start in range(0, num_rows, self._batch_rows):
            end = min(start + self._batch_rows, num_rows)
            n = end - start
            self._batch_planes[:n] = self._planes[start:end]
            self._runner.run(self._batch_rows)
            for answer, batch in zip(self._answers, self._batch_answers, strict=True):
                answer[start:end] = batch[:n]
