"""What serves: one or more equal servers with a queue, first come first served."""

from __future__ import annotations

import heapq
from collections.abc import Generator
from typing import Any

import simpy

__all__ = ["Process", "Station", "Table"]

# Of jobs, so many are looked at together.
_MANY = 4096

Process = Generator[simpy.Event, Any, None]


class Station:
    """Servers with one queue; a job's time of service is known when it arrives.

    When a job ends follows from the jobs before it, so that it needs one event.

    Args:
        env: The clock.
        num_servers: Equal ones, as cores, at least 1.
    """

    def __init__(self, env: simpy.Environment, num_servers: int = 1) -> None:
        self._env = env
        self._num_servers = num_servers
        self._free_s = [0.0] * num_servers
        self._since_s = env.now
        # (begin, end) of what a job occupies, cut off where the time is looked at.
        self._served_s = 0.0
        self._begun: list[tuple[float, float]] = []
        self._most_begun = _MANY

    def work(self, seconds: float) -> simpy.Timeout:
        """Returns what happens when a job that arrives now has been served."""
        return self._env.timeout(self.reserve(seconds))

    def reserve(self, seconds: float) -> float:
        """Takes a job that arrives now; returns the time until it has been served."""
        begin_s = max(self._env.now, self._free_s[0])
        end_s = begin_s + seconds
        heapq.heapreplace(self._free_s, end_s)
        self._begun.append((begin_s, end_s))
        if len(self._begun) > self._most_begun:
            self._settle()
            self._most_begun = _MANY + 2 * len(self._begun)
        return end_s - self._env.now

    def restart(self) -> None:
        """Counts from now on."""
        self._settle()
        self._served_s, self._since_s = 0.0, self._env.now

    def utilisation(self) -> float:
        """Returns the share of the servers' time that was spent since ``restart``."""
        self._settle()
        span_s = self._env.now - self._since_s
        return self._served_s / (span_s * self._num_servers) if span_s > 0 else 0.0

    def _settle(self) -> None:
        now_s, later = self._env.now, []
        for begin_s, end_s in self._begun:
            self._served_s += max(0.0, min(end_s, now_s) - max(begin_s, self._since_s))
            if end_s > now_s:
                # The rest of it is counted at the next look.
                later.append((max(begin_s, now_s), end_s))
        self._begun = later


class Table:
    """Items that are put in and taken out, with room for so many.

    Args:
        env: The clock.
        capacity: Items.
    """

    def __init__(self, env: simpy.Environment, capacity: int) -> None:
        self._env = env
        self._capacity = capacity
        self._num_items = 0
        self._putters: list[simpy.Event] = []
        self._taker: tuple[int, simpy.Event] | None = None
        self.num_taken = 0

    def put(self) -> simpy.Event:
        """Returns what happens when one item has found room."""
        done = self._env.event()
        self._putters.append(done)
        self._settle()
        return done

    def take(self, num_items: int) -> simpy.Event:
        """Returns what happens when so many were there; for one taker at a time."""
        assert self._taker is None
        done = self._env.event()
        self._taker = num_items, done
        self._settle()
        return done

    def _settle(self) -> None:
        while True:
            room = self._capacity - self._num_items
            let_in, self._putters = self._putters[:room], self._putters[room:]
            for one in let_in:
                one.succeed()
            self._num_items += len(let_in)
            if self._taker is None or self._num_items < self._taker[0]:
                return
            num_items, done = self._taker
            self._num_items -= num_items
            self.num_taken += num_items
            self._taker = None
            done.succeed()
