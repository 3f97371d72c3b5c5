"""Events: append-only JSON lines, one file and writer for each incarnation of a role.

An event is ``{"time_s": <unix seconds>, "kind": <str>, ...}``. A killed writer may
leave half a line at the end, which readers ignore.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from tengen.errors import UsageError
from tengen.observe.progress import Progress
from tengen.run import RunDirectory, storage_error

__all__ = [
    "EventListener",
    "EventWriter",
    "parse_event",
    "read_events",
    "read_gate",
    "read_progress",
]


class EventListener(Protocol):
    """A listener that gets events as they are written. Raises nothing."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes an event; returns soon."""
        ...

    def close(self) -> None:
        """Ends. A second call does nothing."""
        ...


class EventWriter:
    """Appends events of one incarnation; a fresh file each time a role starts.

    Not thread-safe. Each event is one write, so that a reader sees whole lines except
    after a crash. Events are not fsynced, because nothing resumes from them.

    Args:
        run: The run.
        role: The role that writes.
        incarnation: From ``RunDirectory.new_incarnation``.
        listener: Takes every event that was written, and is closed with the file.

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
            kind: What happened, a word.
            **fields: JSON values.

        Raises:
            RunError: The disk refuses.
        """
        event = {"time_s": round(time.time(), 3), "kind": kind, **fields}
        # After a line that a full disk cut short, begin a new line.
        line = ("\n" if self._is_cut else "") + json.dumps(event) + "\n"
        try:
            num_written = os.write(self._descriptor, line.encode())
            self._is_cut = num_written < len(line.encode())
        except OSError as error:
            raise storage_error(self._path, error) from error
        if self._listener is not None:
            self._listener.take(event)

    def close(self) -> None:
        """Closes the file. A second call does nothing."""
        if self._listener is not None:
            self._listener.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the whole events of one file in order; ignores other lines.

    Yields nothing if the file is gone.
    """
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            if (event := parse_event(line)) is not None:
                yield event


def read_progress(run: RunDirectory) -> Progress | None:
    """Returns a run's progress: the latest ``progress`` event of all its files.

    The writers' clocks decide the order between files. Damaged events, and events of
    other versions that hold no progress, are ignored; None if there is no event left.
    """
    found = _events_by_time(run, lambda event: event["kind"] == "progress")
    for event in reversed(found):
        with contextlib.suppress(UsageError):
            return Progress.from_dict(event)
    return None


def read_gate(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the latest report of a match of the gate, whichever process ran it.

    The writers' clocks decide the order between files.

    Returns:
        ``candidate``, its number; ``accepted``, None while it is not decided;
        ``summary`` of the games, a text. None where no match was told of.
    """

    def is_match(event: dict[str, Any]) -> bool:
        is_turn = event["kind"] == "turn" and event.get("role") == "gate"
        return (
            (event["kind"] == "gate" or is_turn)
            and isinstance(event.get("candidate"), int)
            and isinstance(event.get("summary"), str)
        )

    found = _events_by_time(run, is_match)
    if not found:
        return None
    return {name: found[-1].get(name) for name in ("candidate", "accepted", "summary")}


def _events_by_time(
    run: RunDirectory, is_wanted: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    found = [
        event
        for path in sorted(run.events.glob("*.jsonl"))
        for event in read_events(path)
        if is_wanted(event)
    ]
    return sorted(found, key=lambda event: float(event["time_s"]))


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Returns the event of a line, or None for an unfinished or damaged line.

    Args:
        line: Of an event file, with its end.
    """
    if not line.endswith(b"\n"):
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or "kind" not in event:
        return None
    return event if isinstance(event.get("time_s"), (int, float)) else None
