"""The events that roles of other processes write from now on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.observe.events import parse_event
from tengen.run import RunDirectory

__all__ = ["EventTail"]

_LOOK_S = 2.0
_OWN = "learn-command-"


class EventTail:
    """Reads what is appended to the event files of roles by themselves.

    The learner's own are left out. Used by one thread at a time.

    Args:
        run: The run.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self, run: RunDirectory, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = run.events
        self._clock = clock
        # What was told before this call is of models of before.
        self._read_bytes = {path: path.stat().st_size for path in self._files()}
        self._looked_s = clock()

    def new_events(self) -> list[dict[str, Any]]:
        """Returns the events since the last call, by time.

        Looks every two seconds at most. A file that cannot be read has none.
        """
        if self._clock() - self._looked_s < _LOOK_S:
            return []
        self._looked_s = self._clock()
        found = [event for path in self._files() for event in self._new_of(path)]
        return sorted(found, key=lambda event: float(event["time_s"]))

    def _files(self) -> list[Path]:
        paths = sorted(self._folder.glob("*-command-*.jsonl"))
        return [path for path in paths if not path.name.startswith(_OWN)]

    def _new_of(self, path: Path) -> list[dict[str, Any]]:
        try:
            with open(path, "rb") as file:
                file.seek(self._read_bytes.get(path, 0))
                data = file.read()
        except OSError:
            return []
        # Half a line is read again once it is whole.
        whole = data[: data.rfind(b"\n") + 1]
        self._read_bytes[path] = self._read_bytes.get(path, 0) + len(whole)
        lines = whole.splitlines(keepends=True)
        return [event for line in lines if (event := parse_event(line)) is not None]
