"""What a device is to inference: memory beside it, recorded functions, lanes of copies.

``CudaDevice`` is the GPU. ``HostDevice`` does the same on the CPU, one thing after the
other, so that everything around a GPU is tested without one.

Legend: a lane is one batch under way. Its copies to and from the device have a stream
of their own, and all lanes compute on one stream, so that copies of one lane hide
behind the computation of another and the memory of a computation is there once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Device", "HostDevice", "Lane", "Step", "make_device"]

Step = Callable[[], None]


class Lane(Protocol):
    """The order of one batch after another. Used by one thread."""

    def run(self, copy_in: Step, compute: Step, copy_out: Step) -> None:
        """Does the steps in order. Blocks until the last is done, without the GIL.

        Each step only hands work to the device: ``compute`` may be handed over by one
        thread at a time, the device sees to it.
        """


class Device(Protocol):
    """One device. Threads may share it."""

    @property
    def where(self) -> torch.device:
        """As torch names it."""

    @property
    def has_bf16(self) -> bool:
        """Whether it multiplies bfloat16 in hardware."""

    def host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Returns zeros in the host's memory that the device can copy by itself."""

    def record(self, function: Step) -> Step:
        """Returns a function that does what ``function`` does, launched at once.

        The tensors that ``function`` reads and writes must stay where they are; it
        keeps no others. One thread at a time may record or call the result.

        Args:
            function: Works on tensors of the device.

        Raises:
            torch.OutOfMemoryError: It needs more memory than there is.
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
    """Returns the device of that name, which is there."""
    if name == "cpu":
        return HostDevice()
    from tengen.inference.cuda_device import CudaDevice

    return CudaDevice(name)
