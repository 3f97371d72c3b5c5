"""Backends without a network, to measure everything else."""

from __future__ import annotations

from tengen import _core
from tengen.inference import Arrays, Runner
from tengen.inference.backend import NO_STATE, FloatArray, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature

__all__ = ["NO_NET", "RandomBackend", "SilentBackend"]

NO_NET = "null"
"""The value of a benchmark's ``--net`` for no network."""


class SilentBackend:
    """A ``Backend`` that leaves its answers zero, so that answering costs nothing.

    Args:
        signature: What is asked.
    """

    name = NO_NET
    version = "1"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"

    def __init__(self, signature: Signature) -> None:
        self.signature = signature

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner over these arrays; see ``Backend``."""
        check_arrays(self.signature, inputs, outputs, state)
        return _SilentRunner()


class RandomBackend(SilentBackend):
    """A ``Backend`` whose answers are random numbers, whatever its inputs are.

    Logits are in [0, 4) and values in [-1, 1), so that trees are as deep as with a
    network. Planes are written as for a network.

    Args:
        signature: What is asked.
    """

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner over these arrays; see ``Backend``."""
        super().bind(inputs, outputs, state)
        return _RandomRunner(outputs["policy"], outputs["value"])


class _SilentRunner:
    def run(self, num_rows: int) -> None:
        """Answers nothing; see ``Runner``."""


class _RandomRunner:
    def __init__(self, policy: FloatArray, value: FloatArray) -> None:
        self._policy = policy
        self._value = value
        self._num_batches = 0

    def run(self, num_rows: int) -> None:
        """Answers; see ``Runner``."""
        self._num_batches += 1
        _core.evaluate_at_random(self._policy, self._value, num_rows, self._num_batches)
