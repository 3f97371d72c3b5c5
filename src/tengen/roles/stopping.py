"""Turns Ctrl-C, SIGTERM, a closed terminal and the file RUN/STOP into one event."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Literal

from tengen.own_process import is_own_process
from tengen.run import RunDirectory

_POLL_S = 0.2


class StopListener:
    """A context manager that listens for signals and the STOP file, which end a run.

    Signals are handled only if ``with`` runs on the main thread. An ignored signal
    stays ignored: ``nohup`` ignores SIGHUP, and a shell ignores SIGINT in the
    background commands of a script.

    If another program uses tengen as a library, the third Ctrl-C raises
    KeyboardInterrupt, and SIGHUP is left to that program. Otherwise SIGHUP, which is
    sent when the terminal is closed, also ends the run; further output is discarded.

    Attributes:
        event: Set when the run must end; never cleared.
        reason: ``interrupted`` by a signal or ``stopped`` by the file; None before.
        is_urgent: Whether another Ctrl-C came after ``on_stop`` handled the first one.

    Args:
        run: The run.
        event: The event to set; None creates an event.
        on_second: Called by another thread when ``is_urgent`` is set.
    """

    def __init__(
        self,
        run: RunDirectory,
        event: threading.Event | None = None,
        on_second: Callable[[], None] = lambda: None,
    ) -> None:
        self.event = event or threading.Event()
        self.reason: Literal["interrupted", "stopped"] | None = None
        self.is_urgent = False
        self._run = run
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._on_stop: Callable[[], None] = lambda: None
        self._was_told = False
        self._on_second = on_second
        self._was_interrupted = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._previous: dict[signal.Signals, Any] = {}
        # Descriptors of the standard streams that are terminals.
        self._terminals: list[int] = []

    def tell(self, on_stop: Callable[[], None]) -> None:
        """Registers ``on_stop``, which another thread calls once when ``event`` is set.

        A later call replaces ``on_stop``. Does not block.
        """
        with self._lock:
            self._on_stop, self._was_told = on_stop, False

    def __enter__(self) -> StopListener:
        if threading.current_thread() is threading.main_thread():
            numbers = [signal.SIGINT, signal.SIGTERM]
            if is_own_process():
                self._terminals = [number for number in (0, 1, 2) if os.isatty(number)]
                numbers.append(signal.SIGHUP)
            for number in numbers:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._on_signal)
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        for number, handler in self._previous.items():
            # None: the handler was set by C code, so Python cannot restore it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            # Discard further output, because writing to a closed terminal would fail.
            for terminal in self._terminals:
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, terminal)
                os.close(nowhere)
            self._terminals = []
        if number == signal.SIGINT:
            # Count a second SIGINT only after ``on_stop``, as some programs send two.
            if self._was_interrupted and self._was_told:
                if self.is_urgent and not is_own_process():
                    raise KeyboardInterrupt
                self.is_urgent = True
            self._was_interrupted = True
        self._set("interrupted")

    def end(self) -> None:
        """Ends the run as the STOP file does. Does not block; thread-safe."""
        self._set("stopped")

    def _set(self, reason: Literal["interrupted", "stopped"]) -> None:
        # The signal handler calls this, so it must not take a lock or write to a pipe.
        if self.reason is None:
            self.reason = reason
        self.event.set()

    def _look(self) -> None:
        if not self.event.is_set() and self._run.stop_requested():
            self._set("stopped")

    def _listen(self) -> None:
        was_urgent = False
        while not self._is_over.wait(_POLL_S):
            self._look()
            if self.is_urgent and not was_urgent:
                was_urgent = True
                self._on_second()
            if self.event.is_set():
                with self._lock:
                    on_stop, is_new = self._on_stop, not self._was_told
                    self._was_told = True
                if is_new:
                    on_stop()
