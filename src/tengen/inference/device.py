"""The ``Device`` interface, CUDA GPUs, and the evaluation of networks on devices.

``CudaDevice`` is a GPU. Tests implement ``Device`` on the CPU, without a GPU.

Legend: a lane processes one batch at a time. Each lane copies on its own stream, and
all lanes compute on one stream. So one lane's copies overlap with another lane's
computation, and all lanes share the memory for computations. A program unpacks n rows
and computes their outputs; it is recorded once per batch size. The programs of a device
share memory, so only one program runs at a time.
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

Step = Callable[[], None]

MIN_BUCKET_ROWS = 8
"""Minimum batch size; a device is not faster with smaller batches."""

_WARM_UP_CALLS = 3
_MIN_WORK_S = 0.03
_FLOAT_BYTES = 4

_Zeros = Callable[[tuple[int, ...], torch.dtype], Tensor]


class Lane(Protocol):
    """Processes one batch at a time on a device. Used by one thread."""

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        """Executes three steps in order. Blocks without the GIL until they complete.

        Each step only enqueues work on the device. At most one thread at a time calls
        the ``compute`` step of any lane.
        """


class Device(Protocol):
    """A processor that evaluates networks; threads may share a device."""

    @property
    def where(self) -> torch.device:
        """The device as a ``torch.device``."""

    @property
    def has_bf16(self) -> bool:
        """Whether the device multiplies bfloat16 numbers in hardware."""

    def host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns a tensor of zeros in host memory that the device can access."""

    def record(self, function: Step) -> Step:
        """Records the device work of ``function``; returns a function that launches it.

        The tensors that ``function`` reads and writes must not move, and ``function``
        must not create tensors that outlive it. Only one thread at a time may record or
        launch functions.

        Args:
            function: A function that computes with tensors on the device.

        Raises:
            torch.OutOfMemoryError: ``function`` needs more memory than is available.
        """

    def lane(self) -> Lane:
        """Returns a new lane of the device."""

    def synchronize(self) -> None:
        """Blocks until the device has completed all enqueued work."""


class CudaDevice:
    """A CUDA GPU, on which recorded functions are CUDA graphs that share a memory pool.

    Sharing is safe, because all graphs run on one stream and none leaves a result in
    the pool.
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
        """Returns a tensor of zeros in pinned host memory."""
        return torch.zeros(shape, dtype=dtype, pin_memory=True)

    def record(self, function: Step) -> Step:
        """Records a function after warm-up calls, in which cuDNN selects kernels."""
        graph = torch.cuda.CUDAGraph()
        with (
            torch.cuda.device(self.where),
            torch.backends.cudnn.flags(
                enabled=True, benchmark=True, allow_tf32=torch.backends.cudnn.allow_tf32
            ),
        ):
            # Wait for the default stream, whose results the function may read.
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
        # torch reuses 32 streams per priority. With a priority other than that of the
        # compute stream, the copy stream is never the compute stream.
        self._copies = _stream(name, priority=-1)
        with torch.cuda.device(name):
            self._arrived = _event()
            self._computed = _event()
            # A blocking event makes a waiting thread sleep, which frees its core.
            self._returned = _event(blocking=True)

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        with torch.cuda.stream(self._copies):
            copy_in()
            self._arrived.record()
        # Hold the lock, because the CUDA graphs of all lanes share memory.
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
    """Tensors for the rows of one batch and for their outputs."""

    rows: Tensor
    """``[N, layout.num_bytes]`` uint8, the rows."""
    answers: dict[str, Tensor]
    """The outputs ``[N, ...]`` by name, in the order of the network's signature."""

    @classmethod
    def on_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns a zero-filled batch in the memory of ``device``."""
        return cls._made(_zeros_on(device), layout, num_rows, signature)

    @classmethod
    def beside_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns a zero-filled batch in host memory that ``device`` can access."""
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
    """Evaluates one network on a device, with a recorded program per batch size.

    Args:
        loaded: The network on ``device``, with planes as its only input.
        device: The device.
        layout: Format of the rows.
        max_rows: Maximum number of rows in a batch.

    Raises:
        torch.OutOfMemoryError: A batch of ``max_rows`` needs more memory than is
            available.
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
        # Record the largest program first, so that smaller programs reuse its memory.
        self._launch: dict[int, Step] = {
            size: device.record(self._program(size)) for size in reversed(self._sizes)
        }

    def run(self, num_rows: int, batch: Batch) -> None:
        """Enqueues the evaluation of the first ``num_rows`` rows; never blocks."""
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
    """Measures the network's rows per second, without copies or unpacking of rows.

    The result is an upper bound of the inference speed. Blocks for about ``seconds``.

    Raises:
        torch.OutOfMemoryError: The batch needs more memory than is available.
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
        # Double the calls per iteration until the overhead of ``synchronize`` is small.
        if now_s - before_s < _MIN_WORK_S:
            num_at_once *= 2
    return num_calls * num_rows / (now_s - start_s)


def bucket_sizes(max_rows: int) -> tuple[int, ...]:
    """Returns the batch sizes to record: ``max_rows`` times 1, 3/4, 1/2, 1/4 and so on.

    Sizes increase, and are dense near ``max_rows``, because most batches are nearly
    full.

    Args:
        max_rows: Maximum number of rows in a batch, at least 1.
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
    """Returns the smallest batch size in ``sizes`` that is at least ``num_rows``.

    Args:
        num_rows: Number of rows, 1 to the largest size.
        sizes: Batch sizes in increasing order.
    """
    return sizes[bisect.bisect_left(sizes, num_rows)]


def unpack_rows(rows: Tensor, layout: RowLayout) -> Tensor:
    """Unpacks rows to planes ``[n, C, H, W]`` float32 on the same device.

    Args:
        rows: ``[n, layout.num_bytes]`` uint8, contiguous.
        layout: Format of the rows.
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
