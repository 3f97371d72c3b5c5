"""The messages between a leading learner and a follower: lines of JSON.

The follower opens a session of the leader's service (`tengen.transport`) with a
``greeting`` and sends ``{"is": "here"}``. The messages that follow are listed here,
where L is the leader, F the follower and E the number of a group::

    L  {"do": "prepare", "stage": K, "shared": {...}}   open the experience
    F  {"is": "ready"}
    L  {"do": "group", "group": E, "stage": K, "shared": {...}}
    F  {"is": "willing", "group": E}
    L  {"do": "meet", "group": E, "host": H, "port": P, "name": N, "rank": R, "size": S,
        "backend": B}      all make the group, and the leader sends its state through it
    L  {"do": "batch", "group": E, "order": {...}, "num_samples": B, "first": I,
        "last": J, "remaining": X, "asked": Y}                  once for each batch
    L  {"do": "check", "group": E}                              compare the weights
    L  {"do": "lost", "group": E}   the group has failed: stop waiting in it
    F  {"is": "failed", "group": E, "why": W}   the group has failed for this follower
    F  {"is": "leaving"}    the follower will stop: the leader is to go on without it
    L  {"do": "bye"}        the group is over, or goes on without this follower

Either side ends the session by closing the stream, which the other side sees at once.
"""

from __future__ import annotations

import contextlib
import json
import platform
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tengen import __version__
from tengen.errors import UsageError
from tengen.transport import Dialect, Message

__all__ = [
    "LEARNERS",
    "Grace",
    "Member",
    "Pauses",
    "Peer",
    "check_versions",
    "greeting",
]

# How long a learner still waits for the others after a stop.
_GRACE_S = 5.0


class Grace:
    """The time that a step under way may still take after a stop.

    Args:
        stop: The event of the stop, which is never cleared.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the time is over; it begins with the first call after the stop."""
        if not self._stop.is_set():
            return False
        self._until = self._until or time.monotonic() + _GRACE_S
        return time.monotonic() >= self._until


LEARNERS = Dialect("learners", version=2)
"""The transport's dialect that learners speak with each other."""


def greeting(index: int, gpu: str) -> dict[str, Any]:
    """Returns the message by which a follower opens a session.

    Args:
        index: The follower's number among the run's learners, from 1.
        gpu: An identifier of its GPU, unique over hosts; empty on a CPU.
    """
    return {"ask": "follow", "index": index, "gpu": gpu, "versions": _versions()}


def check_versions(message: Message) -> None:
    """Checks that a follower has the software versions of this process.

    Args:
        message: The follower's greeting.

    Raises:
        UsageError: A version differs.
    """
    told = message.get("versions")
    given = told if isinstance(told, dict) else {}
    for name, own in _versions().items():
        if given.get(name) != own:
            raise UsageError(
                f"{name} ({given.get(name)}) of learner {message['index']} must be "
                f"{own}, that of learner 0; install the same for all learners"
            )


def _versions() -> dict[str, str]:
    """Returns the versions that must be equal for steps to have the same bits."""
    import torch

    python = ".".join(platform.python_version_tuple()[:2])
    return {"tengen": __version__, "torch": str(torch.__version__), "python": python}


class Peer:
    """The other side of a session; a thread reads its messages.

    Args:
        connection: The session's stream; closed by ``close``.
        on_message: Called with each message, and with None at the end of the stream, by
            the thread that reads.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_message: Callable[[dict[str, Any] | None], None],
    ) -> None:
        self._connection = connection
        self._on_message = on_message
        self._sending = threading.Lock()
        self._thread = threading.Thread(
            target=self._read, name="learners-peer", daemon=True
        )

    def begin(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message; nothing happens where the other side is gone. Any thread."""
        data = json.dumps(message).encode() + b"\n"
        with self._sending, contextlib.suppress(OSError):
            self._connection.sendall(data)

    def close(self) -> None:
        """Ends the stream. Any thread; a second call does nothing."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        stream = self._connection.makefile("rb")
        try:
            # A malformed message ends the session like a closed stream.
            wrong = contextlib.suppress(OSError, ValueError, LookupError, TypeError)
            with wrong, stream:
                for line in stream:
                    message = json.loads(line)
                    if not isinstance(message, dict):
                        break
                    self._on_message(message)
        finally:
            self._connection.close()
            self._on_message(None)


_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 600.0
# Characters of a follower's reason that are shown in a line for the user.
_MAX_WORDS = 200


@dataclass(eq=False)
class Member:
    """A follower's state, by the messages that it sent."""

    index: int
    gpu: str
    peer: Peer | None = None
    is_here: bool = False
    is_told: bool = False
    is_ready: bool = False
    is_leaving: bool = False
    is_gone: bool = False
    willing: int = -1
    """Number of the group that it has agreed to make."""
    failed: int = -1
    """Number of the last group that failed for it."""
    why: str = ""
    """Why that group failed."""

    @property
    def is_able(self) -> bool:
        """Whether it may be in the next group."""
        return self.is_ready and not self.is_leaving and not self.is_gone

    def why_over(self, number: int) -> str:
        """Returns why a group with this follower is over; empty where it is not."""
        if self.is_gone:
            return f"learner {self.index} is gone"
        if self.failed == number:
            return f"learner {self.index} says: {self.why}"
        return ""

    def hear(self, message: dict[str, Any]) -> None:
        """Takes a message of the follower; see `tengen.learners.peer`."""
        what = message.get("is")
        if what == "here":
            self.is_here = True
        elif what == "ready":
            self.is_ready = True
        elif what == "willing":
            self.willing = int(message["group"])
        elif what == "failed":
            self.why = " ".join(str(message["why"]).split())[:_MAX_WORDS]
            self.failed = int(message["group"])
        elif what == "leaving":
            self.is_leaving = True

    def send(self, **message: Any) -> None:
        """Sends the follower a message; nothing happens where it is gone."""
        assert self.peer is not None
        self.peer.send(message)


class Pauses:
    """For how long learners are not asked to meet, after meetings that failed.

    Pauses are kept by a learner's index, because a process that failed may come back,
    or another process may take its place.
    """

    def __init__(self) -> None:
        self._lengths: dict[int, float] = {}
        self._ends: dict[int, float] = {}

    def put_off(self, index: int) -> float:
        """Begins a pause, twice as long as the one before; returns its seconds."""
        length = self._lengths.get(index, _FIRST_PAUSE_S)
        self._lengths[index] = min(2 * length, _LONGEST_PAUSE_S)
        self._ends[index] = time.monotonic() + length
        return length

    def end(self, index: int) -> None:
        """Ends a learner's pauses, after a meeting that succeeded."""
        self._lengths.pop(index, None)
        self._ends.pop(index, None)

    def is_over(self, index: int) -> bool:
        """Whether a learner may be asked to meet again."""
        return time.monotonic() >= self._ends.get(index, 0.0)
