"""A program that speaks GTP, seen from outside: asked, answered, and ended.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2".
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from types import TracebackType
from typing import IO, cast

from tengen.errors import RunError, UsageError, os_reason

__all__ = ["GtpEngine", "GtpRefusal"]

_NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove")
_MAX_ANSWER_BYTES = 1 << 20
_MAX_SHOWN = 60
_QUIT_S = 1.0
_CHUNK_BYTES = 1 << 16


class GtpRefusal(RunError):
    """The engine answered ``?``: it refuses what it was asked.

    Attributes:
        words: What it said, on one line.
    """

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words


class GtpEngine:
    """One engine process in a process group of its own. Used by one thread.

    ``kill`` may be called from any thread: whoever waits for an answer then gets a
    RunError.

    Args:
        command: The command line, words as a shell splits them; no shell runs it.
        answer_s: How long one answer may take, in seconds.

    Attributes:
        commands: What the engine says it knows.
    """

    def __init__(self, command: str, answer_s: float) -> None:
        """Starts the program and asks what it knows. Blocks until it has said so.

        Raises:
            UsageError: The command names no program, or one that is no GTP engine of
                version 2.
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

    def __enter__(self) -> GtpEngine:
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

    def ask(self, line: str) -> str:
        """Returns the answer to a command, without its ``=`` and the spaces around it.

        Blocks up to ``answer_s``.

        Raises:
            GtpRefusal: The engine refuses.
            RunError: It died, took too long, or answered what is no GTP.
        """
        try:
            self._stdin.write(f"{line}\n".encode())
        except (OSError, ValueError) as error:
            raise self._dead(line) from error
        answer = self._read_answer(line)
        if answer.startswith("="):
            return answer[1:].strip()
        if answer.startswith("?"):
            words = _short(answer[1:])
            raise GtpRefusal(
                f'engine ({self._command}) refused "{line}": {words}; '
                f"give it the same rules, or another engine",
                words,
            )
        raise RunError(
            f'engine ({self._command}) answered "{line}" by {_short(answer)}, which is '
            f"no GTP; run it by hand"
        )

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
        with contextlib.suppress(OSError):
            self._stdin.write(b"quit\n")
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

    def _has_ended(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _shake_hands(self) -> None:
        if (version := self.ask("protocol_version")) != "2":
            raise UsageError(
                f"engine ({self._command}) must speak GTP 2, not {_short(version)}; "
                f"start it so"
            )
        self.commands = frozenset(self.ask("list_commands").split())
        missing = [name for name in _NEEDED if name not in self.commands]
        if missing:
            raise UsageError(
                f"engine ({self._command}) must know {', '.join(missing)}; "
                f"use one that plays"
            )

    def _read_answer(self, line: str) -> str:
        """Returns the next answer, its lines joined by newlines."""
        until = time.monotonic() + self._answer_s
        while True:
            # Empty lines before an answer are none.
            self._pending = self._pending.replace(b"\r", b"").lstrip(b"\n\t ")
            answer, end, rest = self._pending.partition(b"\n\n")
            if end:
                self._pending = rest
                return answer.decode(errors="replace")
            if self._pending[:1] not in (b"", b"=", b"?") and b"\n" in self._pending:
                # No end of it follows where the program is none that speaks GTP.
                return self._pending.decode(errors="replace")
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
        said = f', saying "{_short(self._last_words)}"' if self._last_words else ""
        return RunError(
            f'engine ({self._command}) ended when it was asked "{line}"{said}; '
            f"run it by hand"
        )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
