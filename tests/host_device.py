"""The CPU as an inference device, to test GPU inference code without a GPU."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from tengen.inference.device import Lane, Step

__all__ = ["HostDevice"]


class HostDevice:
    """The CPU as a ``Device`` whose steps run synchronously."""

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
