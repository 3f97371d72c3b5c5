"""Base class of clients of external engines: process, line I/O and game interface."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, cast

from tengen.closable import Closable
from tengen.errors import RunError, UsageError, os_reason
from tengen.games import Game

_MAX_ANSWER_BYTES = 1 << 20
_MAX_SHOWN = 60
_QUIT_S = 1.0
_CHUNK_BYTES = 1 << 16


class EngineRefusal(RunError):
    """An engine rejected a command.

    Attributes:
        words: The engine's error message, on one line.
    """

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words


class MoveRefusedError(Exception):
    """An engine rejected a legal move.

    Attributes:
        ply: The number of moves played before the rejected move.
        vertex: The rejected move, as it was sent to the engine.
        words: The engine's error message, on one line.
    """

    def __init__(self, ply: int, vertex: str, words: str) -> None:
        super().__init__(words)
        self.ply = ply
        self.vertex = vertex
        self.words = words


class EngineProcess(Closable, ABC):
    """An engine in its own process group; base class of one class per protocol.

    The engine plays one game at a time. Not thread-safe, except ``kill``, which makes a
    blocked call raise RunError. Methods that send commands block for up to ``answer_s``
    per command, and raise RunError if the engine rejects the command, dies or does not
    respond in time.

    Args:
        command: The command line, split into words as by a shell; no shell runs it.
        answer_s: Maximum time for each response, in seconds.
    """

    PROTOCOL = ""
    """The protocol's name in error messages."""
    QUIT = b""
    """The protocol's command to quit, including its line end."""

    can_score = False
    """Whether the engine can score finished games, with ``score``."""

    def __init__(self, command: str, answer_s: float) -> None:
        """Starts the engine's program. Blocks until the handshake is complete.

        Raises:
            UsageError: The program does not exist, or speaks a different protocol.
            RunError: The program does not respond.
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

    @property
    def pid(self) -> int:
        """The process ID of the engine."""
        return self._process.pid

    @abstractmethod
    def open(self, game: Game) -> None:
        """Prepares the engine to play ``game``. Call this once, before ``set_up``."""

    @abstractmethod
    def set_up(self) -> None:
        """Begins a new game."""

    @abstractmethod
    def choose(self, moves: list[int]) -> str:
        """Asks for the move after ``moves``; returns it in the protocol's notation.

        Raises:
            MoveRefusedError: The engine rejects one of ``moves``.
        """

    @abstractmethod
    def read(self, answer: str) -> int | None:
        """Parses ``answer``, a move; returns its action, or None if it is invalid."""

    def resigns(self, answer: str) -> bool:
        """Returns whether ``answer``, a response from ``choose``, is a resignation."""
        return False

    @abstractmethod
    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the reason why a move is illegal, as the end of a sentence."""

    def score(self, moves: list[int]) -> str:
        """Returns the engine's score of a finished game, such as ``B+3.5``.

        Raises:
            MoveRefusedError: The engine rejects one of ``moves``.
        """
        raise NotImplementedError

    def num_seki(self) -> int:
        """Returns the number of stones in seki; 0 if the engine cannot report it."""
        return 0

    def is_free(self) -> bool:
        """Returns whether the engine can begin another game."""
        return True

    def kill(self) -> None:
        """Kills the engine's process group immediately. Idempotent."""
        if self._is_closed:
            return  # The process has been reaped; its ID may belong to another one.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Sends ``QUIT``, waits up to one second, and kills the group. Idempotent."""
        if self._is_closed:
            return
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(self.QUIT)
        self._stdin.close()
        # Poll: wait() would free the process ID, with which the group is killed below.
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
        """Performs the protocol's handshake, if it has one."""

    def _tell(self, text: str, line: str) -> None:
        """Sends the lines of a command to the engine.

        Args:
            text: The lines, with line ends.
            line: The command as shown in an error message.

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
        """Returns the engine's next response. Blocks for up to ``answer_s``.

        Args:
            line: The command as shown in an error message.
            find_answer: Splits the unread output into the response (None if it is
                incomplete) and the remaining output.

        Raises:
            RunError: The engine died, timed out, or sent a response longer than 1 MiB.
        """
        until = time.monotonic() + self._answer_s
        while True:
            answer, self._pending = find_answer(self._pending)
            if answer is not None:
                return answer
            if len(self._pending) > _MAX_ANSWER_BYTES:
                raise RunError(
                    f'engine ({self._command}) answered "{line}" without end; run it '
                    "by hand"
                )
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise RunError(
                    f'engine ({self._command}) must answer "{line}" within '
                    f"{self._answer_s:g} s; speed it up, or raise --answer-seconds"
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
            f'engine ({self._command}) refused "{line}": {words}; give it the same '
            "rules, or choose another engine",
            words,
        )

    def _stranger(self, line: str, answer: str) -> RunError:
        return RunError(
            f'engine ({self._command}) answered "{line}" with {short(answer)}, which '
            f"is not {self.PROTOCOL}; run it by hand"
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
        said = f', with "{short(self._last_words)}"' if self._last_words else ""
        return RunError(
            f'engine ({self._command}) exited on "{line}"{said}; run it by hand'
        )


def short(text: str) -> str:
    """Returns ``text`` on one line, truncated to 60 characters."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
