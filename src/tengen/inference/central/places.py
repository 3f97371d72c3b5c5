"""Chooses which of several central inference servers answers an actor's rows.

Every group of an actor's copies has a number, which gives it a home server. When the
home is lost, the group goes to another server, and comes back once the home answers
again. The more often the home was lost, the longer the group waits before coming back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tengen.errors import RunError
from tengen.inference.central.messages import Stream

__all__ = ["Place", "Places", "servers_in_order"]

_ALIVE_S = 3.0
"""Seconds in which a server must say that it is alive, or the group leaves it; doubled
each time that a server was left so."""
_MOST_ALIVE_S = 48.0
_FIRST_S = 5.0
"""Seconds that a new actor waits only for its home, which may still be starting."""
_MOST_PAUSE_S = 320.0
"""The longest such pause in seconds; after so long without a loss the pause begins at
``Places.pause_s`` again."""


def servers_in_order(number: int, count: int) -> list[int]:
    """Returns the servers in the order in which a group asks them, its home first.

    Groups 0 to n - 1 are spread evenly over the servers, so that their numbers of
    groups differ by at most one. The groups of a lost server are spread over the others
    in the same way.

    Args:
        number: The group's number among all actors' groups, from 0.
        count: Number of servers, at least 1.
    """
    turn, home = divmod(number, count)
    others = [(home + place) % count for place in range(1, count)]
    first = turn % max(1, count - 1)
    return [home, *others[first:], *others[:first]]


class Place(NamedTuple):
    """How a group of an actor reaches one server."""

    connect: Callable[[], Stream]
    """Opens a session. Raises RunError where nobody answers, UsageError where the
    session is refused."""
    model: Callable[[float], int | None]
    """Returns the number of the model that is served, -1 for none yet, None where
    nobody answers within the given seconds."""


class Places:
    """The servers that a group may go to. Used by one thread.

    A single server is never checked: the group just waits for it.

    Args:
        places: The servers, in the order of ``servers_in_order``.
        waits: Called when no server lets the group in.
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
        # The server that was lost last, which is asked after the others.
        self._lost: Place | None = None
        self._alive_s = _ALIVE_S
        self._heard_s = clock()
        self._pause_s = self.pause_s
        self._look_s = 0.0
        # When the session with the current server began.
        self._entered_s = clock()

    @property
    def has_others(self) -> bool:
        """Whether there is more than one server."""
        return len(self._places) > 1

    def connect(self) -> Stream:
        """Opens a session with the first server that lets the group in. Blocks.

        Raises:
            RunError: Nobody answers.
            UsageError: The session is refused.
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
        """Opens a session with the home if it has a model again; None: stay.

        Blocks for some seconds where the home hangs; otherwise hardly.
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
        """Records that a request was just sent or answered."""
        self._heard_s = self._clock()

    def is_silent(self) -> bool:
        """Returns whether the server hangs while an answer is awaited. Blocks.

        A server whose batch takes long does not hang: another of its threads answers.
        """
        if not self.has_others or self._at is None:
            return False
        if self._clock() - self._heard_s < self.quiet_s:
            return False
        if self._at.model(self._alive_s) is None:
            # Doubled, so that groups do not go to and fro where all servers are slow.
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
