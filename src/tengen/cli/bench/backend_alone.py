"""Measures how fast a backend evaluates while nothing else runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from tengen.games import Planes
from tengen.inference import Backend, LaneBackend, allocate

_BATCHES = (8, 16, 32, 64)
_TRIAL_S = 0.5


class Rates(NamedTuple):
    """A backend's rows per second, and per CPU-second."""

    per_s: float
    per_cpu_s: float


class BackendAlone(Protocol):
    """A benchmark of a backend at its fastest batch size."""

    @property
    def best_batch(self) -> int:
        """The batch size, in rows, at which the backend is fastest."""

    def measure(self, seconds: float) -> Rates:
        """Runs the backend for ``seconds`` seconds; returns its rates. Blocks."""


class ThreadsAlone:
    """A benchmark of a backend that several threads call independently.

    Args:
        backend: The backend to measure.
        planes: Positions to evaluate, ``[M, C, H, W]`` float32.
        num_threads: Number of threads.
    """

    def __init__(self, backend: Backend, planes: Planes, num_threads: int) -> None:
        self._backend = backend
        self._planes = planes
        self._num_threads = num_threads
        rates = {batch: self._measure(batch, _TRIAL_S).per_s for batch in _BATCHES}
        self.best_batch = max(rates, key=lambda batch: rates[batch])

    def measure(self, seconds: float) -> Rates:
        """Measures the backend's rates; see ``BackendAlone.measure``."""
        return self._measure(self.best_batch, seconds)

    def _measure(self, batch: int, seconds: float) -> Rates:
        counts = [0] * self._num_threads
        barrier = threading.Barrier(self._num_threads + 1)
        end_s = [0.0]

        def work(index: int) -> None:
            order = np.arange(batch) + index * batch
            rows = self._planes[order % len(self._planes)].copy()
            outputs = allocate(self._backend.signature.outputs, batch)
            runner = self._backend.bind({"planes": rows}, outputs)
            runner.run(batch)
            barrier.wait()
            while time.perf_counter() < end_s[0]:
                runner.run(batch)
                counts[index] += batch

        threads = [
            threading.Thread(target=work, args=(i,)) for i in range(self._num_threads)
        ]
        for thread in threads:
            thread.start()
        end_s[0] = time.perf_counter() + 3600.0
        barrier.wait()
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        end_s[0] = start_s + seconds
        for thread in threads:
            thread.join()
        spent_s = time.perf_counter() - start_s
        cpu_s = time.process_time() - start_cpu_s
        return Rates(sum(counts) / spent_s, sum(counts) / cpu_s)


class DevicesAlone:
    """A benchmark of the network on devices, without copies to the devices.

    Args:
        backend: The backend to measure. Its devices are assumed to be equally fast.
        rates: Rows per second by batch size, from a trial.
    """

    def __init__(self, backend: LaneBackend, rates: Mapping[int, float]) -> None:
        self._backend = backend
        self.best_batch = max(rates, key=lambda rows: rates[rows])

    def measure(self, seconds: float) -> Rates:
        """Measures the devices' rates; see ``BackendAlone.measure``."""
        start_cpu_s = time.process_time()
        per_s = self._backend.rate(self.best_batch, seconds) * self._backend.num_devices
        cpu_s = max(1e-9, time.process_time() - start_cpu_s)
        return Rates(per_s, per_s * seconds / cpu_s)
