"""The log of a standalone role, and its pause while the disk is full."""

from __future__ import annotations

import math
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tengen.errors import DiskFullError, RunError
from tengen.observe import EventWriter, open_charts
from tengen.run import RunDirectory, storage_error

_BUSY_INTERVAL_S = 30.0
_FIRST_WAIT_S = 60.0
_LONGEST_WAIT_S = 3600.0
_RETRY_S = 2.0
_SAY_AGAIN_S = 60.0


class RoleLog:
    """Prints a role's activity, and records it in the role's event file.

    Not thread-safe. If the disk is full, events are dropped, because no run needs
    them to resume.

    Args:
        name: The role.
        run: The run.
        num_threads: Number of threads that the role uses.
        number: Number of the event file; None: the next number.
        index: Index of the actor, from 0; None for other roles. Turn events include it,
            because each actor knows only its own episodes.

    Raises:
        RunError: The event file cannot be made.

    Attributes:
        clock: Returns seconds that never go back.
    """

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        name: str,
        run: RunDirectory,
        num_threads: int,
        number: int | None = None,
        index: int | None = None,
    ) -> None:
        self._name = name
        self._of = {} if index is None else {"index": index}
        # Not ``name``, because that name's incarnation numbers are for other files.
        events = f"{name}-command"
        # The learner charts all roles' metrics, because only it knows the learner step.
        charts = open_charts(run, follows=True) if name == "learn" else None
        number = run.new_incarnation(events) if number is None else number
        self._events = EventWriter(run, events, number, charts)
        self._busy_s = -math.inf
        self._idle_since_s: float | None = None
        self._kept_why = ""
        self._kept_s = -math.inf
        # A role that waits before its first turn reports that immediately.
        self._next_wait_s = 0.0
        self._keep(
            "begin",
            process=f"{os.getpid()} on {socket.gethostname()}",
            num_threads=num_threads,
        )

    def say(self, text: str) -> None:
        """Prints and records ``text`` as the role's new state."""
        self._keep("state", state=text)
        self._print(text)

    def turn(self, report: Mapping[str, Any], seconds: float) -> None:
        """Prints and records the report of a turn that took ``seconds``."""
        self._idle_since_s = None
        self._next_wait_s = _FIRST_WAIT_S
        self._keep("turn", turn_s=round(seconds, 3), **self._of, **report)
        shown = {
            key: f"{value:.4g}" if isinstance(value, float) else value
            for key, value in report.items()
            if isinstance(value, (int, float, str)) and not isinstance(value, bool)
        }
        self._print(", ".join(f"{key} {value}" for key, value in shown.items()))

    def busy(self, progress: Mapping[str, Any]) -> None:
        """Records a turn's progress, at most every 30 s; cheap to call often."""
        if "gate" in progress:  # the gate itself reports at most every ten seconds
            self._keep("gate", **progress["gate"])
            return
        if self.clock() - self._busy_s >= _BUSY_INTERVAL_S:
            self._busy_s = self.clock()
            self._keep("busy", **progress)

    def idle(self, why: str) -> None:
        """Reports that the role has nothing to do; prints at increasing intervals.

        The reason may change between calls, for example with the number of rows.

        Args:
            why: A message that says what is missing and what to do.
        """
        now_s = self.clock()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
            self._kept_why, self._kept_s = "", -math.inf
        if why != self._kept_why and now_s - self._kept_s >= _BUSY_INTERVAL_S:
            self._kept_why, self._kept_s = why, now_s
            self._keep("state", state=f"waits, {why}")
        waited_s = now_s - self._idle_since_s
        if waited_s >= self._next_wait_s:
            self._next_wait_s = min(
                max(_FIRST_WAIT_S, 2 * waited_s), waited_s + _LONGEST_WAIT_S
            )
            since = f" for {waited_s:.0f} s" if waited_s >= 1 else ""
            self._print(f"waits{since}, {why}")

    def close(self, reason: str) -> None:
        """Records why the role ended, and closes the event file."""
        self._keep("end", reason=reason)
        self._events.close()

    def _keep(self, kind: str, **fields: Any) -> None:
        with suppress(DiskFullError):
            self._events.write(kind, role=self._name, **fields)

    def _print(self, text: str) -> None:
        try:
            print(f"{self._name}: {text}", flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            pass  # standard output may be a file on a full disk


class FullDiskPause:
    """Retries writes while the disk is full, and tells the user. Not thread-safe.

    Args:
        path: The run directory, whose free disk space is reported.
        stop: Ends the wait; then the DiskFullError of the write is raised.
        say: Called with a line of text for the user.
    """

    def __init__(
        self, path: Path, stop: threading.Event, say: Callable[[str], None]
    ) -> None:
        self._path = path
        self._stop = stop
        self._say = say
        self._said_s = -math.inf

    def __call__(self, write: Callable[[], object]) -> None:
        """Calls ``write`` repeatedly until the disk is no longer full. Blocks.

        Raises:
            DiskFullError: ``stop`` was set while the disk was full.
        """
        while True:
            try:
                write()
            except DiskFullError as refusal:
                self._tell(refusal)
                if self._stop.wait(_RETRY_S):
                    raise
            else:
                break
        if self._said_s > -math.inf:
            self._said_s = -math.inf
            self._say("resumes, the disk has space again")

    def wait(self, refusal: DiskFullError, num_bytes: int) -> None:
        """Blocks until ``num_bytes`` are free on the run's disk.

        Args:
            refusal: The error that ended a turn, reported to the user.
            num_bytes: Approximate number of bytes that a repetition of the turn needs.

        Raises:
            DiskFullError: ``stop`` was set while the disk was full.
        """
        self._tell(refusal)
        self(lambda: _reserve(self._path, num_bytes))

    def _tell(self, refusal: RunError) -> None:
        if time.monotonic() - self._said_s < _SAY_AGAIN_S:
            return
        self._said_s = time.monotonic()
        free_mb = shutil.disk_usage(self._path).free / 1e6
        self._say(
            f"waits, the disk of {self._path} is full ({free_mb:,.1f} MB free); free "
            "some space, and the role resumes by itself; nothing durable is lost "
            f"({refusal})"
        )


def _reserve(path: Path, num_bytes: int) -> None:
    """Checks that the disk has ``num_bytes`` free, by allocating a temporary file."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError as error:
        raise storage_error(path, error) from error
