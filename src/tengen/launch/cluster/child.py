"""The runner's connection to a role process beside a Ray actor."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import ray

__all__ = ["RayChild"]

_PATIENCE_S = 10.0
"""Seconds after which the view says that a cluster has not begun an actor."""


class RayChild:
    """A ``Child`` beside a Ray actor.

    Args:
        actor: The actor that holds the process.
        tell: Called once with the actor's node and host.
    """

    def __init__(self, actor: Any, tell: Callable[[str, str], None]) -> None:
        self._actor = actor
        self._tell = tell
        self._is_told = False
        self._how = ""
        # Lines that the next read sends along.
        self._unsent = b""
        self._start_s = time.monotonic()
        self._has_waited = False
        self._hello = actor.where.remote()

    def send(self, message: dict[str, Any]) -> None:
        """See ``Child.send``."""
        line = json.dumps(message).encode() + b"\n"
        if "stop" not in message:
            # The answer is read at once, so the line goes with that call: a call costs
            # as much as all messages of a turn do elsewhere.
            self._unsent = line
        elif self._is_there(0.0):
            # Do not wait for the result: the actor may be gone.
            self._actor.write.remote(line)
        else:
            ray.kill(self._actor)  # the actor has not begun

    def receive(self) -> dict[str, Any] | None:
        """See ``Child.receive``."""
        if not self._is_there(_PATIENCE_S):
            self._has_waited = True
            waiting_s = time.monotonic() - self._start_s
            stage = "waiting for room in the cluster"
            return {"progress": {"stage": stage, "waiting_s": waiting_s}}
        if not self._is_told:
            self._is_told = True
            found = self._answer(lambda: self._hello, None)
            if found is None:
                return None  # the actor is gone before it began
            self._tell(*found)
            if self._has_waited:
                return {"progress": {"stage": ""}}
        unsent, self._unsent = self._unsent, b""
        line = self._answer(lambda: self._actor.read.remote(unsent), b"")
        if not line.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        """See ``Child.kill``."""
        self._actor.kill.remote()

    def end(self, timeout_s: float) -> str:
        """See ``Child.end``."""
        code = self._answer(lambda: self._actor.end.remote(timeout_s), None)
        ray.kill(self._actor)
        if code is None:
            return self._how
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _is_there(self, timeout_s: float) -> bool:
        """Returns whether the actor has begun, or failed to."""
        done, _ = ray.wait([self._hello], timeout=timeout_s)
        return bool(done)

    def _answer(self, ask: Callable[[], Any], otherwise: Any) -> Any:
        """Returns the actor's answer, or ``otherwise`` if the actor is gone."""
        try:
            return ray.get(ask())
        except ray.exceptions.RayError as error:
            self._how = f"its actor's {type(error).__name__}"
            return otherwise
