"""What pages show of a run, read once for all pages."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tengen.errors import RunError, TengenError, UsageError
from tengen.observe.cpu_time import tree_memory_bytes
from tengen.observe.progress import Progress
from tengen.observe.status import read_status
from tengen.observe.view import describe
from tengen.run import RunDirectory
from tengen.serve.history import History

__all__ = ["Watch", "Watches", "facts", "memory_of", "state_of", "summary"]

# Looks take at most this share of one core, however large a run is.
_SHARE = 0.05


class Watch:
    """Looks at one run now and then. Thread-safe; each look blocks.

    Args:
        run: The run.
        look_s: Seconds between two looks, at least.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self,
        run: RunDirectory,
        look_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self._look_s = look_s
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = float("-inf")
        self._history: History | None = None
        self._status: dict[str, Any] = {}
        self._error: TengenError | None = None

    @contextmanager
    def look(self) -> Iterator[tuple[dict[str, Any], History]]:
        """Yields the run's status and history, which do not change meanwhile.

        The status is that of ``tengen status``, with ``memory`` of ``memory_of``.

        Raises:
            UsageError: The run is of a newer schema, or was removed.
            RunError: A file of it is damaged.
        """
        with self._lock:
            begun_s = self._clock()
            if begun_s >= self._next_s:
                self._read()
                took_s = self._clock() - begun_s
                self._next_s = self._clock() + max(self._look_s, took_s / _SHARE)
            if self._error is not None:
                raise self._error
            assert self._history is not None
            yield self._status, self._history

    def _read(self) -> None:
        self._error = None
        try:
            if self.run.is_new:
                raise UsageError(
                    f"run ({self.run.path}) is gone; open / for the others"
                )
            if self._history is None:
                self._history = History(self.run)
            self._history.read()
            status = read_status(self.run)
            self._status = {**status, "memory": memory_of(status)}
        except TengenError as error:
            self._error = error
        except OSError as error:
            # Of a disk that went away, or a folder that was removed meanwhile.
            self._error = RunError(f"run ({self.run.path}) cannot be read: {error}")


class Watches:
    """The watches of all runs that were looked at. Thread-safe.

    Args:
        look_s: As for ``Watch``.
    """

    def __init__(self, look_s: float) -> None:
        self._look_s = look_s
        self._lock = threading.Lock()
        self._found: dict[str, Watch] = {}

    def of(self, run: RunDirectory) -> Watch:
        """Returns the watch of a run."""
        with self._lock:
            key = str(run.path)
            if key not in self._found:
                self._found[key] = Watch(run, self._look_s)
            return self._found[key]


def summary(status: dict[str, Any], history: History) -> dict[str, Any]:
    """Returns one entry of the list of runs, as JSON values."""
    progress = status["progress"] or {}
    names = (
        *("rows_per_s", "evaluations_per_s", "eta_s", "loss", "rating"),
        *("rating_error", "mean_return", "verdict", "stage", "num_games"),
        *("num_episodes", "num_steps", "generation"),
    )
    told = [event["time_s"] for event in history.last.values()]
    tag = next((t for t in _HEADLINES if t in history.curves), None)
    return {
        "task": status["task"],
        "in_environments": history.in_environments,
        "state": state_of(status),
        "latest_model": status["latest_model"],
        "told_s": max(told, default=None),
        "headline": tag,
        "curve": history.curves[tag].shown(_SMALL_POINTS) if tag else None,
        **{name: progress.get(name) for name in names},
    }


_HEADLINES = ("charts/rating", "charts/episodic_return", "losses/loss")
_SMALL_POINTS = 48


def state_of(status: dict[str, Any]) -> str:
    """Returns ``running``, ``stopping`` or ``not running``."""
    roles = any(role["process"] is not None for role in status["roles"])
    if not roles and status["running"] is None:
        return "not running"
    return "stopping" if status["stop_requested"] else "running"


def memory_of(status: dict[str, Any]) -> dict[str, int]:
    """Returns the memory of each process of a run that is on this machine, in bytes.

    By process, as the status names it, what it started included.
    """
    named = [status["running"], *(role["process"] for role in status["roles"])]
    found = {}
    for process in filter(None, named):
        number, _, host = process.partition(" on ")
        if host == socket.gethostname() and number.isdecimal():
            num_bytes = tree_memory_bytes(int(number))
            if num_bytes is not None:
                found[process] = num_bytes
    return found


def facts(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the numbers of a run in words, as ``tengen status`` has them."""
    if status["progress"] is None:
        return []
    return describe(Progress.from_dict(status["progress"]))
