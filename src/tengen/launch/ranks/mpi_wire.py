"""Messages between the ranks of ``mpirun``, by MPI."""

from __future__ import annotations

import importlib
from typing import Any

from tengen.errors import UsageError

__all__ = ["MpiWire", "load_mpi"]

_TAG = 7


def load_mpi() -> Any:
    """Returns ``mpi4py.MPI``, initialised for calls by one thread at a time.

    Raises:
        UsageError: MPI cannot be loaded, or may be called only by the main thread.
    """
    rc: Any = importlib.import_module("mpi4py").rc
    rc.initialize = rc.finalize = False
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"launch (mpi) needs the library of MPI, which cannot be loaded, {error}; "
            f"install Open MPI (apt-get install openmpi-bin)"
        ) from None
    if not mpi.Is_initialized():
        given = mpi.Init_thread(mpi.THREAD_SERIALIZED)
        if given < mpi.THREAD_SERIALIZED:
            raise UsageError(
                f"launch (mpi) needs an MPI that any thread may call, which this one, "
                f"{mpi.Get_library_version()}, is not; install Open MPI 4"
            )
    return mpi


class MpiWire:
    """Bytes by MPI; see ``Wire``.

    Args:
        mpi: What ``load_mpi`` returned.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD
        self._sending: list[tuple[Any, bytes]] = []

    @property
    def rank(self) -> int:
        """See ``Wire.rank``."""
        return int(self._comm.Get_rank())

    @property
    def size(self) -> int:
        """See ``Wire.size``."""
        return int(self._comm.Get_size())

    def send(self, rank: int, data: bytes) -> None:
        """See ``Wire.send``."""
        request = self._comm.Isend([data, self._mpi.BYTE], dest=rank, tag=_TAG)
        # MPI reads the bytes until it says that they are sent, so keep them.
        self._sending.append((request, data))

    def receive(self) -> tuple[int, bytes] | None:
        """See ``Wire.receive``."""
        status = self._mpi.Status()
        if not self._comm.Iprobe(self._mpi.ANY_SOURCE, _TAG, status):
            return None
        rank = int(status.Get_source())
        data = bytearray(status.Get_count(self._mpi.BYTE))
        self._comm.Recv([data, self._mpi.BYTE], source=rank, tag=_TAG)
        return rank, bytes(data)

    def is_sent(self) -> bool:
        """See ``Wire.is_sent``."""
        self._sending = [one for one in self._sending if not one[0].Test()]
        return not self._sending
