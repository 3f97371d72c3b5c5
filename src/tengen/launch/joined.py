"""A started process as the runner sees it, with its connection and heartbeats."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable

from tengen.errors import RunError
from tengen.launch.launcher import Handle
from tengen.launch.messages import Alive, Begun, Message, Progress, Stop
from tengen.launch.wire import Stream, Ticket

_JOINING_S = 0.1
_BEGUN_S = 60.0
_UNSEEN_S = 60.0
"""The maximum wait in seconds for the end of a killed process."""
_LOOK_S = 1.0
"""Polling interval for a process that sends no messages, in seconds."""
_FIRST_LOOK_S = 0.002
_WAITING_S = 10.0
"""Interval in seconds between reports that a process waits for cluster resources."""


class Child:
    """A role process and the runner's connection to it.

    Args:
        ticket: The ticket that the process was given.
        handle: The handle of the process.
        on_begun: Called with the message ``Begun`` when the process has joined.

    Attributes:
        has_joined: Whether the process has connected to the runner; it may have begun a
            turn.
        silence: Why the process was killed, if its heartbeats stopped; else "".
    """

    def __init__(
        self,
        ticket: Ticket,
        handle: Handle,
        on_begun: Callable[[Begun], None] = lambda begun: None,
    ) -> None:
        self._ticket = ticket
        self._handle = handle
        self._on_begun = on_begun
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self.has_joined = False
        self._unsent: list[Message] = []
        self._start_s = time.monotonic()
        self._told_s = self._start_s
        self._has_waited = False
        # The deadline of the next heartbeat, and the reason if it passes.
        self._alive_until_s = math.inf
        self._otherwise = ""
        self.silence = ""

    def send(self, message: Message) -> None:
        """Sends a message to the process, if the process still exists. Thread-safe.

        ``Stop`` kills a process that has not joined, because it has nothing to save.
        """
        with self._lock:
            stream = self._stream
            if stream is None:
                self._unsent.append(message)
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.send(message)
        elif isinstance(message, Stop):
            self._handle.kill()

    def receive(self) -> Message | None:
        """Returns the next message, or None if the process has ended. Blocks.

        While the process waits for cluster resources, returns a ``Progress`` message.
        Handles heartbeats: kills the process if the next one is late. A watchdog inside
        the process could not detect a C extension that loops and holds the GIL.
        """
        if self._stream is None:
            found = self.join()
            if not isinstance(found, Begun):
                return found
            self._on_begun(found)
            if self._has_waited:
                return Progress({"stage": ""})
        assert self._stream is not None
        while True:
            left_s = self._alive_until_s - time.monotonic()
            try:
                message = self._stream.receive(min(_LOOK_S, left_s))
            except TimeoutError:
                # Poll, because a process may be alive after its Ray actor has died.
                if self._handle.poll().end:
                    return None
                if time.monotonic() >= self._alive_until_s:
                    self._alive_until_s, self.silence = math.inf, self._otherwise
                    self.kill()
                continue
            except RunError:
                return None
            if isinstance(message, Alive):
                self._alive_until_s = time.monotonic() + message.within_s
                self._otherwise = message.otherwise
                continue
            if not isinstance(message, Progress):
                self._alive_until_s = math.inf  # the turn has ended
            return message

    def kill(self) -> None:
        """Kills the process immediately. Thread-safe; does not block."""
        self._handle.kill()

    def end(self, timeout_s: float) -> str:
        """Waits for the process to end; returns a description of its end. Blocks.

        Args:
            timeout_s: Seconds after which the process is killed.
        """
        self._ticket.close()
        if self._stream is not None:
            self._stream.close()
        until = time.monotonic() + timeout_s
        pause_s = _FIRST_LOOK_S
        was_killed = False
        while not (how := self._handle.poll().end):
            if time.monotonic() >= until:
                if was_killed:
                    # Give up, because the actor or rank that watches it may hang.
                    how = "an unobserved end"
                    break
                was_killed = True
                until = time.monotonic() + _UNSEEN_S
                self._handle.kill()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _JOINING_S)
        # Close the connection of a process that joined just before it ended.
        if self._stream is None and (late := self._ticket.wait(0.0)) is not None:
            late.close()
        return how

    def join(self) -> Message | None:
        """Waits until the process has joined; returns its first message. Blocks.

        Returns None if the process has ended, and ``Progress`` if the process waits for
        cluster resources.
        """
        while (stream := self._ticket.wait(_JOINING_S)) is None:
            found = self._handle.poll()
            if found.end:
                return None
            now_s = time.monotonic()
            if not found.has_room and now_s - self._told_s >= _WAITING_S:
                self._told_s = now_s
                self._has_waited = True
                stage = "waiting for room in the cluster"
                waiting_s = now_s - self._start_s
                return Progress({"stage": stage, "waiting_s": waiting_s})
        try:
            # The process sends ``Begun`` after the hub has accepted its ticket.
            begun = stream.receive(_BEGUN_S)
        except (TimeoutError, RunError):
            begun = None
        with self._lock:
            self._stream = stream
            self.has_joined = begun is not None
            unsent, self._unsent = self._unsent, []
        if begun is not None:
            for message in unsent:
                self.send(message)
        return begun
