"""The rate of a disk for random reads of rows in a file: the upper bound for a store.

Rows are as large as those of the store whose file it is, and read as the store reads
them: whole, at multiples of their size, past the system's cache where the file system
allows it, into huge pages where the system has them. (A row in pages of 4 KiB is a
request of many parts, which halved the rate of a virtual disk.) Each row under way has
a process of its own that does nothing else, so that no interpreter's lock delays a
read.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from tengen.errors import RunError

__all__ = ["DiskReads", "run_reads"]

# Rows that one process reads, again and again; all processes together read more than
# any disk's cache holds.
_NUM_ROWS = 4096
_HUGE_PAGE = 2 << 20


@dataclass(frozen=True)
class DiskReads:
    """What is to be read.

    Attributes:
        path: The file.
        row_bytes: Bytes of a row; the file holds only rows.
        depth: Rows under way at once, each in a process of its own.
        warm_s: Seconds of reading before the measurement.
        seconds: Seconds of the measurement.
    """

    path: str
    row_bytes: int
    depth: int
    warm_s: float
    seconds: float


def run_reads(pipe: Connection, reads: DiskReads) -> None:
    """Sends ``bytes/s`` of all readers, and ``is_past_cache``. Forks.

    Raises:
        RunError: The file has no row, or a row cannot be read.
    """
    file, is_past_cache = _open(reads.path)
    # After the hole's start the file is reserved and was never written: reads there do
    # not reach the disk.
    num_rows = os.lseek(file, 0, os.SEEK_HOLE) // reads.row_bytes
    if num_rows == 0:
        raise RunError(f"file ({reads.path}) must have a row; write more to it")
    ours, theirs = os.pipe()
    readers = []
    for number in range(reads.depth):
        reader = os.fork()
        if reader == 0:
            code, told = 1, "!a reader was stopped"
            try:
                rows = random.Random(number).choices(range(num_rows), k=_NUM_ROWS)
                told = repr(_read(file, reads, rows))
                code = 0
            except OSError as error:
                told = f"!{error}"
            finally:
                os.write(theirs, f"{told}\n".encode())
                os._exit(code)
        readers.append(reader)
    os.close(theirs)
    with os.fdopen(ours) as lines:
        answers = lines.read().splitlines()
    os.close(file)
    for reader in readers:
        os.waitpid(reader, 0)
    for answer in answers:
        if answer.startswith("!"):
            raise RunError(
                f"file ({reads.path}) must be readable, and is not: {answer[1:]}; "
                "check the disk"
            )
    rate = sum(map(float, answers))
    pipe.send({"bytes/s": rate, "is_past_cache": is_past_cache})


def _open(path: str) -> tuple[int, bool]:
    """Returns the file, and whether it is read past the system's cache.

    Must match open_file() of core/store/disk/disk_file.cc.
    """
    direct = getattr(os, "O_DIRECT", 0)
    try:
        return os.open(path, os.O_RDONLY | direct), direct != 0
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, os.O_RDONLY), False


def _read(file: int, reads: DiskReads, rows: Iterable[int]) -> float:
    """Reads rows one after another until the end, and returns bytes a second.

    A read that is under way when the measurement begins or ends counts by the part of
    its time that lies within, because there are few reads where rows are large.
    """
    memory = [_memory(reads.row_bytes)]
    # Its own times: on a busy machine a process may begin long after its parent.
    num_reads, now = 0.0, time.monotonic()
    begin = now + reads.warm_s
    end = begin + reads.seconds
    for row in itertools.cycle(rows):
        count = os.preadv(file, memory, row * reads.row_bytes)
        if count != reads.row_bytes:
            raise OSError(f"row {row} is cut short")
        start, now = now, time.monotonic()
        num_reads += max(0.0, min(now, end) - max(start, begin)) / (now - start)
        if now >= end:
            break
    return num_reads * reads.row_bytes / reads.seconds


def _memory(num_bytes: int) -> memoryview:
    """Returns memory in huge pages, if the system has them, already written once."""
    # Private, because shared memory is not always aligned to a huge page.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mapped = mmap.mmap(-1, (num_bytes // _HUGE_PAGE + 2) * _HUGE_PAGE, flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without huge pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    begin = -np.frombuffer(mapped, np.uint8).ctypes.data % _HUGE_PAGE
    memory = memoryview(mapped)[begin : begin + num_bytes]
    memory[:] = bytes(num_bytes)
    return memory
