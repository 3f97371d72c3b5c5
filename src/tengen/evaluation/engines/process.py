"""A program that plays, seen from outside: started, told lines, heard, and ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self, cast

from tengen.errors import RunError, UsageError, os_reason

__all__ = ["EngineProcess", "EngineRefusal", "short"]

_MAX_ANSWER_BYTES = 1 << 20
_MAX_SHOWN = 60
_QUIT_S = 1.0
_CHUNK_BYTES = 1 << 16


class EngineRefusal(RunError):
    """The engine refuses what it was asked.

    Attributes:
        words: What it said, on one line.
    """

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words


class EngineProcess:
    """One engine process in a process group of its own. Used by one thread.

    ``kill`` may be called from any thread: whoever waits for an answer then gets a
    RunError. A protocol says what an answer is by ``find_answer``, how an engine is
    asked to leave by ``QUIT``, and begins by ``_shake_hands``.

    Args:
        command: The command line, words as a shell splits them; no shell runs it.
        answer_s: How long one answer may take, in seconds.
    """

    PROTOCOL = ""
    """The protocol's name, for people."""
    QUIT = b""
    """The line that asks the engine to leave."""

    def __init__(self, command: str, answer_s: float) -> None:
        """Starts the program. Blocks until it has answered what the protocol asks.

        Raises:
            UsageError: The command names no program, or one of another protocol.
            RunError: It does not answer.
        """
        self._command = command
        self._answer_s = answer_s
        self._last_words = ""
        self._pending = b""
        try:
            words = shlex.split(command)
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (ValueError, IndexError, OSError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            raise UsageError(
                f"engine ({command}) cannot be started, {reason}; correct the command"
            ) from error
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        assert None not in streams
        self._stdin, self._stdout, self._stderr = cast(tuple[IO[bytes], ...], streams)
        self._is_closed = False
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdout, self._stderr):
            self._selector.register(stream, selectors.EVENT_READ)
        try:
            self._shake_hands()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Returns the engine itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the engine."""
        self.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def kill(self) -> None:
        """Ends the engine and what it started, at once. Twice is fine."""
        if self._is_closed:
            return  # its number may be another's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Asks the engine to leave, waits a moment and kills it. Twice is fine."""
        if self._is_closed:
            return
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(self.QUIT)
        self._stdin.close()
        # Not by wait(), which would let go of the group's number before it is killed.
        until = time.monotonic() + _QUIT_S
        while time.monotonic() < until and not self._has_ended():
            time.sleep(_QUIT_S / 100)
        self.kill()
        self._is_closed = True
        self._process.wait()
        self._selector.close()
        self._stdout.close()
        self._stderr.close()

    def _shake_hands(self) -> None:
        """Asks what the protocol begins with."""

    def _tell(self, text: str, line: str) -> None:
        """Sends lines.

        Args:
            text: The lines, each with its end.
            line: What an error says that it was asked.

        Raises:
            RunError: The engine has ended.
        """
        try:
            self._stdin.write(text.encode())
        except (OSError, ValueError) as error:
            raise self._dead(line) from error

    def _read_answer(
        self, line: str, find_answer: Callable[[bytes], tuple[str | None, bytes]]
    ) -> str:
        """Returns the next answer. Blocks up to ``answer_s``.

        Args:
            line: What was asked.
            find_answer: Takes what has been written and not read yet; returns the
                answer in it, None where it is not whole, and what to keep.

        Raises:
            RunError: The engine died, was too slow, or comes to no end.
        """
        until = time.monotonic() + self._answer_s
        while True:
            answer, self._pending = find_answer(self._pending)
            if answer is not None:
                return answer
            if len(self._pending) > _MAX_ANSWER_BYTES:
                raise RunError(
                    f'engine ({self._command}) answered "{line}" without an end; '
                    f"run it by hand"
                )
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise RunError(
                    f'engine ({self._command}) must answer "{line}" within '
                    f"{self._answer_s:g} s; make it faster, or allow it more"
                )
            for key, _ in self._selector.select(left_s):
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if key.fileobj is self._stdout:
                    if not chunk:
                        raise self._dead(line)
                    self._pending += chunk
                elif chunk:
                    self._hear(chunk)
                else:
                    self._selector.unregister(key.fileobj)

    def _refusal(self, line: str, words: str) -> EngineRefusal:
        return EngineRefusal(
            f'engine ({self._command}) refused "{line}": {words}; '
            f"give it the same rules, or another engine",
            words,
        )

    def _stranger(self, line: str, answer: str) -> RunError:
        return RunError(
            f'engine ({self._command}) answered "{line}" by {short(answer)}, which is '
            f"no {self.PROTOCOL}; run it by hand"
        )

    def _has_ended(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _hear(self, chunk: bytes) -> None:
        lines = chunk.decode(errors="replace").split("\n")
        said = (line for line in reversed(lines) if line.strip())
        self._last_words = next(said, self._last_words)

    def _dead(self, line: str) -> RunError:
        self.kill()
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        for key, _ in self._selector.select(0):
            if key.fileobj is self._stderr:
                self._hear(os.read(key.fd, _CHUNK_BYTES))
        said = f', saying "{short(self._last_words)}"' if self._last_words else ""
        return RunError(
            f'engine ({self._command}) ended when it was asked "{line}"{said}; '
            f"run it by hand"
        )


def short(text: str) -> str:
    """Returns a text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
