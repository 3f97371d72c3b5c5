"""Which of several servers of central inference answers an actor's rows.

Every group of an actor's copies has a number, and by that a home among the servers.
Where its home is lost it goes to another server, and comes back when the home answers
again, but the less soon the more often it was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tengen.errors import RunError
from tengen.inference.central.messages import Stream

__all__ = ["Place", "Places", "servers_in_order"]

_QUIET_S = 2.0
"""Without an answer for so long, a server is asked whether it is alive."""
_ALIVE_S = 3.0
"""It says so within that, or is left; twice as long after each that was left so."""
_MOST_ALIVE_S = 48.0
_FIRST_S = 5.0
"""How long an actor that begins waits for its home alone, which may be starting."""
_PAUSE_S = 10.0
"""From the loss of a home to the first look for it; twice as long after each look that
was in vain and each further loss."""
_MOST_PAUSE_S = 320.0
"""The longest pause; a home that was not lost for so long has the first one again."""


def servers_in_order(number: int, count: int) -> list[int]:
    """Returns the servers in the order in which a group asks them, its home first.

    Groups 0 to n - 1 are spread evenly over the servers, and those of a server that is
    lost evenly over the others: each count is the same, or one more.

    Args:
        number: The group's, of all actors' groups, from 0.
        count: Servers, at least 1.
    """
    turn, home = divmod(number, count)
    others = [(home + place) % count for place in range(1, count)]
    first = turn % max(1, count - 1)
    return [home, *others[first:], *others[:first]]


class Place(NamedTuple):
    """One server, as a group of an actor reaches it."""

    connect: Callable[[], Stream]
    """Opens a session. Raises RunError where nobody answers, UsageError where it is
    refused."""
    model: Callable[[float], int | None]
    """Asks, for so many seconds at most, which model is served: its number, -1 for
    none yet; None where nobody answers."""


class Places:
    """The servers that a group may go to. Used by one thread.

    Where there is one server only, nobody is asked anything: it is waited for.

    Args:
        places: In the order of ``servers_in_order``.
        waits: Called when none of them lets the group in.
        clock: Returns seconds that never go back.
    """

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
        # The one that was lost last, which is asked behind the others.
        self._lost: Place | None = None
        self._alive_s = _ALIVE_S
        self._heard_s = clock()
        self._pause_s = _PAUSE_S
        self._look_s = 0.0
        # When the session with the present one began.
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
        """Takes that the session has ended."""
        self._lost = self._at
        if self._at is self._places[0]:
            if self._clock() - self._entered_s >= _MOST_PAUSE_S:
                self._pause_s = _PAUSE_S
            self._pause()

    def return_home(self) -> Stream | None:
        """Opens a session with the home where it has a model again; None: stay.

        Blocks for some seconds where the home hangs, and hardly else.
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
        """Takes that something was asked now, or answered."""
        self._heard_s = self._clock()

    def is_silent(self) -> bool:
        """Returns whether the server hangs, for whoever waits for its answer. Blocks.

        A batch that takes long is no reason: the server's other threads say so.
        """
        if not self.has_others or self._at is None:
            return False
        if self._clock() - self._heard_s < _QUIET_S:
            return False
        if self._at.model(self._alive_s) is None:
            # Where all are slow, nobody is to go to and fro between them.
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
