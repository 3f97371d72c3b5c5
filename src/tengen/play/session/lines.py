"""Lines of another program, which may come while a search is under way."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread

__all__ = ["LineReader"]

_MAX_LINE_BYTES = 1 << 16
_MAX_LINES = 1000


class LineReader:
    """Reads lines in a thread of its own. All but ``start`` is for one other thread.

    Args:
        read: Returns some bytes, none at the end of the input. Blocks. Called by the
            reader's thread, which may still wait in it when the process ends.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        # Bounded: a program that floods is not read on.
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_LINES)
        self._peeked: deque[bytes | None] = deque()

    def start(self) -> None:
        """Begins to read; call it once. Until then there is no line."""
        Thread(target=self._fill, name="lines", daemon=True).start()

    def next(self) -> bytes | None:
        """Returns the next line, None at the end of the input. Blocks."""
        return self._peeked.popleft() if self._peeked else self._lines.get()

    def peek(self, *, wait: bool = False) -> tuple[bytes | None, bool]:
        """Returns the line that ``next`` will return, and whether there is one yet.

        Args:
            wait: Whether to block until there is.
        """
        if not self._peeked:
            try:
                self._peeked.append(self._lines.get(wait))
            except queue.Empty:
                return None, False
        return self._peeked[0], True

    def waiting(self) -> Sequence[bytes | None]:
        """Returns the lines that have come, the next one first, at most 1000.

        None is the end of the input.
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
            pass  # a terminal that was closed: the input has ended
        if rest:
            self._lines.put(rest)
        self._lines.put(None)
