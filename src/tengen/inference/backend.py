"""The seam between callers and networks: ports ask, runners answer, a driver drives.

A port owns three buffers and knows what to evaluate; a runner is bound to these
buffers once and fills the answers in place. Neither knows the other.

Legend: N rows of a port, n rows of one batch, C planes, H W board, A actions.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.inference.config import BatchShape, Precision

__all__ = ["Backend", "FloatArray", "Port", "Runner", "check_buffers", "drive"]

FloatArray = NDArray[np.float32]


class Port(Protocol):
    """Hands out batches of one caller, one at a time. Used by one thread."""

    @property
    def planes(self) -> FloatArray:
        """``[N, C, H, W]`` float32, what to evaluate; the port fills it."""

    @property
    def policy(self) -> FloatArray:
        """``[N, A]`` float32, logits; the runner fills it."""

    @property
    def value(self) -> FloatArray:
        """``[N]`` float32 in [-1, 1] to play; the runner fills it."""

    def next(self) -> int:
        """Fills ``planes[:n]`` and returns n, 0 when finished.

        The answers to the batch before are taken in first. Blocks while the caller
        works, without the GIL.
        """

    def done(self) -> None:
        """Ends the port after ``next`` returned 0 or the driver failed."""


class Runner(Protocol):
    """Evaluates rows of the buffers it was bound to. Used by one thread."""

    def run(self, num_rows: int) -> None:
        """Fills ``policy[:num_rows]`` and ``value[:num_rows]`` from the planes.

        Rows beyond ``num_rows`` are unspecified afterwards. Blocks, without the GIL.

        Args:
            num_rows: 1 to N.
        """


class Backend(Protocol):
    """One model, compiled. ``bind`` may be called from any thread."""

    @property
    def name(self) -> str:
        """``openvino`` or ``torch``."""

    @property
    def version(self) -> str:
        """The library's version; with the machine it settles the bits."""

    @property
    def precision(self) -> Precision:
        """Arithmetic of the trunk."""

    @property
    def batch_shape(self) -> BatchShape:
        """Whether runners pad every batch to all N rows."""

    def bind(self, planes: FloatArray, policy: FloatArray, value: FloatArray) -> Runner:
        """Returns a runner over these buffers; they are kept alive, never copied.

        Args:
            planes: ``[N, C, H, W]`` float32, C-contiguous.
            policy: ``[N, A]`` float32, C-contiguous, written to.
            value: ``[N]`` float32, written to.

        Raises:
            ValueError: A buffer has another dtype, layout or number of rows.
        """


def check_buffers(planes: FloatArray, policy: FloatArray, value: FloatArray) -> None:
    """Raises ValueError unless the buffers are what ``Backend.bind`` asks for."""
    num_rows = len(planes)
    wanted = (("planes", planes, 4), ("policy", policy, 2), ("value", value, 1))
    for name, array, num_axes in wanted:
        if (
            array.dtype != np.float32
            or array.ndim != num_axes
            or len(array) != num_rows
            or not array.flags.c_contiguous
        ):
            raise ValueError(
                f"{name} ({array.dtype} {array.shape}) must be float32 and contiguous "
                f"with {num_axes} axes and {num_rows} rows; allocate it so"
            )
    if num_rows == 0:
        raise ValueError("planes (0 rows) must have rows; allocate at least one")


def drive(port: Port, runner: Runner) -> int:
    """Evaluates what the port asks for until it is finished. Blocks.

    Args:
        port: Where batches come from.
        runner: Bound to the port's buffers.

    Returns:
        How many rows were evaluated.

    Raises:
        Exception: What ``next`` or ``run`` raised; ``done`` was called all the same.
    """
    num_evaluations = 0
    try:
        while num_rows := port.next():
            runner.run(num_rows)
            num_evaluations += num_rows
    finally:
        port.done()
    return num_evaluations
