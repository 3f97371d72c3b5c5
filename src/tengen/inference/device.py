"""The interface of a device to inference: host memory, recorded functions, and lanes.

``CudaDevice`` is the GPU. ``HostDevice`` does the same on the CPU, one step after the
other, so that the code around a GPU is tested without one.

Legend: a lane is one batch under way. Its copies to and from the device have their own
stream, and all lanes compute on one stream. So copies of one lane overlap with the
computation of another, and the memory for a computation is needed only once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["CudaDevice", "Device", "HostDevice", "Lane", "Step", "make_device"]

Step = Callable[[], None]


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


class HostDevice:
    """The CPU as a ``Device``: a step is done when it returns."""

    where = torch.device("cpu")
    has_bf16 = True

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """See ``Device``."""
        return torch.zeros(shape, dtype=dtype)

    def record(self, function: Step) -> Step:
        """Returns the function itself."""
        return function

    def lane(self) -> Lane:
        """See ``Device``."""
        return _HostLane(self._lock)

    def synchronize(self) -> None:
        """Does nothing."""


class _HostLane:
    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        copy_in()
        with self._lock:
            compute()
        copy_out()


def make_device(name: str) -> Device:
    """Returns the device of that name, which the machine must have."""
    if name == "cpu":
        return HostDevice()
    from tengen.inference.device import CudaDevice

    return CudaDevice(name)


_WARM_UP_CALLS = 3


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
