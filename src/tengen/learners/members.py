"""What the learner that leads knows of those that follow it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tengen.learners.peer import Peer

__all__ = ["Member", "Pauses"]

_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 600.0
# Of what a follower says, in a line for people.
_MAX_WORDS = 200


@dataclass(eq=False)
class Member:
    """A follower, as its messages say."""

    index: int
    gpu: str
    peer: Peer | None = None
    is_here: bool = False
    is_told: bool = False
    is_ready: bool = False
    is_leaving: bool = False
    is_gone: bool = False
    willing: int = -1
    """The group that it has agreed to make."""
    failed: int = -1
    """The last group that failed for it."""
    why: str = ""
    """How that one did."""

    @property
    def is_able(self) -> bool:
        """Whether it may be in the next group."""
        return self.is_ready and not self.is_leaving and not self.is_gone

    def why_over(self, number: int) -> str:
        """Says why a group with this follower is over; empty where it is not."""
        if self.is_gone:
            return f"learner {self.index} is gone"
        if self.failed == number:
            return f"learner {self.index} says: {self.why}"
        return ""

    def hear(self, message: dict[str, Any]) -> None:
        """Takes what it says; see `tengen.learners.peer`."""
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
        """Tells it something; nothing happens where it is gone."""
        assert self.peer is not None
        self.peer.send(message)


class Pauses:
    """For how long which learners are asked to no meeting, as their last ones failed.

    They are by index, as a process that failed may come again, or another one may.
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
        """Takes note of a meeting that did not fail."""
        self._lengths.pop(index, None)
        self._ends.pop(index, None)

    def is_over(self, index: int) -> bool:
        """Whether a learner may be asked."""
        return time.monotonic() >= self._ends.get(index, 0.0)
