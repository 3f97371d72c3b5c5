"""What the leading learner knows of each learner that follows it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tengen.learners.peer import Peer

__all__ = ["Member", "Pauses"]

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
