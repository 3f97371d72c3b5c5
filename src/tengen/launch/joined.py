"""The runner's view of a started process: its connection and its heartbeats."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from tengen.errors import RunError
from tengen.launch.launcher import Handle
from tengen.launch.messages import Begun, Message, Progress, Stop
from tengen.launch.wire import Stream, Ticket

__all__ = ["Child", "Silence"]

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
        self._has_joined = False
        self._unsent: list[Message] = []
        self._start_s = time.monotonic()
        self._told_s = self._start_s
        self._has_waited = False

    @property
    def has_joined(self) -> bool:
        """Whether the process has connected to the runner; it may have begun a turn."""
        return self._has_joined

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
            try:
                return self._stream.receive(_LOOK_S)
            except TimeoutError:
                # Poll, because a process may be alive after its Ray actor has died.
                if self._handle.poll().end:
                    return None
            except RunError:
                return None

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
            self._has_joined = begun is not None
            unsent, self._unsent = self._unsent, []
        if begun is not None:
            for message in unsent:
                self.send(message)
        return begun


class Silence:
    """A watchdog that kills a process whose heartbeats stop during a turn.

    A thread inside the process could not detect a C extension that loops and holds the
    GIL, because the thread could not run. Watching starts with the first ``heard``.

    Args:
        kill: Kills the process without blocking. Called by a separate thread.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._is_over = False
        self._until_s = 0.0
        self._otherwise = ""
        self._why = ""

    def heard(self, within_s: float, otherwise: str) -> None:
        """Records a heartbeat.

        Args:
            within_s: Seconds in which the next heartbeat must arrive; otherwise the
                process is killed.
            otherwise: The reason to report if the process is killed.
        """
        with self._changed:
            until_s = time.monotonic() + within_s
            is_sooner = until_s < self._until_s
            self._until_s, self._otherwise = until_s, otherwise
            # Start only one thread per turn, because heartbeats may be frequent.
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            elif is_sooner:
                self._changed.notify()

    def end(self) -> str:
        """Stops watching; returns why the process was killed, or "" if it was not."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
            return self._why

    def _watch(self) -> None:
        with self._changed:
            while (
                not self._is_over and (left_s := self._until_s - time.monotonic()) > 0
            ):
                self._changed.wait(left_s)
            if self._is_over:
                return
            self._why = self._otherwise
        self._kill()
