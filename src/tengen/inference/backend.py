"""The seam between callers and networks: ports ask, runners answer, a driver drives.

A port owns three buffers and knows what to evaluate; a runner is bound to these
buffers once and fills the answers in place. Neither knows the other.

Legend: N rows of a port, n rows of one batch, C planes, H W board, A actions. A score
is the mean and the standard deviation of the final score, in points to play.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tengen.inference.config import BatchShape, Precision
from tengen.inference.rows import RowLayout

__all__ = [
    "Backend",
    "Batches",
    "DriveStats",
    "FloatArray",
    "Lane",
    "LaneBackend",
    "Port",
    "Runner",
    "SearchPort",
    "bind_port",
    "check_buffers",
    "drive",
]

FloatArray = NDArray[np.float32]


class Batches(Protocol):
    """Hands out batches, one at a time. Used by one thread."""

    def next(self) -> int:
        """Returns the rows to evaluate, 0 when finished.

        Blocks while the callers work, without the GIL.
        """

    def done(self) -> None:
        """Takes the answers to the rows that ``next`` returned."""


class Port(Batches, Protocol):
    """The batches of one caller, in buffers of its own. Used by one thread."""

    @property
    def planes(self) -> FloatArray:
        """``[N, C, H, W]`` float32, what to evaluate; the port fills it."""

    @property
    def policy(self) -> FloatArray:
        """``[N, A]`` float32, logits; the runner fills it."""

    @property
    def value(self) -> FloatArray:
        """``[N]`` float32 in [-1, 1] to play; the runner fills it."""


class SearchPort(Port, Protocol):
    """A port of searches, whose evaluations may need a score."""

    @property
    def score(self) -> FloatArray | None:
        """``[N, 2]`` float32, scores; None where the port does not ask for them."""


class Runner(Protocol):
    """Evaluates rows of the buffers it was bound to. Used by one thread."""

    def run(self, num_rows: int) -> None:
        """Fills the answers' first rows, ``policy[:num_rows]``, from the planes'.

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
        """Whether every batch has the same number of rows inside."""

    @property
    def has_score(self) -> bool:
        """Whether it answers with scores."""

    def bind(
        self,
        planes: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        score: FloatArray | None = None,
    ) -> Runner:
        """Returns a runner over these buffers; they are kept alive, never copied.

        Args:
            planes: ``[N, C, H, W]`` float32, or ``[N, C]`` for a vector network;
                C-contiguous.
            policy: ``[N, A]`` float32, C-contiguous, written to.
            value: ``[N]`` float32, written to.
            score: ``[N, 2]`` float32, C-contiguous, written to; None to do without.

        Raises:
            ValueError: A buffer has another dtype, layout or number of rows, or there
                is one for scores and the backend has none.
        """


class Lane(Runner, Protocol):
    """A runner with a batch of its own, which a device copies by itself."""

    @property
    def rows(self) -> NDArray[np.uint8]:
        """``[N, layout.num_bytes]``, what to evaluate."""

    @property
    def policy(self) -> FloatArray:
        """``[N, A]`` float32, logits."""

    @property
    def value(self) -> FloatArray:
        """``[N]`` float32 in [-1, 1] to play."""

    @property
    def score(self) -> FloatArray | None:
        """``[N, 2]`` float32; None where the backend has no scores."""

    @property
    def device(self) -> int:
        """The device's place among the backend's."""


@runtime_checkable
class LaneBackend(Backend, Protocol):
    """A backend on devices, best fed with large batches of many callers."""

    @property
    def num_devices(self) -> int:
        """How many devices."""

    @property
    def max_rows(self) -> int:
        """The largest batch of a lane."""

    @property
    def notes(self) -> list[str]:
        """What the user should know, a line each."""

    def rate(self, num_rows: int, seconds: float) -> float:
        """Returns evaluations per second of the network alone on the first device."""

    def open_lanes(self, layout: RowLayout, num_rows: int) -> Sequence[Lane]:
        """Returns lanes of one size for self-play, some a device.

        Args:
            layout: Of the rows.
            num_rows: Rows of a lane; they may get fewer.

        Raises:
            RunError: A device has no memory for the smallest batch.
        """


def bind_port(backend: Backend, port: SearchPort) -> Runner:
    """Returns a runner over a port's buffers; scores where both sides have them."""
    score = port.score if backend.has_score else None
    return backend.bind(port.planes, port.policy, port.value, score)


def check_buffers(
    backend: Backend,
    planes: FloatArray,
    policy: FloatArray,
    value: FloatArray,
    score: FloatArray | None,
) -> None:
    """Raises ValueError unless the buffers are what ``Backend.bind`` asks for."""
    num_rows = len(planes)
    wanted: list[tuple[str, FloatArray, tuple[int, ...]]] = [
        ("planes", planes, (2, 4)),
        ("policy", policy, (2,)),
        ("value", value, (1,)),
    ]
    if score is not None:
        if not backend.has_score:
            raise ValueError(
                f"score ({score.shape}) must be None where the backend has none; open "
                f"it with scores"
            )
        wanted.append(("score", score, (2,)))
    for name, array, num_axes in wanted:
        if (
            array.dtype != np.float32
            or array.ndim not in num_axes
            or len(array) != num_rows
            or not array.flags.c_contiguous
        ):
            raise ValueError(
                f"{name} ({array.dtype} {array.shape}) must be float32 and contiguous "
                f"with {' or '.join(map(str, num_axes))} axes and {num_rows} rows; "
                f"allocate it so"
            )
    if num_rows == 0:
        raise ValueError("planes (0 rows) must have rows; allocate at least one")


@dataclass
class DriveStats:
    """Where a driver's time went; the driver adds, others may read."""

    inference_s: float = 0.0
    """Seconds inside the runner."""
    port_s: float = 0.0
    """Seconds inside the port: trees, environments, encoding."""
    num_evaluations: int = 0
    """Rows evaluated."""
    num_batches: int = 0
    """Batches evaluated."""


def drive(port: Batches, runner: Runner, stats: DriveStats | None = None) -> DriveStats:
    """Evaluates what the port asks for until it is finished. Blocks.

    Args:
        port: Where batches come from.
        runner: Bound to the port's buffers.
        stats: Added to after every batch; a fresh one by default.

    Returns:
        The stats.

    Raises:
        Exception: What the port or the runner raised.
    """
    stats = stats or DriveStats()
    clock = time.perf_counter
    start_s = clock()
    while num_rows := port.next():
        asked_s = clock()
        runner.run(num_rows)
        answered_s = clock()
        port.done()
        stats.inference_s += answered_s - asked_s
        stats.port_s += asked_s - start_s
        stats.num_evaluations += num_rows
        stats.num_batches += 1
        start_s = answered_s
    return stats
