"""Inference without a network: what is left of self-play is rules, trees and files."""

from __future__ import annotations

from tengen import _core
from tengen.inference.backend import FloatArray, check_buffers
from tengen.inference.config import BatchShape, Precision

__all__ = ["NO_NET", "RandomBackend"]

NO_NET = "none"
"""What a benchmark's ``--net`` says for it."""


class RandomBackend:
    """A ``Backend`` whose answers are random numbers, whatever is asked.

    Logits are in [0, 4) and values in [-1, 1), so that trees are as deep as those of a
    network. Planes are written as for one.
    """

    name = NO_NET
    version = "1"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"
    has_score = False

    def bind(
        self,
        planes: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        score: FloatArray | None = None,
    ) -> _RandomRunner:
        """Returns a runner over these buffers; see ``Backend``."""
        check_buffers(self, planes, policy, value, score)
        return _RandomRunner(policy, value)


class _RandomRunner:
    def __init__(self, policy: FloatArray, value: FloatArray) -> None:
        self._policy = policy
        self._value = value
        self._num_batches = 0

    def run(self, num_rows: int) -> None:
        """Answers; see ``Runner``."""
        self._num_batches += 1
        _core.evaluate_at_random(self._policy, self._value, num_rows, self._num_batches)
