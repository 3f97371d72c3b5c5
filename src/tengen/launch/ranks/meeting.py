"""How the ranks of ``mpirun`` meet: MPI carries two small messages of each rank.

Each rank tells the first one what it has, and gets a ticket to join it. From then on
they speak over the hosts' network. MPI's blocking calls use a whole core while they
wait, so each rank asks now and then whether something has arrived.
"""

from __future__ import annotations

import importlib
import json
import time
from typing import Any

from tengen.errors import UsageError

__all__ = ["Meeting", "load_mpi"]

_TAG = 7
_POLL_S = 0.025


def load_mpi() -> Any:
    """Returns ``mpi4py.MPI``, initialised.

    Raises:
        UsageError: MPI cannot be loaded.
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
        mpi.Init_thread(mpi.THREAD_FUNNELED)
    return mpi


class Meeting:
    """Messages between ranks, JSON objects. Used by the main thread.

    Args:
        mpi: What ``load_mpi`` returned.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD
        self._sending: list[tuple[Any, bytes]] = []

    @property
    def rank(self) -> int:
        """This process's number, from 0."""
        return int(self._comm.Get_rank())

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(self._comm.Get_size())

    def send(self, rank: int, message: dict[str, Any]) -> None:
        """Begins to send; does not wait for the receiver."""
        data = json.dumps(message).encode()
        request = self._comm.Isend([data, self._mpi.BYTE], dest=rank, tag=_TAG)
        # MPI reads the bytes until it says that they are sent, so keep them.
        self._sending.append((request, data))

    def receive(self, timeout_s: float) -> tuple[int, dict[str, Any]] | None:
        """Returns a rank and its message; None if nothing comes in time."""
        until = time.monotonic() + timeout_s
        status = self._mpi.Status()
        while True:
            # MPI sends while it is called.
            self._sending = [one for one in self._sending if not one[0].Test()]
            if self._comm.Iprobe(self._mpi.ANY_SOURCE, _TAG, status):
                break
            if time.monotonic() >= until:
                return None
            time.sleep(_POLL_S)
        rank = int(status.Get_source())
        data = bytearray(status.Get_count(self._mpi.BYTE))
        self._comm.Recv([data, self._mpi.BYTE], source=rank, tag=_TAG)
        message: dict[str, Any] = json.loads(bytes(data))
        return rank, message

    def flush(self) -> None:
        """Waits until all is sent."""
        while any(not one[0].Test() for one in self._sending):
            time.sleep(_POLL_S)
