"""Assigns groups of an actor's environments to central inference servers.

The number of a group determines its home server. If the home server is lost, the group
moves to another server, and returns when the home server replies again. The pause
before the return grows with every loss of the home server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tengen.errors import RunError
from tengen.inference.central.messages import Stream

__all__ = ["Place", "Places", "servers_in_order"]

_ALIVE_S = 3.0
"""Seconds that the group waits for the result of this check before it leaves the
server; doubled each time that it leaves a server."""
_MOST_ALIVE_S = 48.0
_FIRST_S = 5.0
"""Seconds that a new actor waits only for its home, which may still be starting."""
_MOST_PAUSE_S = 320.0
"""The longest such pause in seconds; after so long without a loss the pause begins at
``Places.pause_s`` again."""


def servers_in_order(number: int, count: int) -> list[int]:
    """Returns server indices in the order in which a group tries them, home first.

    Groups 0 to n - 1 are distributed evenly over the servers, so that the numbers of
    groups per server differ by at most one. The groups of a lost server are distributed
    over the other servers in the same way.

    Args:
        number: Index of the group among all actors' groups, from 0.
        count: Number of servers, at least 1.
    """
    turn, home = divmod(number, count)
    others = [(home + place) % count for place in range(1, count)]
    first = turn % max(1, count - 1)
    return [home, *others[first:], *others[:first]]


class Place(NamedTuple):
    """Functions with which a group reaches one server."""

    connect: Callable[[], Stream]
    """Opens a session. Raises RunError if there is no reply, and UsageError if the
    server refuses the session."""
    model: Callable[[float], int | None]
    """Returns the number of the served model, -1 if there is none yet, or None if there
    is no reply within the given seconds."""


class Places:
    """The servers of a group. Used by one thread.

    If there is only one server, the group never checks it, but waits for it.

    Args:
        places: The servers, in the order of ``servers_in_order``.
        waits: Called if no server accepts the group.
        clock: A monotonic clock in seconds.

    Attributes:
        quiet_s: Seconds without an answer after which a server is asked whether it is
            alive.
        pause_s: Seconds from the loss of a home to the first check for it; doubled
            after each check that failed and each further loss.
    """

    quiet_s = 2.0
    pause_s = 10.0

    def __init__(
        self,
        places: Sequence[Place],
        waits: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = list(places)
        self._waits = waits
        self._clock = clock
        self._begun_s: float | None = None
        self._at: Place | None = None
        # The server that was lost last, which is tried after the others.
        self._lost: Place | None = None
        self._alive_s = _ALIVE_S
        self._heard_s = clock()
        self._pause_s = self.pause_s
        self._look_s = 0.0
        # Time at which the session with the current server began.
        self._entered_s = clock()

    @property
    def has_others(self) -> bool:
        """Whether there is more than one server."""
        return len(self._places) > 1

    def connect(self) -> Stream:
        """Opens a session with the first server that accepts the group. Blocks.

        Raises:
            OSError, RunError: No server accepts the group.
            UsageError: A server refuses the session.
        """
        now_s = self._clock()
        if self._begun_s is None:
            self._begun_s = now_s
        tried = sorted(self._places, key=lambda place: place is self._lost)
        if self._at is None and now_s < self._begun_s + _FIRST_S:
            tried = tried[:1]
        error: Exception | None = None
        for place in tried:
            try:
                stream = place.connect()
            except (OSError, RunError) as failure:
                error = failure
                continue
            self._enter(place)
            return stream
        if len(tried) == len(self._places):
            self._waits()
        assert error is not None
        raise error

    def lose(self) -> None:
        """Records that the session has ended."""
        self._lost = self._at
        if self._at is self._places[0]:
            if self._clock() - self._entered_s >= _MOST_PAUSE_S:
                self._pause_s = self.pause_s
            self._pause()

    def return_home(self) -> Stream | None:
        """Opens a session with the home server if it has a model; None: stay.

        Blocks for some seconds if the home server hangs.
        """
        home = self._places[0]
        if self._at is home or self._clock() < self._look_s:
            return None
        self._pause()
        model = home.model(_ALIVE_S)
        if model is None or model < 0:
            return None
        try:
            stream = home.connect()
        except (OSError, RunError):
            return None
        self._enter(home)
        return stream

    def hears(self) -> None:
        """Records the time of a request or of a reply."""
        self._heard_s = self._clock()

    def is_silent(self) -> bool:
        """Returns whether the server hangs, while the group waits for a reply. Blocks.

        A server with a slow batch does not count as hanging, because another of its
        threads replies to the check.
        """
        if not self.has_others or self._at is None:
            return False
        if self._clock() - self._heard_s < self.quiet_s:
            return False
        if self._at.model(self._alive_s) is None:
            # Doubled, so that groups do not oscillate if all servers are slow.
            self._alive_s = min(_MOST_ALIVE_S, 2 * self._alive_s)
            return True
        self.hears()
        return False

    def _enter(self, place: Place) -> None:
        self._at, self._lost = place, None
        self._entered_s = self._clock()
        self.hears()

    def _pause(self) -> None:
        self._look_s = self._clock() + self._pause_s
        self._pause_s = min(_MOST_PAUSE_S, 2 * self._pause_s)
