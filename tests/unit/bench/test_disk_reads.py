"""What the disk alone gives: who reads, what, how much at once, and where to."""

from __future__ import annotations

import fcntl
import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tengen.bench import disk_reads
from tengen.bench.disk_reads import DiskReads, run_reads
from tengen.bench.store_workloads import VARIANTS, WORKLOADS, Workload
from tengen.errors import RunError
from tengen.store.configs.disk_config import DiskConfig
from tengen.store.local_backend import LocalBackend

ROW_BYTES = 8192
NUM_ROWS = 40


class Pipe:
    def send(self, result: Any) -> None:
        self.result = result


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows, and behind them as many that are reserved and were never written."""
    path = tmp_path / "rows"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 * NUM_ROWS * ROW_BYTES)
        file.write(os.urandom(NUM_ROWS * ROW_BYTES))
        os.fsync(file.fileno())
    return path


def run(path: Path, depth: int) -> Any:
    pipe: Any = Pipe()
    run_reads(pipe, DiskReads(str(path), ROW_BYTES, depth, 0.1, 0.1))
    return pipe.result


def test_as_many_processes_read_as_rows_are_under_way(rows, tmp_path, monkeypatch):
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    preadv = os.preadv

    def logged(file: int, buffers: Any, offset: int) -> int:
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        is_direct = int(bool(flags & getattr(os, "O_DIRECT", 0)))
        count = preadv(file, buffers, offset)
        line = [os.getpid(), count, sum(map(len, buffers)), offset, is_direct]
        os.write(log, np.array(line).tobytes())
        return count

    monkeypatch.setattr(os, "preadv", logged)
    # Each look at the clock is a millisecond later, so that each reads as often.
    clock = SimpleNamespace(monotonic=itertools.count(step=0.001).__next__)
    monkeypatch.setattr(disk_reads, "time", clock)
    result = run(rows, depth=5)
    os.close(log)
    table = np.fromfile(tmp_path / "log", np.int64).reshape(-1, 5)
    readers, counts, sizes, offsets, is_direct = table.T
    assert len(set(readers)) == 5
    assert os.getpid() not in readers
    assert set(counts) == set(sizes) == {ROW_BYTES}
    # Whole rows, each of them some time, and none that was only reserved.
    assert set(offsets) <= {row * ROW_BYTES for row in range(2 * NUM_ROWS)}
    assert set(offsets) >= {row * ROW_BYTES for row in range(NUM_ROWS)}
    if has_holes(rows):
        assert offsets.max() < NUM_ROWS * ROW_BYTES
    assert set(is_direct) == {int(result["is_past_cache"])}
    assert result["bytes/s"] > 0


def has_holes(path: Path) -> bool:
    with path.open("rb") as file:
        return os.lseek(file.fileno(), 0, os.SEEK_HOLE) < path.stat().st_size


def test_rows_lie_in_memory_that_begins_at_a_huge_page(rows, tmp_path, monkeypatch):
    """In small pages a row is a request of many parts, and the disk looks slow."""
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def logged(file: int, buffers: Any, offset: int) -> int:
        address = np.frombuffer(buffers[0], np.uint8).ctypes.data
        maps = Path("/proc/self/maps").read_text().splitlines()
        for line in maps:
            begin, end = (int(word, 16) for word in line.split()[0].split("-"))
            if begin <= address < end:
                is_private = line.split()[1][3] == "p"
                os.write(log, np.array([address % (2 << 20), is_private]).tobytes())
        return sum(map(len, buffers))

    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell where memory lies")
    monkeypatch.setattr(os, "preadv", logged)
    run(rows, depth=1)
    os.close(log)
    table = np.fromfile(tmp_path / "log", np.int64).reshape(-1, 2)
    assert set(map(tuple, table)) == {(0, 1)}


@pytest.mark.parametrize(
    ("read_s", "rate"),
    [
        ([1.0] * 20, 1.0),
        ([0.5] * 40, 2.0),
        # One that waits for the others through all of the measurement is no fast one.
        ([8.0, 0.01], 0.125),
        ([3.0, 1.0, 0.25, 3.0], (0.5 / 3 + 1 + 1 + 2.25 / 3) / 4),
    ],
)
def test_a_read_counts_by_its_time_within_the_measurement(read_s, rate, monkeypatch):
    now, times = 0.0, iter(read_s)

    def preadv(*args: Any) -> int:
        nonlocal now
        now += next(times)
        return ROW_BYTES

    monkeypatch.setattr(os, "preadv", preadv)
    monkeypatch.setattr(disk_reads, "time", SimpleNamespace(monotonic=lambda: now))
    task = DiskReads("", ROW_BYTES, 1, warm_s=2.5, seconds=4.0)
    found = disk_reads._read(0, task, [0])
    assert found == pytest.approx(rate * ROW_BYTES)


def test_what_cannot_be_read_is_told(rows, monkeypatch):
    monkeypatch.setattr(os, "preadv", lambda *args: 7)
    with pytest.raises(RunError, match=r"row \d+ is cut short; check the disk"):
        run(rows, depth=1)
    rows.write_bytes(b"little")
    with pytest.raises(RunError, match="must have a row"):
        run(rows, depth=1)


@pytest.mark.parametrize(
    "workload", [*WORKLOADS.values(), *VARIANTS.values()], ids=lambda one: one.name
)
def test_a_row_is_as_large_as_the_stores(workload: Workload, tmp_path):
    disk = DiskConfig(directory=tmp_path, num_bytes=1 << 30)
    backend = LocalBackend([workload.table(2)], 1 << 30, 0, disk=disk)
    _, slot_bytes = backend.pool_layout(backend.tables()[0])
    backend.close()
    assert workload.row_bytes == slot_bytes
