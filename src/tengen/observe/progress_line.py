"""A progress line on stderr for slow commands."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO

_is_silent = False
_open: set[ProgressLine] = set()


class ProgressLine:
    """Shows a command's activity, from half a second after its start until closed.

    On a terminal the line is redrawn in place and finally erased. Otherwise a new line
    is printed every 30 seconds, so that logs show activity. A background thread writes;
    ``tell`` only stores the text and is cheap.

    ``with ProgressLine("playing") as line:`` opens and closes the line. Print to stdout
    only after the line is closed, or with ``leave``.

    Attributes:
        patience_s: Seconds until the line first appears on a terminal, so that fast
            commands show no progress.
        draw_s: Seconds between two drawings on a terminal.
        log_s: Seconds between two lines of a log.
    """

    patience_s = 0.5
    draw_s = 0.5
    log_s = 30.0

    def __init__(self, text: str, stream: IO[str] | None = None) -> None:
        """Creates the line without showing it.

        Args:
            text: The current activity.
            stream: The output stream; None for stderr.
        """
        self._text = text
        self._stream = stream or sys.stderr
        has_escapes = os.environ.get("TERM") != "dumb"
        self._is_live = has_escapes and self._stream.isatty()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._was_drawn = False
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressLine:
        """Starts the timer and the background thread that writes the line."""
        if not _is_silent:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
            _open.add(self)
        return self

    def __exit__(self, *details: object) -> None:
        """Stops the background thread and erases the line."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        _open.discard(self)
        self._wipe()

    def tell(self, text: str) -> None:
        """Changes the text of the line. Thread-safe."""
        self._text = text

    def leave(self, text: str, stream: IO[str] | None = None) -> None:
        """Prints ``text`` to ``stream`` (None: stdout), above the progress line."""
        with self._lock:
            self._wipe()
            print(text, file=stream, flush=True)

    def _show(self) -> None:
        start = time.monotonic()
        wait_s = self.patience_s if self._is_live else self.log_s
        while not self._stop.wait(wait_s):
            minutes, seconds = divmod(int(time.monotonic() - start), 60)
            text = f"{self._text} ({minutes}:{seconds:02})"
            with self._lock:
                if self._is_live:
                    columns = shutil.get_terminal_size().columns
                    self._write(f"\r\033[K{text[: columns - 1]}")
                    wait_s = self.draw_s
                else:
                    self._write(f"tengen: {text}\n")
                self._was_drawn = True

    def _wipe(self) -> None:
        if self._was_drawn and self._is_live:
            self._write("\r\033[K")
        self._was_drawn = False

    def _write(self, text: str) -> None:
        # A closed stream must not end the command.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Context manager that suppresses progress lines, as ``--quiet`` does."""
    global _is_silent
    before, _is_silent = _is_silent, True
    try:
        yield
    finally:
        _is_silent = before


@contextlib.contextmanager
def wiped() -> Iterator[None]:
    """Context manager that erases progress lines, so that other code can use stderr."""
    with contextlib.ExitStack() as stack:
        for line in list(_open):
            stack.enter_context(line._lock)
            line._wipe()
        yield
