"""Assigns groups of environment copies to central inference servers.

A group's index determines its home server. If the home server is lost, the group uses
another server, and returns when the home server replies again. The time between checks
of the home server grows exponentially (back-off).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tengen.errors import RunError
from tengen.inference.central.messages import Stream

_ALIVE_S = 3.0
"""Seconds that a group waits for a server's reply to a liveness check before it leaves
the server; doubled each time that the group leaves a server."""
_MOST_ALIVE_S = 48.0
_FIRST_S = 5.0
"""Seconds for which a new group tries only its home server, which may be starting."""
_MOST_PAUSE_S = 320.0
"""Maximum back-off in seconds before a check of a lost home server. A session of this
length with the home server resets the back-off to ``Places.pause_s``."""


def servers_in_order(number: int, count: int) -> list[int]:
    """Returns server indices in the order in which a group tries them, home first.

    Groups 0 to n - 1 are distributed evenly over the servers, so that the numbers of
    groups per server differ by at most one. The groups of a lost server are distributed
    over the other servers in the same way.

    Args:
        number: Index of the group among the groups of all actors, from 0.
        count: Number of servers, at least 1.
    """
    turn, home = divmod(number, count)
    others = [(home + place) % count for place in range(1, count)]
    first = turn % max(1, count - 1)
    return [home, *others[first:], *others[:first]]


class Place(NamedTuple):
    """Functions with which a group of environments reaches one inference server."""

    connect: Callable[[], Stream]
    """Opens a session. Raises RunError if the server does not reply, and UsageError if
    the server refuses the session."""
    model: Callable[[float], int | None]
    """Returns the number of the server's model, -1 if the server has no model yet, or
    None if it does not reply within the given number of seconds."""


class Places:
    """The inference servers of a group, and the one in use. Used by one thread.

    If there is only one server, the group never checks it, but waits for its replies.

    Args:
        places: The servers, in the order of ``servers_in_order``.
        waits: Called when no server accepts the group, so that it has to wait.
        clock: A monotonic clock in seconds.

    Attributes:
        quiet_s: Seconds without a reply after which a server's liveness is checked.
        pause_s: Initial back-off in seconds from the loss of a home server to its first
            check; doubled by each check and each further loss.
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
        # The server that was lost most recently, which is tried after all others.
        self._lost: Place | None = None
        self._alive_s = _ALIVE_S
        self._heard_s = clock()
        self._pause_s = self.pause_s
        self._look_s = 0.0
        # The start time of the session with the current server.
        self._entered_s = clock()

    @property
    def has_others(self) -> bool:
        """Whether the group has more than one server."""
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
        """Records that the session with the current server is lost."""
        self._lost = self._at
        if self._at is self._places[0]:
            if self._clock() - self._entered_s >= _MOST_PAUSE_S:
                self._pause_s = self.pause_s
            self._pause()

    def return_home(self) -> Stream | None:
        """Opens a session with the home server if possible; otherwise returns None.

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
        """Records the time at which a request was sent or a reply was received."""
        self._heard_s = self._clock()

    def is_silent(self) -> bool:
        """Checks the server if its reply is late, and returns whether it hangs. Blocks.

        A server that evaluates a slow batch does not hang, because another of its
        threads replies to the check.
        """
        if not self.has_others or self._at is None:
            return False
        if self._clock() - self._heard_s < self.quiet_s:
            return False
        if self._at.model(self._alive_s) is None:
            # Double the time limit, so groups do not oscillate between slow servers.
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
