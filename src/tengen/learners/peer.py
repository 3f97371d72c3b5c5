"""The messages that a leading learner and a follower exchange, as lines of JSON.

The follower opens a session with the leader's service (`tengen.transport`) with a
``greeting`` and sends ``{"is": "here"}``. The messages that follow are listed here; L
is the leader, F the follower and E the ID of a group::

    L  {"do": "prepare", "stage": K, "shared": {...}}   open the experience
    F  {"is": "ready"}
    L  {"do": "group", "group": E, "stage": K, "shared": {...}}
    F  {"is": "willing", "group": E}
    L  {"do": "meet", "group": E, "host": H, "port": P, "name": N, "rank": R, "size": S,
        "backend": B}         form the group; the leader then broadcasts its state to it
    L  {"do": "batch", "group": E, "order": {...}, "num_samples": B, "first": I,
        "last": J, "remaining": X, "asked": Y}                  train on one batch
    L  {"do": "check", "group": E}                              compare the weights
    L  {"do": "lost", "group": E}   stop waiting for the group, because it has failed
    F  {"is": "failed", "group": E, "why": W}   the group has failed for this follower
    F  {"is": "leaving"}    continue without this follower, because it will stop
    L  {"do": "bye"}        the group ends, or continues without this follower

Either side ends the session by closing the stream; the other side notices immediately.
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

# Seconds that a learner waits for the group to complete a step after a stop.
_GRACE_S = 5.0


class Grace:
    """The grace period for completing the current learner step after a stop.

    Args:
        stop: The event that is set to stop; it is never cleared.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the grace period has ended; the first call after a stop starts it."""
        if not self._stop.is_set():
            return False
        self._until = self._until or time.monotonic() + _GRACE_S
        return time.monotonic() >= self._until


LEARNERS = Dialect("learners", version=2)
"""Name and version of the transport dialect between leader and followers."""


def greeting(index: int, gpu: str) -> dict[str, Any]:
    """Returns the message with which a follower opens a session.

    Args:
        index: The follower's index among the run's learners, from 1.
        gpu: An identifier of the follower's GPU, unique across hosts; empty on a CPU.
    """
    return {"ask": "follow", "index": index, "gpu": gpu, "versions": _versions()}


def check_versions(message: Message) -> None:
    """Checks that a follower has the same software versions as this process.

    Args:
        message: The follower's ``greeting``.

    Raises:
        UsageError: A version differs.
    """
    told = message.get("versions")
    given = told if isinstance(told, dict) else {}
    for name, own in _versions().items():
        if given.get(name) != own:
            raise UsageError(
                f"{name} ({given.get(name)}) of learner {message['index']} must be "
                f"{own}, that of learner 0; install the same version for all learners"
            )


def _versions() -> dict[str, str]:
    """Returns the software versions that must be equal for bit-identical steps."""
    import torch

    python = ".".join(platform.python_version_tuple()[:2])
    return {"tengen": __version__, "torch": str(torch.__version__), "python": python}


class Peer:
    """A session's remote learner, leader or follower; a thread reads its messages.

    Args:
        connection: The session's stream; ``close`` closes it.
        on_message: Called on the reader thread with each message, and with None at the
            end of the stream.
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
        """Starts the reader thread."""
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message; does nothing if the stream is closed. Thread-safe."""
        data = json.dumps(message).encode() + b"\n"
        with self._sending, contextlib.suppress(OSError):
            self._connection.sendall(data)

    def close(self) -> None:
        """Shuts the session's stream down. Idempotent and thread-safe."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        stream = self._connection.makefile("rb")
        try:
            # A malformed message ends the session, like a closed stream.
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
# Maximum length of a follower's error message that is shown to the user.
_MAX_WORDS = 200


@dataclass(eq=False)
class Member:
    """The state of a follower as the leader knows it from the follower's messages."""

    index: int
    gpu: str
    peer: Peer | None = None
    is_here: bool = False
    is_told: bool = False
    is_ready: bool = False
    is_leaving: bool = False
    is_gone: bool = False
    willing: int = -1
    """ID of the group that the follower has agreed to join."""
    failed: int = -1
    """ID of the last group that the follower has reported as failed."""
    why: str = ""
    """Reason for the failure of group ``failed``."""

    @property
    def is_able(self) -> bool:
        """Whether the follower can join the next group."""
        return self.is_ready and not self.is_leaving and not self.is_gone

    def why_over(self, number: int) -> str:
        """Returns why group ``number`` has failed for this follower; empty if not."""
        if self.is_gone:
            return f"learner {self.index} has ended"
        if self.failed == number:
            return f"learner {self.index} reports: {self.why}"
        return ""

    def hear(self, message: dict[str, Any]) -> None:
        """Updates the state with a message; see `tengen.learners.peer`."""
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
        """Sends the follower a message; does nothing if the session has ended."""
        assert self.peer is not None
        self.peer.send(message)


class Pauses:
    """Exponential backoff after failed attempts to form a group with a learner.

    A pause belongs to a learner's index, not to a process, because a failed process may
    be replaced.
    """

    def __init__(self) -> None:
        self._lengths: dict[int, float] = {}
        self._ends: dict[int, float] = {}

    def put_off(self, index: int) -> float:
        """Starts a pause, twice as long as the learner's last; returns its seconds."""
        length = self._lengths.get(index, _FIRST_PAUSE_S)
        self._lengths[index] = min(2 * length, _LONGEST_PAUSE_S)
        self._ends[index] = time.monotonic() + length
        return length

    def end(self, index: int) -> None:
        """Resets a learner's backoff after the learner has joined a group."""
        self._lengths.pop(index, None)
        self._ends.pop(index, None)

    def is_over(self, index: int) -> bool:
        """Returns whether a learner's pause has ended."""
        return time.monotonic() >= self._ends.get(index, 0.0)
