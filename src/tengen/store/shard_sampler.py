"""Batches of one table that lies on several servers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import RunError
from tengen.store.backend import BatchCore, SamplerCore

if TYPE_CHECKING:
    from tengen.store.shards import Shard

__all__ = ["ShardSampler"]

# How long to wait for one server before looking at the others.
_SLICE_S = 0.02


@dataclass(frozen=True)
class _ShardBatch:
    lease: int
    table_size: int
    keys: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class _Turn:
    """Which server's batch is next, with which probability, out of how many items."""

    number: int
    share: float
    whole: int


class ShardSampler:
    """Draws each batch from one server, chosen by the number of items on each.

    A server with a share q of the items has the share q of the turns, evenly spread. An
    item that its server draws with probability P is thus drawn with probability q * P.
    A batch has this product as its probabilities, so that importance weights are right
    over all servers. With uniform samplers the product is 1 / (all items); with
    prioritized ones it is the item's share on its server times q. Servers that are
    missing, or whose table waits, lose their turns, and q is then a share of the items
    on the others.

    For one thread.

    Args:
        shards: The servers.
        table: The table's name.
        num_samples: B, the samples of every batch.
        num_ahead: Batches drawn before they are asked for, on each server.
        leases: Yields the numbers of the batches' loans.
        timeout_s: How long each server may take to open its part; None: as long as the
            connection allows.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        table: str,
        num_samples: int,
        num_ahead: int,
        leases: Iterator[int],
        timeout_s: float | None = None,
    ) -> None:
        self._shards = shards
        self._table = table
        self._num_samples = num_samples
        self._num_ahead = num_ahead
        self._cores: dict[int, SamplerCore] = {}
        self._joins: dict[int, int] = {}
        # Batches that arrived while other servers had the turn, by server.
        self._arrived: dict[int, BatchCore] = {}
        self._waiting: set[int] = set()
        self._owed = [0.0] * len(shards)
        self._turn: _Turn | None = None
        # By lease its server and the lease's number there; None if the server was lost.
        self._leases: dict[int, tuple[int | None, int]] = {}
        self._new_leases = leases
        for number in range(len(shards)):
            self._open(number, timeout_s)

    def next(self, timeout_s: float) -> BatchCore | None:
        """Returns the next batch, or None if the time is over."""
        end = time.monotonic() + timeout_s
        while True:
            self._look_around()
            turn = self._turn = self._turn or self._choose()
            left = max(0.0, min(_SLICE_S, end - time.monotonic()))
            if turn is None:
                self._wait_for_any(left)
            else:
                batch = self._take(turn.number, left)
                if batch is not None:
                    self._turn = None
                    return self._of_whole(turn, batch)
            if time.monotonic() >= end:
                return None

    def ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        """Says that a batch was used; does nothing if its server is gone."""
        self._end_lease(lease, lambda core, own: core.ack(own, priorities))

    def give_back(self, lease: int) -> None:
        """Says that a batch was not used."""
        self._end_lease(lease, lambda core, own: core.give_back(own))

    def waits(self) -> str:
        """Returns what the servers wait for."""
        if not self._cores:
            return "every shard is missing"
        return "; ".join(
            f"shard ({self._shards[number].name}) {reason}"
            for number, core in self._cores.items()
            if (reason := core.waits())
        )

    @contextlib.contextmanager
    def _may_end(self, number: int) -> Iterator[None]:
        """Context that drops a server if it turns out to be gone or closing."""
        try:
            yield
        except _core.GoneError:
            self._lose(number)
        except _core.RefusedError:
            # A closing server answers with the same error.
            if self._shards[number].serves(self._joins[number]):
                raise
            self._lose(number)

    def _end_lease(self, lease: int, end: Callable[[SamplerCore, int], None]) -> None:
        if lease not in self._leases:
            raise _core.CoreError(
                f"lease ({lease}) must be one that is not acknowledged; acknowledge "
                "each batch once"
            )
        number, own = self._leases[lease]
        if number is not None:
            with self._may_end(number):
                end(self._cores[number], own)
        del self._leases[lease]

    def _choose(self) -> _Turn | None:
        sizes = {
            number: size
            for number in self._cores
            if number not in self._waiting
            and (size := self._shards[number].sizes[self._table]) > 0
        }
        if not sizes:
            return None
        whole = sum(sizes.values())
        for number, size in sizes.items():
            self._owed[number] += size / whole
        number = max(sizes, key=lambda one: self._owed[one])
        self._owed[number] -= 1.0
        return _Turn(number, sizes[number] / whole, whole)

    def _of_whole(self, turn: _Turn, batch: BatchCore) -> BatchCore:
        lease = next(self._new_leases)
        self._leases[lease] = (turn.number, batch.lease)
        self._shards[turn.number].sizes[self._table] = batch.table_size
        return _ShardBatch(
            lease,
            turn.whole,
            batch.keys * len(self._shards) + turn.number,
            batch.probabilities * turn.share,
            batch.columns,
        )

    def _take(self, number: int, timeout_s: float) -> BatchCore | None:
        """Returns a server's next batch; notes whether its table waits."""
        if number in self._arrived:
            return self._arrived.pop(number)
        core = self._cores.get(number)
        if core is None:
            return None
        batch = None
        with self._may_end(number):
            batch = core.next(timeout_s)
            if batch is None and core.waits():
                self._waiting.add(number)
        return batch

    def _look_around(self) -> None:
        """Checks which servers are gone or back, and which tables no longer wait."""
        for number, shard in enumerate(self._shards):
            if number in self._cores and shard.is_missing:
                self._lose(number)
            elif number not in self._cores and not shard.is_missing:
                self._open(number)
        for number in list(self._waiting):
            batch = self._take(number, 0.0)
            if batch is not None:
                self._keep(number, batch)
        if self._turn is not None:
            number = self._turn.number
            if number not in self._cores or number in self._waiting:
                self._turn = None

    def _wait_for_any(self, timeout_s: float) -> None:
        if not self._cores:
            time.sleep(timeout_s)
        for number in list(self._cores):
            batch = self._take(number, timeout_s / len(self._cores))
            if batch is not None:
                self._keep(number, batch)
                return

    def _keep(self, number: int, batch: BatchCore) -> None:
        """Keeps a batch until its server has the turn; its table waits no more."""
        self._arrived[number] = batch
        self._shards[number].sizes[self._table] = batch.table_size
        self._waiting.discard(number)

    def _open(self, number: int, timeout_s: float | None = None) -> None:
        shard = self._shards[number]
        num_joins = shard.num_joins
        try:
            self._cores[number] = shard.backend().open_sampler(
                shard.entry(self._table),
                self._num_samples,
                self._num_ahead,
                timeout_s,
            )
        except RunError:
            shard.lose(num_joins)
            return
        self._joins[number] = num_joins
        if shard.sizes[self._table] == 0:
            self._waiting.add(number)

    def _lose(self, number: int) -> None:
        self._shards[number].lose(self._joins[number])
        # Drop the last reference to the connection, so that the server sees it end.
        del self._cores[number]
        for lease, (one, own) in self._leases.items():
            if one == number:
                self._leases[lease] = (None, own)
        self._arrived.pop(number, None)
        self._waiting.discard(number)
