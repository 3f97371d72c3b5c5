"""The interface between callers and networks: ports, runners, and the driver loop.

A port owns named arrays and fills them with rows to evaluate. A runner is bound to the
same arrays, and writes the outputs in place. Neither depends on the other. The
backend's ``Signature`` defines names and shapes of the arrays.

Legend: N rows of a port, n rows of one batch, C planes, H W board, A actions. A score
is the mean and the standard deviation of the final score, in points for the side to
move.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature, TensorSpec

__all__ = [
    "NO_STATE",
    "Arrays",
    "Backend",
    "Batches",
    "DriveStats",
    "FloatArray",
    "Lane",
    "LaneBackend",
    "Port",
    "RowLayout",
    "Runner",
    "SearchPort",
    "allocate",
    "bind_port",
    "check_arrays",
    "drive",
    "search_outputs",
]

FloatArray = NDArray[np.float32]

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays ``[N, ...]`` by the names of a signature."""

NO_STATE: Arrays = MappingProxyType({})
"""The state of a network without memory."""

_FLOAT_BYTES = 4
_WORD_BITS = 32


class Batches(Protocol):
    """Provides batches, one at a time. Used by one thread."""

    def next(self) -> int:
        """Returns the number of rows to evaluate, 0 when finished.

        Blocks without the GIL until the callers have a batch.
        """

    def done(self) -> None:
        """Processes the outputs for the rows of the last ``next``."""


@runtime_checkable
class Port(Batches, Protocol):
    """The batches of one caller, in its own arrays. Used by one thread."""

    @property
    def inputs(self) -> Arrays:
        """The inputs to evaluate; the port fills them."""

    @property
    def outputs(self) -> Arrays:
        """The outputs; the runner fills them."""

    @property
    def state(self) -> Arrays:
        """The recurrent state of each row; the runner replaces it by the next state.

        The port zeroes a row's state at the start of an episode. Empty for a network
        without memory.
        """


class SearchPort(Batches, Protocol):
    """A port for the core's searches."""

    @property
    def planes(self) -> FloatArray:
        """``[N, C, H, W]`` float32, the planes to evaluate; the port fills them."""

    @property
    def policy(self) -> FloatArray:
        """``[N, A]`` float32, logits; the runner fills it."""

    @property
    def value(self) -> FloatArray:
        """``[N]`` float32 in [-1, 1] for the side to move; the runner fills it."""

    @property
    def score(self) -> FloatArray | None:
        """``[N, 2]`` float32, scores; None if the port does not need them."""


class Runner(Protocol):
    """Evaluates rows of the arrays that it is bound to. Used by one thread."""

    def run(self, num_rows: int) -> None:
        """Fills the rows ``[:num_rows]`` of the outputs and of the state.

        The other rows are unspecified afterwards. Blocks without the GIL.

        Args:
            num_rows: Number of rows to evaluate, 1 to N.
        """


class Backend(Protocol):
    """A compiled model. ``bind`` may be called from any thread."""

    @property
    def name(self) -> str:
        """``openvino`` or ``torch``."""

    @property
    def version(self) -> str:
        """The library's version, on which the exact bits of the outputs depend."""

    @property
    def precision(self) -> Precision:
        """Precision of the trunk's arithmetic."""

    @property
    def batch_shape(self) -> BatchShape:
        """Whether batches are evaluated with a fixed number of rows."""

    @property
    def signature(self) -> Signature:
        """The inputs, the requested outputs, and the state.

        Networks accept boards of other sizes too, unless the policy layout is flat.
        """

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner over the given arrays, which it references without copying.

        Args:
            inputs: All of the signature's inputs, C-contiguous arrays ``[N, ...]``.
            outputs: Some or all of the signature's outputs, of the same form; written.
            state: All of the signature's state, of the same form; read and written.

        Raises:
            ValueError: A name is missing or unknown, or an array has another dtype,
                shape, layout or number of rows.
        """


@dataclass(frozen=True)
class RowLayout:
    """The format in which positions are sent to a device, which unpacks them.

    core/inference/packed_rows.h defines the format and writes the rows.
    """

    planes_shape: tuple[int, int, int]
    """The numbers C, H and W of planes, rows and columns."""
    is_packed: bool = True
    """Whether a row has one bit per entry and one scale per plane, which suffices for
    native games; otherwise entries are float32 and may be any numbers."""

    @property
    def num_entries(self) -> int:
        """Number of entries in all planes."""
        num_planes, height, width = self.planes_shape
        return num_planes * height * width

    @property
    def num_bytes(self) -> int:
        """Size of a row in bytes, a multiple of 4."""
        if not self.is_packed:
            return self.num_entries * _FLOAT_BYTES
        num_words = -(-self.num_entries // _WORD_BITS)
        return (self.planes_shape[0] + num_words) * _FLOAT_BYTES


class Lane(Runner, Protocol):
    """A runner with its own memory for a batch, which the device copies directly."""

    @property
    def rows(self) -> NDArray[np.uint8]:
        """``[N, layout.num_bytes]``, the rows to evaluate."""

    @property
    def outputs(self) -> Arrays:
        """The outputs, by the names of the backend's signature."""

    @property
    def device(self) -> int:
        """The index of the lane's device among the backend's devices."""


@runtime_checkable
class LaneBackend(Backend, Protocol):
    """A backend on GPUs, which is fastest with large batches from many callers."""

    @property
    def num_devices(self) -> int:
        """Number of devices."""

    @property
    def max_rows(self) -> int:
        """Maximum number of rows in a lane's batch."""

    @property
    def notes(self) -> list[str]:
        """Messages for the user, one line per message."""

    def rate(self, num_rows: int, seconds: float) -> float:
        """Measures evaluations per second on the first device, without copies."""

    def open_lanes(self, layout: RowLayout, num_rows: int) -> Sequence[Lane]:
        """Returns lanes of equal size for self-play, several per device.

        Args:
            layout: Layout of the rows.
            num_rows: Maximum number of rows in a lane; lanes may have fewer.

        Raises:
            RunError: A device has no memory for the smallest batch.
        """


def allocate(specs: Mapping[str, TensorSpec], num_rows: int) -> dict[str, NDArray[Any]]:
    """Returns arrays of zeros ``[num_rows, ...]`` for inputs, outputs or state."""
    return {name: spec.zeros(num_rows) for name, spec in specs.items()}


def search_outputs(*, scores: bool) -> tuple[str, ...]:
    """Returns the names of the outputs that searches need from a network.

    Args:
        scores: Whether to include the score, if the network estimates it.
    """
    return ("policy", "value", "score") if scores else ("policy", "value")


def bind_port(backend: Backend, port: Port | SearchPort) -> Runner:
    """Returns a runner over a port's arrays, with scores if both sides have them."""
    if isinstance(port, Port):
        return backend.bind(port.inputs, port.outputs, port.state)
    outputs = {"policy": port.policy, "value": port.value}
    if port.score is not None and "score" in backend.signature.outputs:
        outputs["score"] = port.score
    return backend.bind({"planes": port.planes}, outputs)


def check_arrays(
    signature: Signature, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
) -> None:
    """Raises ValueError unless the arrays meet the requirements of ``Backend.bind``."""
    for kind, wanted, found in (
        ("inputs", signature.inputs, inputs),
        ("outputs", signature.outputs, outputs),
        ("state", signature.state, state),
    ):
        if unknown := sorted(found.keys() - wanted.keys()):
            raise ValueError(
                f"{kind} ({unknown[0]}) must be of {', '.join(wanted) or 'none'}; "
                f"leave it out, or open the model with it"
            )
        missing = wanted.keys() - found.keys()
        if (kind != "outputs" and missing) or (wanted and not found):
            raise ValueError(
                f"{kind} ({', '.join(found) or 'none'}) must have {min(missing)}; "
                f"add an array for it"
            )
    num_rows = max((len(a) for a in inputs.values() if a.ndim), default=0)
    if num_rows == 0:
        raise ValueError("inputs (0 rows) must have rows; allocate at least one")
    specs = {**signature.inputs, **signature.outputs, **signature.state}
    for name, array in {**inputs, **outputs, **state}.items():
        spec = specs[name]
        if (
            array.dtype != spec.dtype
            or array.ndim == 0
            or len(array) != num_rows
            or not _fits(signature, spec, array.shape[1:])
            or not array.flags.c_contiguous
        ):
            raise ValueError(
                f"{name} ({array.dtype} {array.shape}) must be {spec.dtype} and "
                f"contiguous with {num_rows} rows of {spec.shape}; allocate it so"
            )


def _fits(signature: Signature, spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    """Returns whether a shape is that of ``spec``, for any accepted board size."""
    board = signature.board
    if board is None or board.policy_layout == "flat":
        return shape == spec.shape
    if spec is signature.inputs.get("planes"):
        return len(shape) == len(spec.shape) and shape[0] == spec.shape[0]
    if spec is signature.outputs.get("policy"):
        return len(shape) == 1
    return shape == spec.shape


@dataclass
class DriveStats:
    """Timing statistics, updated by the driver; other threads may read them."""

    inference_s: float = 0.0
    """Seconds spent in the runner."""
    port_s: float = 0.0
    """Seconds spent in the port: searches, environments, encoding."""
    num_evaluations: int = 0
    """Number of rows evaluated."""
    num_batches: int = 0
    """Number of batches evaluated."""


def drive(port: Batches, runner: Runner, stats: DriveStats | None = None) -> DriveStats:
    """Evaluates a port's batches until the port is finished. Blocks.

    Args:
        port: The port, which provides batches.
        runner: A runner bound to the port's arrays.
        stats: Statistics to add to after every batch; new ones by default.

    Returns:
        The statistics.

    Raises:
        Exception: Any exception of the port or the runner.
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
    stats.port_s += clock() - start_s
    return stats
