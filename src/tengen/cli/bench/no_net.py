"""Backends without a network, with which benchmarks measure all other costs."""

from __future__ import annotations

from tengen import _core
from tengen.inference import Arrays, Runner
from tengen.inference.backend import NO_STATE, FloatArray, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature

NO_NET = "null"
"""The value of ``--net`` that selects a backend without a network."""


class SilentBackend:
    """A ``Backend`` that never writes its outputs: an evaluation costs nothing.

    Args:
        signature: The signature of the network that the backend replaces.
    """

    name = NO_NET
    version = "1"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"

    def __init__(self, signature: Signature) -> None:
        self.signature = signature

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner that leaves ``outputs`` unchanged; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        return _SilentRunner()


class RandomBackend(SilentBackend):
    """A ``Backend`` whose outputs are random and do not depend on the inputs.

    Logits are in [0, 4) and values in [-1, 1), with which trees are about as deep as
    with a network. Callers still write planes, as for a network.

    Args:
        signature: The signature of the network that the backend replaces.
    """

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner that writes random ``outputs``; see ``Backend.bind``."""
        super().bind(inputs, outputs, state)
        return _RandomRunner(outputs["policy"], outputs["value"])


class _SilentRunner:
    def run(self, num_rows: int) -> None:
        """Does nothing; see ``Runner.run``."""


class _RandomRunner:
    def __init__(self, policy: FloatArray, value: FloatArray) -> None:
        self._policy = policy
        self._value = value
        self._num_batches = 0

    def run(self, num_rows: int) -> None:
        """Writes random outputs; see ``Runner.run``."""
        self._num_batches += 1
        _core.evaluate_at_random(self._policy, self._value, num_rows, self._num_batches)
