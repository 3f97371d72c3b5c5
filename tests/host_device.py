"""The CPU as an inference device, to test GPU inference code without a GPU."""

import threading

import torch


class HostDevice:
    """The CPU as a ``Device`` whose steps run synchronously."""

    where = torch.device("cpu")
    has_bf16 = True

    def __init__(self):
        self._lock = threading.Lock()

    def host_memory(self, shape, dtype):
        """See ``Device``."""
        return torch.zeros(shape, dtype=dtype)

    def record(self, function):
        """Returns the function itself."""
        return function

    def lane(self):
        """See ``Device``."""
        return _HostLane(self._lock)

    def synchronize(self):
        """Does nothing."""


class _HostLane:
    def __init__(self, lock):
        self._lock = lock

    def run(self, copy_in, compute, copy_out):
        copy_in()
        with self._lock:
            compute()
        copy_out()
