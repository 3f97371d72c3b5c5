"""The runner's end of a role process: starts it, gives it turns, notices its death."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tengen.errors import RunError, TengenError, UsageError
from tengen.launch.protocol import read_message, write_message
from tengen.run import RunDirectory

__all__ = ["RoleProcess"]

_MAX_DEATHS = 5
"""Deaths in a row, without a finished turn between, that end the run."""
_FIRST_BACKOFF_S = 0.5
_STOP_TIMEOUT_S = 20.0


class RoleProcess:
    """One child process with some roles. Used by one thread, but for ``stop``.

    A child that dies is started again with growing pauses and its turn is redone,
    which a role makes safe; after five deaths in a row the run ends and names it.

    Args:
        run: The run.
        roles: What it hosts.
        num_threads: Threads that each of its roles may use.
    """

    def __init__(
        self, run: RunDirectory, roles: tuple[str, ...], num_threads: int
    ) -> None:
        self.roles = roles
        self._run = run
        self._num_threads = num_threads
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._deaths = 0

    def turn(
        self,
        role: str,
        on_progress: Callable[[dict[str, Any]], None],
        on_death: Callable[[str, str], None],
        details: Mapping[str, Any],
    ) -> dict[str, Any] | None:
        """Runs one turn to its end and returns its report. Blocks.

        Args:
            role: One of ``roles``.
            on_progress: Takes what the role tells on the way.
            on_death: Given the role and how its process died, before it is started
                again.
            details: ``remaining``, ``spent`` and ``sealed``, see ``RoleContext``;
                the same when the turn is redone.

        Raises:
            RunError: The role failed, or died again and again.
            UsageError: The role refused its config or its files.
        """
        while True:
            try:
                report = self._turn(role, on_progress, details)
            except _DiedError as death:
                self._child = None
                if self._stopping:
                    return {"stopped": True}
                self._deaths += 1
                if self._deaths >= _MAX_DEATHS:
                    raise RunError(
                        f"role ({role}) died {self._deaths} times in a row, last with "
                        f"{death}; see {self._run.logs / (self.roles[0] + '.log')}"
                    ) from None
                on_death(role, str(death))
                time.sleep(_FIRST_BACKOFF_S * 2 ** (self._deaths - 1))
                continue
            self._deaths = 0
            return report

    def stop(self) -> None:
        """Asks the child to end its turn and leave. Does not block; any thread."""
        self._stopping = True
        child = self._child
        if child is not None and child.stdin is not None:
            # Gone already, or its pipe closed by another thread.
            with contextlib.suppress(BrokenPipeError, ValueError):
                write_message(child.stdin, {"stop": True})

    def close(self) -> None:
        """Stops the child and waits for it; kills one that does not leave."""
        self.stop()
        child, self._child = self._child, None
        if child is None:
            return
        try:
            child.communicate(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        except ValueError:
            child.wait(timeout=_STOP_TIMEOUT_S)

    def _turn(
        self,
        role: str,
        on_progress: Callable[[dict[str, Any]], None],
        details: Mapping[str, Any],
    ) -> dict[str, Any] | None:
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        # Gone already: its last words are read below.
        with contextlib.suppress(BrokenPipeError):
            write_message(child.stdin, {"turn": role, **details})
        while (message := read_message(child.stdout)) is not None:
            if "progress" in message:
                on_progress(message["progress"])
            elif "error" in message:
                child.wait()
                self._child = None
                _raise(message)
            else:
                report: dict[str, Any] | None = message["report"]
                return report
        raise _DiedError(_exit_words(child))

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tengen.launch.child", str(self._run.path)]
        self._child = subprocess.Popen(
            [*command, str(self._num_threads), *self.roles],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self._child


class _DiedError(Exception):
    """The child's end of the pipe closed without a report."""


def _exit_words(child: subprocess.Popen[bytes]) -> str:
    code = child.wait()
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _raise(message: dict[str, Any]) -> None:
    kind: type[TengenError] = UsageError if message["exit_code"] == 2 else RunError
    raise kind(message["error"])
