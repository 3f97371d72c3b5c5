"""The interface between callers and networks: ports, runners, and the driver loop.

A port owns named arrays and fills them with rows to evaluate. A runner is bound to the
same arrays, and writes the network's outputs in place. Ports and runners do not depend
on each other. The backend's ``Signature`` defines the arrays' names and shapes.

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

FloatArray = NDArray[np.float32]

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays of shape ``[N, ...]``, by their names in a network's signature."""

NO_STATE: Arrays = MappingProxyType({})
"""The recurrent state of a network that has none."""

_FLOAT_BYTES = 4
_WORD_BITS = 32


class Batches(Protocol):
    """Provides inference batches, one at a time. Used by one thread."""

    def next(self) -> int:
        """Returns the number of rows in the next batch, or 0 if there is none left.

        Blocks without the GIL until a batch is ready.
        """

    def done(self) -> None:
        """Processes the network's outputs for the batch that ``next`` announced."""


@runtime_checkable
class Port(Batches, Protocol):
    """Batches in the arrays of one caller of inference. Used by one thread."""

    @property
    def inputs(self) -> Arrays:
        """The network's inputs by name, which the port writes."""

    @property
    def outputs(self) -> Arrays:
        """The network's outputs by name, which the runner writes."""

    @property
    def state(self) -> Arrays:
        """The recurrent state of each row, which the runner replaces by the next state.

        The port zeroes a row's state at the start of an episode. Empty for a network
        without recurrent state.
        """


class SearchPort(Batches, Protocol):
    """A port of the core, whose rows are leaves of searches."""

    @property
    def planes(self) -> FloatArray:
        """``[N, C, H, W]`` float32, the input planes, which the port writes."""

    @property
    def policy(self) -> FloatArray:
        """``[N, A]`` float32, the policy logits, which the runner writes."""

    @property
    def value(self) -> FloatArray:
        """``[N]`` float32, in [-1, 1] for the side to move; the runner writes it."""

    @property
    def score(self) -> FloatArray | None:
        """``[N, 2]`` float32, the scores; None if the port does not need scores."""


class Runner(Protocol):
    """Evaluates the network on rows of the arrays bound to it. Used by one thread."""

    def run(self, num_rows: int) -> None:
        """Writes the first ``num_rows`` rows of the outputs and of the recurrent state.

        The contents of other rows are then unspecified. Blocks without the GIL.

        Args:
            num_rows: Number of rows to evaluate, 1 to N.
        """


class Backend(Protocol):
    """A compiled model. ``bind`` may be called from any thread."""

    @property
    def name(self) -> str:
        """Name of the inference library: ``openvino``, ``torch`` or ``native``."""

    @property
    def version(self) -> str:
        """Version of the inference library, which affects the bits of the outputs."""

    @property
    def precision(self) -> Precision:
        """Arithmetic precision of the network's trunk."""

    @property
    def batch_shape(self) -> BatchShape:
        """Whether the number of rows of evaluated batches is fixed or dynamic."""

    @property
    def signature(self) -> Signature:
        """The signature of the network, with only the requested outputs.

        Networks accept boards of other sizes too, unless the policy layout is flat.
        """

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner that evaluates the given arrays in place, without copies.

        Args:
            inputs: All of the signature's inputs, C-contiguous arrays ``[N, ...]``.
            outputs: Some or all of the signature's outputs, C-contiguous ``[N, ...]``;
                written by the runner.
            state: The signature's complete state, C-contiguous ``[N, ...]``; read and
                written by the runner.

        Raises:
            ValueError: A name is missing or unknown, or an array has the wrong dtype,
                shape, layout or number of rows.
        """


@dataclass(frozen=True)
class RowLayout:
    """The format of the rows in which positions are sent to a device.

    core/inference/packed_rows.h defines the format and writes the rows.
    """

    planes_shape: tuple[int, int, int]
    """Number C of planes, and height H and width W of the board."""
    is_packed: bool = True
    """Whether a row has one bit per entry and one scale per plane, which suffices for
    native games. Otherwise, entries are float32."""

    @property
    def num_entries(self) -> int:
        """Number of entries of a position, C * H * W."""
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
    """A runner with buffers for one batch, in memory that the device can access."""

    @property
    def rows(self) -> NDArray[np.uint8]:
        """``[N, layout.num_bytes]`` uint8, the rows, which the caller writes."""

    @property
    def outputs(self) -> Arrays:
        """The network's outputs, by their names in the backend's signature."""

    @property
    def device(self) -> int:
        """The index of the lane's device among the backend's devices."""


@runtime_checkable
class LaneBackend(Backend, Protocol):
    """A backend on GPUs, whose lanes evaluate large batches from many threads."""

    @property
    def num_devices(self) -> int:
        """Number of devices that the backend uses."""

    @property
    def max_rows(self) -> int:
        """Maximum number of rows in a lane's batch."""

    @property
    def notes(self) -> list[str]:
        """Messages for the user, such as reduced batch sizes, one line per message."""

    def rate(self, num_rows: int, seconds: float) -> float:
        """Returns rows per second on the first device, measured without copies."""

    def open_lanes(self, layout: RowLayout, num_rows: int) -> Sequence[Lane]:
        """Returns lanes of equal size for self-play, several per device.

        Args:
            layout: Format of the rows.
            num_rows: Desired number of rows per lane; the lanes may have fewer.

        Raises:
            RunError: A device has too little memory for the smallest batch.
        """


def allocate(specs: Mapping[str, TensorSpec], num_rows: int) -> dict[str, NDArray[Any]]:
    """Returns an array of zeros ``[num_rows, ...]`` for each spec, by name."""
    return {name: spec.zeros(num_rows) for name, spec in specs.items()}


def search_outputs(*, scores: bool) -> tuple[str, ...]:
    """Returns the names of the network outputs that searches need.

    Args:
        scores: Whether to include the outputs that estimate the score.
    """
    return ("policy", "value", "score") if scores else ("policy", "value")


def bind_port(backend: Backend, port: Port | SearchPort) -> Runner:
    """Returns a runner over a port's arrays; omits scores that the network lacks."""
    if isinstance(port, Port):
        return backend.bind(port.inputs, port.outputs, port.state)
    outputs = {"policy": port.policy, "value": port.value}
    if port.score is not None and "score" in backend.signature.outputs:
        outputs["score"] = port.score
    return backend.bind({"planes": port.planes}, outputs)


def check_arrays(
    signature: Signature, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
) -> None:
    """Raises ValueError if the arrays violate the requirements of ``Backend.bind``."""
    for kind, wanted, found in (
        ("inputs", signature.inputs, inputs),
        ("outputs", signature.outputs, outputs),
        ("state", signature.state, state),
    ):
        if unknown := sorted(found.keys() - wanted.keys()):
            raise ValueError(
                f"{kind} ({unknown[0]}) must be one of {', '.join(wanted) or 'none'}; "
                "leave it out, or open the model with it"
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
    """Returns whether ``shape`` matches ``spec``, for any supported board size."""
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
    """Counters of a driver, which updates them; other threads may read them."""

    inference_s: float = 0.0
    """Seconds spent evaluating the network."""
    port_s: float = 0.0
    """Seconds spent in the port, such as in searches or environment steps."""
    num_evaluations: int = 0
    """Number of rows evaluated by the network."""
    num_batches: int = 0
    """Number of batches evaluated by the network."""


def drive(port: Batches, runner: Runner, stats: DriveStats | None = None) -> DriveStats:
    """Evaluates batches until ``port.next`` returns 0. Blocks.

    Args:
        port: The port, which provides batches.
        runner: A runner bound to the port's arrays.
        stats: Counters to increment after every batch; None to create them.

    Returns:
        The counters.

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
