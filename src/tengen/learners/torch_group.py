"""The group of several learners on torch.distributed; see `tengen.learners.group`.

The backend is gloo on CPUs, and NCCL if each learner has its own GPU. Only this file
uses torch.distributed, and imports it only when a group of several learners is created.

Gloo, NCCL and torch's store for rendezvous neither authenticate nor encrypt. So they
listen on loopback, or, if a run accepts other hosts, on one address of this host; see
docs/howto/machines/learners.md.

The NCCL path has not been tested on GPUs.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tengen.learners.group import GroupLost, Place, row_bounds

if TYPE_CHECKING:
    from torch import Tensor

GLOO = "gloo"
NCCL = "nccl"

# Maximum wait at rendezvous for a learner that has agreed to join a group, in seconds.
_MEETING_S = 20.0
# Interval between calls of ``why_over`` while a learner waits for a collective.
_SLICE = datetime.timedelta(seconds=0.25)
# Interval between checks whether a collective on a GPU has ended, in seconds.
_GPU_LOOK_S = 0.0002


class Meeting:
    """The leader's rendezvous store, where the learners of a group find each other.

    Args:
        host: The address of this host on which the store listens.

    Raises:
        OSError: The address cannot be used.

    Attributes:
        port: The port on which the store listens.
    """

    def __init__(self, host: str) -> None:
        distributed = _distributed()
        # Pass a socket, because torch's store otherwise listens on all addresses.
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, 0), family=family)
        self.port: int = bound.getsockname()[1]
        self._store: Any = distributed.TCPStore(
            host,
            self.port,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=bound.detach(),
        )

    def close(self) -> None:
        """Closes the rendezvous store. A second call does nothing."""
        self._store = None


class TorchGroup:
    """A group on torch.distributed; see ``Group``.

    Args:
        host: The address of the leader's ``Meeting``.
        port: The port of the leader's ``Meeting``.
        name: The name of the group, the same for all its learners, and never reused.
        rank: See ``Group``.
        size: See ``Group``.
        patience_s: Maximum wait for another learner in a collective, in seconds, above
            0; at rendezvous at most 20 s. The wait ends if that learner's process ends.
        backend: ``gloo``, or ``nccl`` if each learner has its own GPU.
        device: The device of NCCL's tensors.
        why_over: Returns a reason to stop waiting for other learners, or an empty
            string. Called several times a second during a wait, because the loss of a
            host closes no connections, so that torch does not notice it.

    Raises:
        GroupLost: The other learners did not join in time.
    """

    def __init__(
        self,
        host: str,
        port: int,
        name: str,
        rank: int,
        size: int,
        *,
        patience_s: float,
        backend: str = GLOO,
        device: str = "cpu",
        why_over: Callable[[], str] = lambda: "",
    ) -> None:
        import torch

        self.rank = rank
        self.size = size
        self.num_parts = size
        self._device = torch.device(device if backend == NCCL else "cpu")
        self._is_nccl = backend == NCCL
        self._why_over = why_over
        # The collective that torch has not completed yet, or None.
        self._unfinished: Any = None
        # A short timeout suffices, because all learners have agreed to join the group.
        meeting = datetime.timedelta(seconds=min(_MEETING_S, patience_s))

        def meet() -> Any:
            distributed = _distributed()
            own_address = _own_address(host, port)
            store = distributed.TCPStore(
                host, port, timeout=meeting, wait_for_workers=False
            )
            named = distributed.PrefixStore(name, store)
            if backend == NCCL:
                nccl = distributed.ProcessGroupNCCL.Options()
                nccl._timeout = meeting
                return distributed.ProcessGroupNCCL(named, rank, size, nccl)
            kind = distributed.ProcessGroupGloo
            gloo = kind._Options()
            gloo._timeout = meeting
            gloo._devices = [kind.create_device(hostname=own_address)]
            return kind(named, rank, size, gloo)

        met = _begun(meet)
        while not wait([met], _SLICE.total_seconds()).done:
            self._check_not_over()
        try:
            self._group: Any = met.result()
            self._group._set_default_timeout(datetime.timedelta(seconds=patience_s))
        except (RuntimeError, OSError) as error:
            raise GroupLost(str(error)) from error

    def own(self, num_rows: int) -> slice:
        """See ``Group.own``."""
        return slice(*row_bounds(num_rows, self.num_parts, self.size)[self.rank])

    def add(self, tensor: Tensor) -> None:
        """See ``Group.add``."""
        there = tensor if self._is_at_home(tensor) else tensor.to(self._device)
        self._wait(lambda group: group.allreduce([there]))
        if there is not tensor:
            tensor.copy_(there)

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """See ``Group.gather``."""
        import torch

        own = torch.tensor(values, dtype=torch.float64)
        found: NDArray[np.float64] = torch.stack(self._gather(own)).numpy()
        return found

    def gather_rows(self, rows: Tensor) -> Tensor:
        """See ``Group.gather_rows``."""
        import torch

        counts = [int(count) for count in self.gather([len(rows)])[:, 0]]
        # Pad the rows, because a collective needs tensors of equal size.
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        # Send the rows as bytes, because not every backend supports every dtype.
        flat = padded.flatten().view(torch.uint8)
        return torch.cat(
            [
                one.view(rows.dtype).view(padded.shape)[:count]
                for one, count in zip(self._gather(flat), counts, strict=True)
            ]
        )

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """See ``Group.gather_bytes``."""
        import torch

        counts = [int(count) for count in self.gather([len(data)])[:, 0]]
        padded = data.ljust(max(1, *counts), b"\0")
        own = torch.frombuffer(bytearray(padded), dtype=torch.uint8)
        return [
            one[:count].numpy().tobytes()
            for one, count in zip(self._gather(own), counts, strict=True)
        ]

    def broadcast(self, data: bytes) -> bytes:
        """See ``Group.broadcast``."""
        import torch

        length = torch.tensor([len(data)])
        self._broadcast(length)
        buffer = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == 0:
            buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        self._broadcast(buffer)
        return buffer.numpy().tobytes()

    def place(self, num_rows: int) -> Place:
        """See ``Group.place``."""
        counts = self.gather([num_rows])[:, 0]
        return Place(int(counts[: self.rank].sum()), int(counts.sum()))

    def close(self) -> None:
        """See ``Group.close``."""
        # Drop the group to close its connections, so that other learners notice it.
        group, self._group = self._group, None
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            # The destructor of torch's group waits for its collective. So a daemon
            # thread holds the group until the collective ends or times out.
            _begun(lambda: _let_go(group, unfinished))

    def _gather(self, own: Tensor) -> list[Tensor]:
        import torch

        home = own.device
        there = own.to(self._device)
        found = [torch.empty_like(there) for _ in range(self.size)]
        self._wait(lambda group: group.allgather([found], [there]))
        return [one.to(home) for one in found]

    def _broadcast(self, tensor: Tensor) -> None:
        there = tensor.to(self._device)
        self._wait(lambda group: group.broadcast([there]))
        if there is not tensor:
            tensor.copy_(there)

    def _is_at_home(self, tensor: Tensor) -> bool:
        return tensor.device.type == self._device.type

    def _wait(self, begin: Callable[[Any], Any]) -> None:
        group = self._group
        if group is None:
            raise GroupLost("the group was left")
        try:
            work = begin(group)
            while not self._has_ended(work):
                self._unfinished = work
                self._check_not_over()
            self._unfinished = None
            # Raises the collective's error if the collective has failed.
            work.wait()
        except RuntimeError as error:
            raise GroupLost(str(error)) from error

    def _has_ended(self, work: Any) -> bool:
        """Waits briefly for the collective ``work``; returns whether it has ended."""
        if self._is_nccl:
            # Poll, because NCCL aborts the group if a wait with a timeout expires.
            time.sleep(_GPU_LOOK_S)
        else:
            with contextlib.suppress(RuntimeError):
                work.wait(_SLICE)
        return bool(work.is_completed())

    def _check_not_over(self) -> None:
        why = self._why_over()
        if why:
            raise GroupLost(why)


def _distributed() -> Any:
    """Returns torch.distributed as Any, because its type stubs are incomplete."""
    return importlib.import_module("torch.distributed")


def _begun(work: Callable[[], Any]) -> Future[Any]:
    """Starts ``work`` on a daemon thread, and returns a future of its result."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=run, name="learners-group", daemon=True).start()
    return found


def _let_go(group: Any, work: Any) -> None:
    """Keeps ``group`` alive until its collective ``work`` has ended."""
    with contextlib.suppress(RuntimeError):
        work.wait()


def _own_address(host: str, port: int) -> str:
    """Returns this host's address on connections to the leader at ``host:port``."""
    with socket.create_connection((host, port), timeout=10.0) as connection:
        return str(connection.getsockname()[0])
