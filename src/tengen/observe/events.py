"""Events: append-only JSON lines, one file and writer per incarnation of a role.

An event is ``{"time_s": <UNIX seconds>, "kind": <str>, ...}``. A killed writer may
leave an incomplete last line, which readers ignore.
"""

from __future__ import annotations

import heapq
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from tengen.run import RunDirectory, storage_error

_CHUNK_BYTES = 1 << 16
# Maximum line length; longer lines are ignored. A table of thousands of hosts fits.
_MOST_LINE_BYTES = 16 << 20
# Maximum event time, thousands of years from now. Later times and NaN are rejected.
_MOST_S = 1e11


class EventListener(Protocol):
    """Receives events as they are written. Its methods raise nothing."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Processes an event; must return quickly."""
        ...

    def close(self) -> None:
        """Releases the listener's resources. A second call has no effect."""
        ...


class EventWriter:
    """Appends the events of one incarnation to its own file.

    Not thread-safe. Each event is a single write, so readers see only complete lines,
    except after a crash. Events are not fsynced, because no role resumes from events.

    Args:
        run: The run.
        role: The role that writes.
        incarnation: The result of ``RunDirectory.new_incarnation``.
        listener: Receives every written event, and is closed with the file.

    Raises:
        RunError: The file cannot be opened.
    """

    def __init__(
        self,
        run: RunDirectory,
        role: str,
        incarnation: int,
        listener: EventListener | None = None,
    ) -> None:
        self._listener = listener
        self._path = run.events_path(role, incarnation)
        self._is_cut = False
        try:
            self._descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
            )
        except OSError as error:
            raise storage_error(self._path, error) from error

    def write(self, kind: str, **fields: Any) -> None:
        """Appends one event.

        Args:
            kind: The kind of event, a single word.
            **fields: Further fields, JSON values.

        Raises:
            RunError: Writing to the disk fails.
        """
        event = {"time_s": round(time.time(), 3), "kind": kind, **fields}
        # If a full disk truncated the last line, begin a new line.
        line = ("\n" if self._is_cut else "") + json.dumps(event) + "\n"
        try:
            num_written = os.write(self._descriptor, line.encode())
            self._is_cut = num_written < len(line.encode())
        except OSError as error:
            raise storage_error(self._path, error) from error
        if self._listener is not None:
            self._listener.take(event)

    def close(self) -> None:
        """Closes the file and the listener. A second call has no effect."""
        if self._listener is not None:
            self._listener.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class EventFiles:
    """Reads new events from a run's event files. Used by one thread at a time.

    Memory is bounded, however long the files are. A file that cannot be read counts as
    empty, and an incomplete line is read after it has been completed.

    Args:
        run: The run.
        is_wanted: Returns whether to read the file with the given name.
        from_now: Whether to skip events written before now.
        look_s: Minimum seconds between two reads of the files.
        clock: Returns a monotonic time in seconds.
    """

    def __init__(
        self,
        run: RunDirectory,
        is_wanted: Callable[[str], bool] = lambda name: True,
        *,
        from_now: bool = False,
        look_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = run.events
        self._is_wanted = is_wanted
        self._look_s = look_s
        self._clock = clock
        self._looked_s = clock() if from_now else -float("inf")
        self._offsets: dict[Path, int] = {}
        if from_now:
            self._offsets = {path: path.stat().st_size for path in self._paths()}

    def new_events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields (file name, event) for events since the last call, sorted by time."""
        now_s = self._clock()
        if now_s - self._looked_s < self._look_s:
            return iter(())
        self._looked_s = now_s
        files = [_new_of(path, self._offsets) for path in self._paths()]
        return heapq.merge(*files, key=lambda named: float(named[1]["time_s"]))

    def _paths(self) -> list[Path]:
        paths = sorted(self._folder.glob("*.jsonl"))
        return [path for path in paths if self._is_wanted(path.name)]


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the complete events of one file in order; ignores other lines.

    Yields nothing if the file does not exist.
    """
    for _, event in _new_of(path, {}):
        yield event


def _new_of(
    path: Path, offsets: dict[Path, int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (file name, event) from the file's offset on, and updates ``offsets``."""
    offset, num_bytes = offsets.get(path, 0), _CHUNK_BYTES
    # Reopen the file for each read, because a run may exceed the limit of open files.
    while data := _read(path, offset, num_bytes):
        whole = data.rfind(b"\n") + 1
        if not whole and num_bytes < _MOST_LINE_BYTES:
            if len(data) < num_bytes:
                return  # The line is incomplete.
            num_bytes *= 2
            continue
        offset += whole or len(data)
        offsets[path], num_bytes = offset, _CHUNK_BYTES
        for line in data[:whole].splitlines():
            if (event := _parse_event(line)) is not None:
                yield path.name, event


def _read(path: Path, offset: int, num_bytes: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(num_bytes)
    except OSError:
        return b""


def _parse_event(line: bytes) -> dict[str, Any] | None:
    """Returns the event in a line; None if the line is damaged."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        return None
    time_s = event.get("time_s")
    is_time = isinstance(time_s, (int, float)) and abs(time_s) < _MOST_S
    return event if is_time else None
