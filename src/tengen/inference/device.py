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

__all__ = ["Device", "HostDevice", "Lane", "Step", "make_device"]

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
    from tengen.inference.cuda_device import CudaDevice

    return CudaDevice(name)
