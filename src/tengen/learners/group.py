"""How learners of several processes add up what each of them has.

A `Group` is the few collectives that learning needs. `Alone` is that of one learner and
does nothing; `TorchGroup` is that of several, by torch's gloo on CPUs and by its NCCL
where each learner has a GPU of its own. This is the only file that knows
torch.distributed, and it imports that when a group of several is made.

Neither gloo nor NCCL nor the store by which they meet asks who connects, or encrypts.
So they listen on loopback unless a run lets other hosts in, and then on that one
address; see docs/learners.md.

The NCCL path has never run on GPUs.
"""

from __future__ import annotations

import datetime
import importlib
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ALONE",
    "GLOO",
    "NCCL",
    "Alone",
    "Group",
    "GroupLost",
    "Meeting",
    "Place",
    "TorchGroup",
    "row_bounds",
]

GLOO = "gloo"
NCCL = "nccl"


class GroupLost(Exception):
    """A learner of the group is gone, or silent for too long: no collective works."""


class Place(NamedTuple):
    """Where the rows of one learner are among those of all."""

    first: int
    """Rows of the learners of lower rank."""
    total: int
    """Rows of all."""


def row_bounds(num_rows: int, num_parts: int, size: int) -> list[tuple[int, int]]:
    """Returns the first row and the one behind the last of each of several learners.

    Each has whole parts of the batch, so that every part is what it is for one learner.

    Args:
        num_rows: Of the batch.
        num_parts: Of the batch, at least ``size``.
        size: Learners.
    """
    ends = [num_rows * (num_parts * rank // size) // num_parts for rank in range(size)]
    return list(zip(ends, [*ends[1:], num_rows], strict=True))


class Group(Protocol):
    """Learners that make every step together. Used by one thread at a time.

    Each method but ``close`` is called by every learner, in the same order: it blocks
    until all have called it, and raises ``GroupLost`` where one does not within the
    group's patience.
    """

    rank: int
    """This learner's, from 0, the leader's."""
    size: int
    """Learners."""
    num_parts: int
    """Parts that a batch of all is split into, at least ``size``; the learner that
    joins says how many."""

    def own(self, num_rows: int) -> slice:
        """Returns which of so many rows of all are this learner's. Asks nobody."""

    def add(self, tensor: Tensor) -> None:
        """Puts the sum over all learners in the place of a contiguous tensor.

        All get the same bits.
        """

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Returns ``[size, len(values)]``, the values of each learner."""

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Returns the rows of all learners, ``[total, ...]``, those of rank 0 first.

        Args:
            rows: ``[N, ...]``, N any and the rest as that of the others.
        """

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Returns what each learner gave."""

    def broadcast(self, data: bytes) -> bytes:
        """Returns what rank 0 gave."""

    def place(self, num_rows: int) -> Place:
        """Returns where this learner's rows are."""

    def close(self) -> None:
        """Leaves; what others wait for fails soon. A second call does nothing."""


class Alone:
    """The group of one learner: nothing is added, and nothing is copied."""

    rank = 0
    size = 1
    num_parts = 1

    def own(self, num_rows: int) -> slice:
        """See ``Group.own``."""
        return slice(0, num_rows)

    def add(self, tensor: Tensor) -> None:
        """See ``Group.add``."""

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """See ``Group.gather``."""
        return np.array([values], np.float64)

    def gather_rows(self, rows: Tensor) -> Tensor:
        """See ``Group.gather_rows``."""
        return rows

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """See ``Group.gather_bytes``."""
        return [data]

    def broadcast(self, data: bytes) -> bytes:
        """See ``Group.broadcast``."""
        return data

    def place(self, num_rows: int) -> Place:
        """See ``Group.place``."""
        return Place(0, num_rows)

    def close(self) -> None:
        """See ``Group.close``."""


ALONE = Alone()
"""The group of every learner that is not told of another one."""


class Meeting:
    """The leader's store, by which the learners of a group find each other.

    Args:
        host: The one address of this host that it listens on.

    Raises:
        OSError: The address cannot be used.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, host: str) -> None:
        distributed = _distributed()
        # torch's store listens on all addresses of a host unless it is given a socket.
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
        """Ends it. A second call does nothing."""
        self._store = None


class TorchGroup:
    """A group by torch.distributed; see ``Group``.

    Args:
        host: The address of the leader's ``Meeting``.
        port: Its port.
        name: Of the group, the same for its learners and for no other group.
        rank: See ``Group``.
        size: See ``Group``.
        patience_s: The longest wait for another learner, above 0. One whose process
            ends is not waited for.
        backend: ``gloo``, or ``nccl`` where each learner has a GPU of its own.
        device: What NCCL computes on.

    Raises:
        GroupLost: The others did not come in time.
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
    ) -> None:
        import torch

        distributed = _distributed()
        self.rank = rank
        self.size = size
        self.num_parts = size
        self._device = torch.device(device if backend == NCCL else "cpu")
        patience = datetime.timedelta(seconds=patience_s)
        try:
            store = distributed.TCPStore(
                host, port, timeout=patience, wait_for_workers=False
            )
            named = distributed.PrefixStore(name, store)
            if backend == NCCL:
                nccl = distributed.ProcessGroupNCCL.Options()
                nccl._timeout = patience
                self._group: Any = distributed.ProcessGroupNCCL(named, rank, size, nccl)
            else:
                kind = distributed.ProcessGroupGloo
                gloo = kind._Options()
                gloo._timeout = patience
                gloo._devices = [kind.create_device(hostname=_own_address(host, port))]
                self._group = kind(named, rank, size, gloo)
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
        # Every learner sends as many, as collectives are of equal tensors.
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows
        # Bytes: not every dtype is known to every backend.
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
        # Its connections end with it, which is how the others learn of it at once.
        self._group = None

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
            begin(group).wait()
        except RuntimeError as error:
            raise GroupLost(str(error)) from error


def _distributed() -> Any:
    """Returns torch.distributed, whose types say less than it has."""
    return importlib.import_module("torch.distributed")


def _own_address(host: str, port: int) -> str:
    """Returns the address of this host from which it reaches the leader's."""
    with socket.create_connection((host, port), timeout=10.0) as connection:
        return str(connection.getsockname()[0])
