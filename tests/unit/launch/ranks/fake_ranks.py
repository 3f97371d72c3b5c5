"""Ranks without MPI: wires in memory, and what ranks say of themselves."""

from __future__ import annotations

import threading
from collections import deque

from tengen.launch.ranks.table import RankInfo

__all__ = ["FakeWires", "info"]


def info(rank: int, host: str = "a", cores: int = 4, **fields: object) -> RankInfo:
    known: dict[str, object] = {"version": "1.0", "python": "3.11", **fields}
    return RankInfo(rank=rank, host=host, cores=cores, **known)


class FakeWires:
    """The wires of some ranks; one that is cut carries nothing, either way."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.cut: set[int] = set()
        self._lock = threading.Lock()
        self._arrived: list[deque[tuple[int, bytes]]] = [deque() for _ in range(size)]

    def wire(self, rank: int) -> _FakeWire:
        return _FakeWire(self, rank)

    def put(self, source: int, rank: int, data: bytes) -> None:
        with self._lock:
            if not {source, rank} & self.cut:
                self._arrived[rank].append((source, data))

    def take(self, rank: int) -> tuple[int, bytes] | None:
        with self._lock:
            return self._arrived[rank].popleft() if self._arrived[rank] else None


class _FakeWire:
    def __init__(self, wires: FakeWires, rank: int) -> None:
        self._wires = wires
        self.rank = rank
        self.size = wires.size

    def send(self, rank: int, data: bytes) -> None:
        self._wires.put(self.rank, rank, data)

    def receive(self) -> tuple[int, bytes] | None:
        return self._wires.take(self.rank)

    def is_sent(self) -> bool:
        return True
