"""Reads the lines of another program while a search runs."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread

__all__ = ["LineReader"]

_MAX_LINE_BYTES = 1 << 16
_MAX_LINES = 1000


class LineReader:
    """Reads lines in its own thread. One other thread calls the methods.

    Args:
        read: Returns some bytes, none at the end of the input. Blocks. It is called by
            the reader's thread, which may still wait in it when the process ends.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        # Bounded, so that a program that floods is slowed down.
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_LINES)
        self._peeked: deque[bytes | None] = deque()

    def start(self) -> None:
        """Begins to read; call it once, before any other method."""
        Thread(target=self._fill, name="lines", daemon=True).start()

    def next(self) -> bytes | None:
        """Returns the next line, None at the end of the input. Blocks."""
        return self._peeked.popleft() if self._peeked else self._lines.get()

    def peek(self, *, wait: bool = False) -> tuple[bytes | None, bool]:
        """Returns the line that ``next`` will return, and whether it has arrived.

        Args:
            wait: Whether to block until a line arrives.
        """
        if not self._peeked:
            try:
                self._peeked.append(self._lines.get(wait))
            except queue.Empty:
                return None, False
        return self._peeked[0], True

    def waiting(self) -> Sequence[bytes | None]:
        """Returns the lines that have arrived, the next one first, at most 1000.

        None stands for the end of the input.
        """
        while len(self._peeked) < _MAX_LINES:
            try:
                self._peeked.append(self._lines.get_nowait())
            except queue.Empty:
                break
        return self._peeked

    def _fill(self) -> None:
        rest = b""
        try:
            while chunk := self._read():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put(line[:_MAX_LINE_BYTES])
                rest = rest[:_MAX_LINE_BYTES]
        except OSError:
            pass  # The terminal was closed, which ends the input.
        if rest:
            self._lines.put(rest)
        self._lines.put(None)
