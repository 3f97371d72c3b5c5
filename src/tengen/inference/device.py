"""Devices: host memory, recorded functions, lanes, and a network's programs.

``CudaDevice`` is the GPU. Tests have the CPU as another device, so that the code around
a GPU is tested without one.

Legend: a lane is one batch under way. Its copies to and from the device have their own
stream, and all lanes compute on one stream. So copies of one lane overlap with the
computation of another, and the memory for a computation is needed only once. A program
computes the answers to n rows, unpacking included, and is recorded once for each batch
size. Programs of a device use the same memory, one at a time.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tengen.inference.backend import RowLayout
from tengen.inference.torch_backend import LoadedHead
from tengen.tensors import Signature, TensorSpec

__all__ = [
    "MIN_BUCKET_ROWS",
    "Batch",
    "CudaDevice",
    "Device",
    "Lane",
    "Programs",
    "Step",
    "bucket_for",
    "bucket_sizes",
    "rate",
    "unpack_rows",
]

Step = Callable[[], None]

MIN_BUCKET_ROWS = 8
"""The smallest batch size: a device takes as long for fewer rows."""

_WARM_UP_CALLS = 3
_MIN_WORK_S = 0.03
_FLOAT_BYTES = 4

_Zeros = Callable[[tuple[int, ...], torch.dtype], Tensor]


class Lane(Protocol):
    """Runs one batch after another, each in order. Used by one thread."""

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        """Does the steps in order. Blocks until the last is done, without the GIL.

        Each step only hands work to the device. The device makes sure that one thread
        at a time calls ``compute``.
        """


class Device(Protocol):
    """One device. Threads may share it."""

    @property
    def where(self) -> torch.device:
        """The device, as torch names it."""

    @property
    def has_bf16(self) -> bool:
        """Whether it multiplies bfloat16 in hardware."""

    def host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns zeros in the host's memory that the device can copy by itself."""

    def record(self, function: Step) -> Step:
        """Records a function; the result launches all of its work at once.

        The tensors that ``function`` reads and writes must keep their memory, and it
        must keep no others. Only one thread at a time may record or call the result.

        Args:
            function: A function on tensors of the device.

        Raises:
            torch.OutOfMemoryError: The function needs more memory than there is.
        """

    def lane(self) -> Lane:
        """Returns a new lane."""

    def synchronize(self) -> None:
        """Blocks until the device has nothing to do."""


class CudaDevice:
    """A GPU. Functions are recorded as CUDA graphs, which share one pool of memory.

    Sharing is safe because all graphs run on one stream and none keeps a result in the
    pool.
    """

    def __init__(self, name: str) -> None:
        self.where = torch.device(name)
        self._lock = threading.Lock()
        self._stream = _stream(self.where)
        with torch.cuda.device(self.where):
            self._pool = torch.cuda.graph_pool_handle()

    @property
    def has_bf16(self) -> bool:
        """See ``Device``."""
        with torch.cuda.device(self.where):
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))

    def host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns pinned memory."""
        return torch.zeros(shape, dtype=dtype, pin_memory=True)

    def record(self, function: Step) -> Step:
        """Runs the function a few times, which chooses kernels, and then records it."""
        graph = torch.cuda.CUDAGraph()
        with (
            torch.cuda.device(self.where),
            torch.backends.cudnn.flags(
                enabled=True, benchmark=True, allow_tf32=torch.backends.cudnn.allow_tf32
            ),
        ):
            # Work on the default stream must have ended first.
            torch.cuda.synchronize()
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UP_CALLS):
                    function()
            torch.cuda.synchronize()
            with torch.cuda.graph(
                graph,
                pool=self._pool,
                stream=self._stream,
                capture_error_mode="thread_local",
            ):
                function()

        def launch() -> None:
            with torch.cuda.stream(self._stream):
                graph.replay()

        return launch

    def lane(self) -> Lane:
        """See ``Device``."""
        return _CudaLane(self.where, self._stream, self._lock)

    def synchronize(self) -> None:
        """See ``Device``."""
        torch.cuda.synchronize(self.where)


class _CudaLane:
    def __init__(
        self, name: torch.device, compute: torch.cuda.Stream, lock: threading.Lock
    ) -> None:
        self._compute = compute
        self._lock = lock
        # torch hands out 32 streams of each priority in turn. With another priority
        # this is never the stream that computes.
        self._copies = _stream(name, priority=-1)
        with torch.cuda.device(name):
            self._arrived = _event()
            self._computed = _event()
            # A waiting thread sleeps, so that its core is free for the trees.
            self._returned = _event(blocking=True)

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        with torch.cuda.stream(self._copies):
            copy_in()
            self._arrived.record()
        # Steps of two lanes must not mix, because they share the graphs' memory.
        with self._lock, torch.cuda.stream(self._compute):
            self._compute.wait_event(self._arrived)
            compute()
            self._computed.record()
        with torch.cuda.stream(self._copies):
            self._copies.wait_event(self._computed)
            copy_out()
            self._returned.record()
        self._returned.synchronize()


def _stream(where: torch.device, priority: int = 0) -> torch.cuda.Stream:
    return torch.cuda.Stream(where, priority)  # type: ignore[no-untyped-call]


def _event(*, blocking: bool = False) -> torch.cuda.Event:
    return torch.cuda.Event(blocking=blocking)  # type: ignore[no-untyped-call]


class Batch(NamedTuple):
    """Memory for rows and their answers."""

    rows: Tensor
    """``[N, layout.num_bytes]`` uint8."""
    answers: dict[str, Tensor]
    """``[N, ...]`` by name, in the order of the signature's outputs."""

    @classmethod
    def on_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns zeros in the device's memory."""
        return cls._made(_zeros_on(device), layout, num_rows, signature)

    @classmethod
    def beside_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns zeros in the host's memory that the device can copy by itself."""
        return cls._made(device.host_memory, layout, num_rows, signature)

    @classmethod
    def _made(
        cls, zeros: _Zeros, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        rows = zeros((num_rows, layout.num_bytes), torch.uint8)
        return cls(rows, _made_of(zeros, signature.outputs, num_rows))


def _zeros_on(device: Device) -> _Zeros:
    def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device.where)

    return zeros


def _made_of(
    zeros: _Zeros, specs: dict[str, TensorSpec], num_rows: int
) -> dict[str, Tensor]:
    return {
        name: zeros((num_rows, *spec.shape), _dtype(spec))
        for name, spec in specs.items()
    }


def _dtype(spec: TensorSpec) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, spec.dtype)).dtype


class Programs:
    """The programs of one network.

    Args:
        loaded: The network, on the device; planes are its only input.
        device: The device.
        layout: Layout of the rows.
        max_rows: The largest batch.

    Raises:
        torch.OutOfMemoryError: The largest batch needs more memory than there is.
    """

    def __init__(
        self,
        loaded: LoadedHead,
        device: Device,
        layout: RowLayout,
        max_rows: int,
    ) -> None:
        self._head = loaded.head
        self._layout = layout
        self._batch = Batch.on_device(device, layout, max_rows, loaded.signature)
        self._sizes = bucket_sizes(max_rows)
        # The largest first, so that the others reuse its memory.
        self._launch: dict[int, Step] = {
            size: device.record(self._program(size)) for size in reversed(self._sizes)
        }

    def run(self, num_rows: int, batch: Batch) -> None:
        """Starts to answer the first rows of a batch on the device; does not wait."""
        n = num_rows
        self._batch.rows[:n].copy_(batch.rows[:n])
        self._launch[bucket_for(n, self._sizes)]()
        for name, to in batch.answers.items():
            to[:n].copy_(self._batch.answers[name][:n])

    def _program(self, size: int) -> Step:
        rows = self._batch.rows[:size]
        answers = [answer[:size] for answer in self._batch.answers.values()]

        def program() -> None:
            with torch.inference_mode():
                _copy(self._head(unpack_rows(rows, self._layout)), answers)

        return program


def _copy(found: Iterable[Tensor], to: Iterable[Tensor]) -> None:
    for place, answer in zip(to, found, strict=True):
        place.copy_(answer)


def rate(
    loaded: LoadedHead,
    device: Device,
    num_rows: int,
    seconds: float,
) -> float:
    """Returns evaluations per second of the network alone, without copies or unpacking.

    This is the upper bound for everything around the network. Blocks for about
    ``seconds``.

    Raises:
        torch.OutOfMemoryError: The batch needs more memory than there is.
    """
    head, signature = loaded
    generator = torch.Generator().manual_seed(0)
    read: list[Tensor] = []
    for spec in (*signature.inputs.values(), *signature.state.values()):
        shape = (num_rows, *spec.shape)
        rows = torch.randint(0, 2, shape, generator=generator).to(_dtype(spec))
        if signature.board is not None:
            rows[:, 0] = 1.0
        read.append(rows.to(device.where))
    specs = {**signature.outputs, **signature.state}
    answers = _made_of(_zeros_on(device), specs, num_rows)

    def program() -> None:
        with torch.inference_mode():
            _copy(head(*read), answers.values())

    launch = device.record(program)
    device.synchronize()
    num_calls, num_at_once = 0, 1
    start_s = now_s = time.perf_counter()
    while now_s - start_s < seconds:
        before_s = now_s
        for _ in range(num_at_once):
            launch()
        device.synchronize()
        num_calls += num_at_once
        now_s = time.perf_counter()
        # Raised until the device hardly waits for this loop.
        if now_s - before_s < _MIN_WORK_S:
            num_at_once *= 2
    return num_calls * num_rows / (now_s - start_s)


def bucket_sizes(max_rows: int) -> tuple[int, ...]:
    """Returns the sizes in increasing order: ``max_rows``, 3/4 of it, then halves.

    The steps are small near ``max_rows``, because batches are usually nearly full.

    Args:
        max_rows: The largest batch, at least 1.
    """
    sizes = {max_rows}
    if max_rows >= 4 * MIN_BUCKET_ROWS:
        sizes.add(3 * max_rows // 4)
    half = max_rows // 2
    while half >= MIN_BUCKET_ROWS:
        sizes.add(half)
        half //= 2
    return tuple(sorted(sizes))


def bucket_for(num_rows: int, sizes: Sequence[int]) -> int:
    """Returns the smallest of the sizes that holds the rows.

    Args:
        num_rows: 1 to the largest size.
        sizes: In increasing order.
    """
    return sizes[bisect.bisect_left(sizes, num_rows)]


def unpack_rows(rows: Tensor, layout: RowLayout) -> Tensor:
    """Returns planes ``[n, C, H, W]`` float32 on the device of the rows.

    Args:
        rows: ``[n, layout.num_bytes]`` uint8, contiguous.
        layout: The layout that they were written in.
    """
    shape = (len(rows), *layout.planes_shape)
    if not layout.is_packed:
        return rows.view(torch.float32).view(shape)
    num_scale_bytes = layout.planes_shape[0] * _FLOAT_BYTES
    scales = rows[:, :num_scale_bytes].view(torch.float32)
    places = torch.arange(8, dtype=torch.uint8, device=rows.device)
    bits = (rows[:, num_scale_bytes:, None] >> places) & 1
    planes = bits.flatten(1)[:, : layout.num_entries].view(shape)
    return planes * scales[:, :, None, None]
