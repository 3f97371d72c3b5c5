"""The client by which actors in other processes write into the learner's table."""

from __future__ import annotations

import threading
import time

from tengen import _core
from tengen.errors import UsageError
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.steps.first_priorities import FirstPriorities
from tengen.experience.steps.item_layout import ItemLayout
from tengen.experience.steps.slot_writer import TABLE, SlotWriter, greatest_priority
from tengen.store import StepWriter, Store
from tengen.transport import NoAnswer, is_net

__all__ = ["StepClient"]

_PRIORITY_S = 1.0
# Part of the error of core/store/engine/engine.h where another session has the name.
_TAKEN = "is open in another client"
# Longer than the time after which the store ends a connection to a host that is gone.
_TAKEN_S = 60.0
_RETRY_S = 0.5


class StepClient:
    """A client that adds steps to a ``StepTable`` of another process.

    Where that process is killed, writers on its host wait for the next process, which
    has every item that was acknowledged. Writers connected by ``tcp`` raise, and the
    items that they were writing are lost.

    Args:
        address: The folder of the table's store, or ``tcp://HOST:PORT``.
        layout: Layout of the items, the same as the table's.
        config: The table's config.
        patience_s: Seconds to wait for a lost table of this host to come back.
        token: For ``tcp``, the store's token.
        fingerprint: For ``tcp``, SHA-256 in hex of the store's certificate; None:
            without TLS.

    Raises:
        RunError: Nobody answers at the address.
        UsageError: The store is of another version, or refuses the token.
    """

    def __init__(
        self,
        address: str,
        layout: ItemLayout,
        config: ReplayConfig,
        patience_s: float = 60.0,
        *,
        token: str | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.layout = layout
        self._is_far = is_net(address)
        self.config = config
        self.num_rows = 0
        self.num_episodes = 0
        self._store = Store.connect(
            address, patience_s=patience_s, token=token, fingerprint=fingerprint
        )
        self._table = self._store.table(TABLE)
        self.stored = self._table.config.columns
        self._lock = threading.Lock()
        self._max_priority = 1.0
        self._asked_s = -_PRIORITY_S

    def writer(
        self, name: str, num_slots: int, first: FirstPriorities | None = None
    ) -> SlotWriter:
        """Returns the writer of an actor's slots; see ``StepTable.writer``.

        Where an earlier session of the actor still has a slot's name, for example after
        its host was cut off for some seconds, this waits until the store notices that
        the session is gone. No other actor can have the name: each actor holds a lock.
        """
        return SlotWriter(
            self, [self._writer(f"{name}/{slot}") for slot in range(num_slots)], first
        )

    def _writer(self, name: str) -> StepWriter:
        until = time.monotonic() + _TAKEN_S
        while True:
            try:
                reach = self.layout.num_stored
                return self._store.writer(name, TABLE, max_item_steps=reach)
            except (UsageError, _core.CoreError) as error:
                is_taken = _TAKEN in str(error)
                if not is_taken or not self._is_far or time.monotonic() >= until:
                    raise
            time.sleep(_RETRY_S)

    @property
    def max_priority(self) -> float:
        """The greatest recent priority, as it was at most a second ago."""
        now_s = time.monotonic()
        if now_s - self._asked_s >= _PRIORITY_S:
            self._asked_s = now_s
            self._max_priority = greatest_priority(self.config, self._table)
        return self._max_priority

    def count(self, num_rows: int, num_episodes: int) -> None:
        """Adds to ``num_rows`` and ``num_episodes``, which reports contain."""
        self.num_rows += num_rows
        self.num_episodes += num_episodes

    @staticmethod
    def is_lost(error: Exception) -> bool:
        """Returns whether an error means that the table is gone, not just full."""
        return isinstance(error, NoAnswer) or isinstance(
            error.__cause__, _core.GoneError
        )

    def close(self) -> None:
        """Ends the client; a writer that waits raises UsageError. Any thread."""
        self._store.close()
