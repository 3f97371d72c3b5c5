"""The GPU as a ``Device``: pinned memory, CUDA graphs, streams."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from tengen.inference.device import Lane, Step

__all__ = ["CudaDevice"]

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
