"""What a role by itself says: lines for people, events for ``tengen status``."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tengen.errors import DiskFullError
from tengen.observe import EventWriter, open_charts
from tengen.run import RunDirectory

__all__ = ["RoleLog"]

_BUSY_INTERVAL_S = 30.0
_FIRST_WAIT_S = 60.0
_LONGEST_WAIT_S = 3600.0


class RoleLog:
    """Prints what a role does, and keeps it in the role's event file.

    Used by one thread. On a full disk it goes on without: nothing resumes from it.

    Args:
        name: The role.
        run: The run.
        num_threads: That it uses.
        number: Of the event file; None: the next one.
        index: Which of several actors it is, from 0; None of other roles. Its turns
            tell it, as each actor knows of its own episodes alone.

    Raises:
        RunError: The event file cannot be made.
    """

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
        # Not the role's own name: its incarnations number its folders.
        events = f"{name}-command"
        # The learner has the numbers of the others drawn too: it alone has the step.
        charts = open_charts(run, follows=True) if name == "learn" else None
        number = run.new_incarnation(events) if number is None else number
        self._events = EventWriter(run, events, number, charts)
        self._busy_s = -math.inf
        self._idle_since_s: float | None = None
        self._kept_why = ""
        self._kept_s = -math.inf
        # A role that has not had a turn says at once what it waits for.
        self._next_wait_s = 0.0
        self._keep(
            "begin",
            process=f"{os.getpid()} on {socket.gethostname()}",
            num_threads=num_threads,
        )

    def say(self, text: str) -> None:
        """Tells what the role does from now on."""
        self._keep("state", state=text)
        self._print(text)

    def turn(self, report: Mapping[str, Any], seconds: float) -> None:
        """Tells what a turn did."""
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
        """Keeps how far a turn is, now and then; cheap to call often."""
        if "gate" in progress:  # told every ten seconds
            self._keep("gate", **progress["gate"])
            return
        if time.monotonic() - self._busy_s >= _BUSY_INTERVAL_S:
            self._busy_s = time.monotonic()
            self._keep("busy", **progress)

    def idle(self, why: str) -> None:
        """Tells that there is nothing to do: now and then, ever more seldom.

        What is missing may change meanwhile, such as how many rows there are.

        Args:
            why: What is missing, and what to do.
        """
        now_s = time.monotonic()
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
        """Keeps why the role ends."""
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
            pass  # standard output is a file on a disk that is full
