"""A process that a launcher started, and the connection by which it has joined."""

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
"""Seconds after a kill in which the end of the process must be seen."""
_LOOK_S = 1.0
"""Seconds between two looks at a process that says nothing."""
_FIRST_LOOK_S = 0.002
_WAITING_S = 10.0
"""Seconds after which the view says that a cluster has no room for a process."""


class Child:
    """One process with some roles, and the connection to it.

    Args:
        ticket: That the process has.
        handle: Of the process.
        on_begun: Called once with what the process says of itself.
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
        """Whether the process has said that it is there, and may have had a turn."""
        return self._has_joined

    def send(self, message: Message) -> None:
        """Sends a message; does nothing if the process is gone. Any thread.

        A process that has not joined when it is told to stop is killed: it has nothing
        to save.
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
        """Returns the next message, or None when the process is gone. Blocks.

        While a cluster has no room for the process it returns progress that says so.
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
                # What held the process may be gone, as a cluster's actor, and not it.
                if self._handle.poll().end:
                    return None
            except RunError:
                return None

    def kill(self) -> None:
        """Kills the process at once. Does not block; any thread."""
        self._handle.kill()

    def end(self, timeout_s: float) -> str:
        """Waits for the end of the process, and says how it ended, in words. Blocks.

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
                    # What holds it on another host may be stuck.
                    how = "an end that nobody saw"
                    break
                was_killed = True
                until = time.monotonic() + _UNSEEN_S
                self._handle.kill()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _JOINING_S)
        # It may have joined at the last moment.
        if self._stream is None and (late := self._ticket.wait(0.0)) is not None:
            late.close()
        return how

    def join(self) -> Message | None:
        """Waits until the process has joined; returns its first message. Blocks.

        None means that it ended first, and Progress that a cluster has no room for it.
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
            # Before this message the process waits for an answer of the hub.
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
    """Notices that a process no longer sends the signs of life that it promised.

    A thread of the process itself cannot notice that an extension spins in C code and
    keeps the interpreter's lock, because that thread does not run either. Watches one
    turn, and nothing before ``heard``.

    Args:
        kill: Ends the process; does not block. Called by a thread of its own.
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
        """Takes a sign of life.

        Args:
            within_s: Seconds until the next sign must come, or the process is killed.
            otherwise: The reason to report if the process is killed.
        """
        with self._changed:
            until_s = time.monotonic() + within_s
            is_sooner = until_s < self._until_s
            self._until_s, self._otherwise = until_s, otherwise
            # One thread for a whole turn, because hundreds of actors send hundreds of
            # signs a second.
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            elif is_sooner:
                self._changed.notify()

    def end(self) -> str:
        """Ends the watching; returns why the process was killed, "" if it was not."""
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
