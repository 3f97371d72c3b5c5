from __future__ import annotations

import numpy as np

from tengen.inference import DriveStats, drive
from tengen.inference.backend import FloatArray
from tests.refusals import refused


class CountingPort:
    """Asks for the given batches; row i of all rows holds the number i."""

    def __init__(self, sizes):
        self.planes = np.zeros((8, 1, 2, 2), np.float32)
        self.policy = np.zeros((8, 3), np.float32)
        self.value = np.zeros(8, np.float32)
        self.sizes = sizes
        self.answers: list[float] = []
        self.num_asked = 0
        self._last = 0

    def next(self):
        self._last = self.sizes.pop(0) if self.sizes else 0
        for row in range(self._last):
            self.planes[row] = self.num_asked
            self.num_asked += 1
        return self._last

    def done(self):
        self.answers += [float(value) for value in self.value[: self._last]]


class Doubler:
    """The value is twice the number in the planes."""

    def __init__(self, port, fails_at=float("inf")):
        self._planes: FloatArray = port.planes
        self._value: FloatArray = port.value
        self._fails_at = fails_at

    def run(self, num_rows):
        numbers = self._planes[:num_rows, 0, 0, 0]
        if numbers.max() >= self._fails_at:
            raise RuntimeError("the device is gone")
        self._value[:num_rows] = 2 * numbers


def test_every_row_gets_its_own_answer():
    port = CountingPort([3, 8, 1])
    stats = drive(port, Doubler(port))
    assert (stats.num_evaluations, stats.num_batches) == (12, 3)
    assert port.answers == [2.0 * row for row in range(12)]


def test_stats_are_added_to():
    stats = DriveStats()
    for sizes in ([4], [], [4]):
        port = CountingPort(sizes)
        assert drive(port, Doubler(port), stats) is stats
        assert len(port.answers) == 4 * len(port.answers[:1])
    assert (stats.num_evaluations, stats.num_batches) == (8, 2)


def test_a_failure_is_raised_and_answers_nothing():
    port = CountingPort([2, 2, 2])
    with refused(RuntimeError, "device"):
        drive(port, Doubler(port, fails_at=3))
    assert port.answers == [0.0, 2.0]
