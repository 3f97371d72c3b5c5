"""Follows event files: reads each event once, from the first one or from now on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.observe.events import parse_event
from tengen.run import RunDirectory

__all__ = ["EventFiles", "EventTail"]

_LOOK_S = 2.0
_OWN = "learn-command-"


class EventFiles:
    """Reads what is appended to event files of a run. Used by one thread at a time.

    A file that cannot be read counts as empty. Half a line is read once it is whole.

    Args:
        run: The run.
        pattern: Which files, as ``Path.glob`` takes it.
        is_wanted: Which of these, by name.
    """

    def __init__(
        self,
        run: RunDirectory,
        pattern: str = "*.jsonl",
        is_wanted: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self._folder = run.events
        self._pattern = pattern
        self._is_wanted = is_wanted
        self._read_bytes: dict[Path, int] = {}

    def skip(self) -> None:
        """Skips everything that was written so far."""
        self._read_bytes = {path: path.stat().st_size for path in self._files()}

    def new_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Returns (name of the file, event) of all since the last call, by time."""
        found = [
            (path.name, event) for path in self._files() for event in self._new_of(path)
        ]
        return sorted(found, key=lambda named: float(named[1]["time_s"]))

    def _files(self) -> list[Path]:
        paths = sorted(self._folder.glob(self._pattern))
        return [path for path in paths if self._is_wanted(path.name)]

    def _new_of(self, path: Path) -> list[dict[str, Any]]:
        try:
            with open(path, "rb") as file:
                file.seek(self._read_bytes.get(path, 0))
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._read_bytes[path] = self._read_bytes.get(path, 0) + len(whole)
        lines = whole.splitlines(keepends=True)
        return [event for line in lines if (event := parse_event(line)) is not None]


class EventTail:
    """Reads the events that roles by themselves write from now on.

    The learner's own events are left out. Used by one thread at a time.

    Args:
        run: The run.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self, run: RunDirectory, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = EventFiles(
            run, "*-command-*.jsonl", lambda name: not name.startswith(_OWN)
        )
        # Events from before this call are about earlier models.
        self._files.skip()
        self._clock = clock
        self._looked_s = clock()

    def new_events(self) -> list[dict[str, Any]]:
        """Returns the events since the last call, by time.

        Looks every two seconds at most.
        """
        if self._clock() - self._looked_s < _LOOK_S:
            return []
        self._looked_s = self._clock()
        return [event for _, event in self._files.new_events()]
