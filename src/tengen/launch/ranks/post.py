"""Messages between the ranks of ``mpirun``, small JSON objects, in order.

MPI's blocking calls use a whole core while they wait. Here only one thread of each rank
calls MPI, and asks every 25 ms, more often while messages pass, whether something has
arrived. Each rank says every two seconds that it is alive, so that a rank that hangs,
or whose host is cut off, is noticed.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

__all__ = ["SILENCE_S", "Post", "Wire"]

Message = dict[str, Any]

SILENCE_S = 60.0
"""Seconds of silence after which a rank counts as lost, far more than a busy host takes
for a thread's turn."""
_ALIVE_S = 2.0
_FIRST_POLL_S = 0.005
_POLL_S = 0.025
"""Seconds between two polls. A message waits half of it on average; a turn takes a
second or more."""
# If this process itself pauses, for example because the job was stopped, at most so
# much of the pause counts as silence.
_MOST_PAUSE_S = 0.5
_CLOSE_S = 5.0


class Wire(Protocol):
    """What carries bytes between ranks. Used by one thread."""

    @property
    def rank(self) -> int:
        """This process's number, from 0."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    def send(self, rank: int, data: bytes) -> None:
        """Begins to send; does not wait for the receiver."""

    def receive(self) -> tuple[int, bytes] | None:
        """Returns a rank and its message, or None if nothing has arrived."""

    def is_sent(self) -> bool:
        """Returns whether all messages are sent."""


class Post:
    """Passes messages by a thread of its own, from its start to ``close``.

    Args:
        wire: Carries them.
        peers: The ranks that it speaks with.
        on_message: Called by the thread with a rank and its message; must not block.
        on_silence: Called once with a rank that is lost, as ``on_message``.
    """

    def __init__(
        self,
        wire: Wire,
        peers: Iterable[int],
        on_message: Callable[[int, Message], None],
        on_silence: Callable[[int], None],
    ) -> None:
        self._wire = wire
        self._on_message = on_message
        self._on_silence = on_silence
        self._silent_s = dict.fromkeys(peers, 0.0)
        self._outgoing: queue.SimpleQueue[tuple[int, Message]] = queue.SimpleQueue()
        self._has_work = threading.Event()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ranks", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def send(self, rank: int, message: Message) -> None:
        """Sends a message. Does not block; any thread; nothing after ``close``."""
        self._outgoing.put((rank, message))
        self._has_work.set()

    def close(self) -> bool:
        """Sends waiting messages, and ends the thread. Blocks for five seconds at most.

        Returns:
            Whether the thread has ended, so that another may use the wire.
        """
        self._is_closing.set()
        self._has_work.set()
        self._thread.join(_CLOSE_S)
        return not self._thread.is_alive()

    def _work(self) -> None:
        last_s = time.monotonic()
        told_s = last_s - _ALIVE_S
        poll_s = _FIRST_POLL_S
        while not (self._is_closing.is_set() and self._is_empty()):
            self._has_work.wait(poll_s)
            poll_s = min(2 * poll_s, _POLL_S)
            self._has_work.clear()
            now_s = time.monotonic()
            if now_s - told_s >= _ALIVE_S:
                told_s = now_s
                for rank in list(self._silent_s):
                    self._wire.send(rank, b"{}")
            while not self._outgoing.empty():
                rank, message = self._outgoing.get()
                self._wire.send(rank, json.dumps(message).encode())
                poll_s = _FIRST_POLL_S  # an answer may come soon
            if self._listen(min(now_s - last_s, _MOST_PAUSE_S)):
                poll_s = _FIRST_POLL_S
            last_s = now_s

    def _is_empty(self) -> bool:
        return self._outgoing.empty() and self._wire.is_sent()

    def _listen(self, passed_s: float) -> bool:
        """Returns whether a message has arrived."""
        has_arrived = False
        for rank in self._silent_s:
            self._silent_s[rank] += passed_s
        while (arrived := self._wire.receive()) is not None:
            rank, data = arrived
            if rank in self._silent_s:
                self._silent_s[rank] = 0.0
            if message := json.loads(data):
                has_arrived = True
                self._on_message(rank, message)
        for rank, silent_s in list(self._silent_s.items()):
            if silent_s >= SILENCE_S:
                del self._silent_s[rank]
                self._on_silence(rank)
        return has_arrived
