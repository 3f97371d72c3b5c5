"""What is small that a mirror takes of its run: run.json, STOP, the status."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from tengen.errors import RunError
from tengen.mirror.messages import number_in
from tengen.mirror.run_client import RunClient
from tengen.observe.status import HOST_STATUS
from tengen.run import RunDirectory, publish_json

__all__ = ["Inbox"]

_STATUS_S = 10.0


class Inbox:
    """Keeps a mirror as its run is. Used by one thread.

    Args:
        client: To the run's service.
        run: The mirror's folder.
    """

    def __init__(self, client: RunClient, run: RunDirectory) -> None:
        self._client = client
        self._run = run
        self._sha256 = ""
        self._status_s = -math.inf
        # That of an earlier process, whoever asked it.
        self._is_stopped_there = True

    def take_config(self) -> None:
        """Has ``run.json``. Raises as ``RunClient``, or RunError of the disk."""
        self._take_config(self._client.look(self._sha256))

    def take(self) -> int | None:
        """Takes what is new, and returns the newest model; raises as above."""
        found = self._client.look(self._sha256)
        self._take_config(found)
        self._take_stop(bool(found["stop"]))
        self._take_status()
        return None if found["model"] is None else number_in(found, "model")

    def _take_stop(self, is_asked: bool) -> None:
        """Asks the role to stop as the run is; one that was asked here alone stays so.

        A STOP of before is none of this process.
        """
        if is_asked and not self._run.stop_requested():
            self._run.request_stop()
            self._is_stopped_there = True
        elif not is_asked and self._is_stopped_there:
            self._run.clear_stop()
            self._is_stopped_there = False

    def _take_config(self, found: Mapping[str, Any]) -> None:
        content = found["content"]
        if content is None:
            return
        if not isinstance(content, dict):
            raise RunError(f"run.json of {self._client.name} is no object")
        publish_json(self._run.path / "run.json", content)
        self._sha256 = str(found["sha256"])

    def _take_status(self) -> None:
        """Keeps what the host says of the whole run, for ``tengen status`` here."""
        if time.monotonic() - self._status_s >= _STATUS_S:
            self._status_s = time.monotonic()
            report = self._client.status()
            if report is None:
                return
            content = {"schema": 1, "time_s": time.time(), "report": report}
            publish_json(self._run.path / HOST_STATUS, content)
