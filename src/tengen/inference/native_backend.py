"""Inference with the core's own evaluation, for networks that have one.

The core reads a model's weights, and needs neither OpenVINO nor torch. Its outputs are
bitwise equal for all batches and instruction sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tengen import _core
from tengen.errors import UsageError
from tengen.inference.architecture import Architecture, answered, read_architecture
from tengen.inference.backend import NO_STATE, Arrays, check_arrays
from tengen.inference.config import BatchShape, Precision

if TYPE_CHECKING:
    from tengen.nets import Net


class NativeBackend:
    """A ``Backend`` that evaluates a network in the core.

    Attributes:
        name: ``native``.
        version: Version of the arithmetic.
        precision: ``fp32``.
        batch_shape: ``dynamic``.
        signature: The network's inputs and requested outputs.
    """

    name = "native"
    version = "1"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"

    def __init__(
        self, source: Path | Net, *, outputs: Sequence[str] | None = None
    ) -> None:
        """Builds the network, which takes about 0.05 s.

        Args:
            source: A model directory, or a network in memory.
            outputs: As for ``tengen.inference.open_backend``.

        Raises:
            UsageError: A file is missing or damaged, or the network is of another kind.
        """
        if isinstance(source, Path):
            name = str(source)
            architecture = read_architecture(source)
            weights = _read(source)
        else:
            name = "of this process"
            architecture = Architecture(net=source.config, signature=source.signature)
            state = source.state_dict()
            weights = {name: value.cpu().numpy() for name, value in state.items()}
        self.signature = answered(architecture.signature, outputs)
        board = architecture.signature.board
        if board is None:
            raise UsageError(f"model ({name}) has no board; choose another backend")
        try:
            self._net = architecture.net.evaluator(board, weights)
        except (UsageError, _core.CoreError) as error:
            raise UsageError(f"model ({name}) cannot be built: {error}") from error

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> NativeRunner:
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        return NativeRunner(self._net, inputs["planes"], outputs)


class NativeRunner:
    """A ``Runner`` that evaluates rows in the core."""

    def __init__(self, net: Any, planes: NDArray[Any], outputs: Arrays) -> None:
        """Binds a network to arrays; outputs that were not requested are discarded."""
        num_rows, _, height, width = planes.shape
        policy, value = outputs.get("policy"), outputs.get("value")
        self._net = net
        self._planes = planes
        self._policy = (
            np.empty((num_rows, height * width), np.float32)
            if policy is None
            else policy
        )
        self._value = np.empty(num_rows, np.float32) if value is None else value

    def run(self, num_rows: int) -> None:
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
        self._net.evaluate(self._planes, self._policy, self._value, num_rows)


def _read(directory: Path) -> dict[str, NDArray[Any]]:
    try:
        return load_file(directory / "weights.safetensors")
    # An unknown dtype is a TypeError.
    except (OSError, SafetensorError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"model ({directory}) cannot be read: {reason}; restore it, or export it "
            "again"
        ) from error
