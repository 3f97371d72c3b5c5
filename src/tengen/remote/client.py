"""The client with which a mirror sends requests to its run's service."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from typing import Any

from tengen import __version__
from tengen.errors import UsageError
from tengen.remote.messages import PYTHON, number_in
from tengen.transport import Client, NoAnswer

__all__ = ["Place", "RunClient"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The slot of a mirror in its run, with the index and IDs of its process."""

    run: str
    """The ID of the run."""
    index: int
    """The index of the self-play writer or actor that the mirror stands for."""
    incarnation: int
    """For self-play, the lowest incarnation that this process may use."""
    events: int
    """The ID of the event file that this process writes."""
    totals: tuple[int, int]
    """The actor's environment frames and finished episodes so far."""


class RunClient:
    """Client of a run's service. Thread-safe.

    Args:
        client: A client of the run's service.
        mirror: The ID of the mirror.

    Attributes:
        name: The service's address, for error messages.
        deadline_s: The ``time.monotonic`` time after which every request raises
            ``NoAnswer``; None for no deadline.
    """

    def __init__(self, client: Client, mirror: str) -> None:
        self._client = client
        self._mirror = mirror
        self._events = 0
        self.name = client.name
        self.deadline_s: float | None = None

    def join(
        self,
        role: str,
        index: int | None,
        run: str | None,
        *,
        is_vouched: bool = False,
        had_place: bool = False,
    ) -> Place | None:
        """Requests a slot in the run. The arguments are those of ``Members.join``.

        Returns:
            The slot, or None if the mirror has lost an earlier slot.

        Raises:
            TengenError: See ``ask``.
        """
        answer = self.ask(
            "join",
            role=role,
            index=index,
            run=run,
            is_vouched=is_vouched,
            had_place=had_place,
            process=f"{os.getpid()} on {platform.node()}",
            tengen=__version__,
            python=PYTHON,
        )
        if answer.get("given_up") is True:
            return None
        num_rows, num_episodes = answer["totals"]
        self._events = number_in(answer, "events")
        return Place(
            run=str(answer["run"]),
            index=number_in(answer, "index"),
            incarnation=number_in(answer, "incarnation"),
            events=self._events,
            totals=(int(num_rows), int(num_episodes)),
        )

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        """Sends a request and returns the response, whose values the caller must check.

        Args:
            what: The name of a request that ``RunService`` handles.
            fields: The fields of the request.

        Raises:
            NoAnswer: The service does not respond, or the deadline has passed.
            UsageError: The service rejects the request.
            RunError: The service fails, for example because its disk is full.
        """
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            raise NoAnswer(f"{self.name} did not accept everything in time")
        who = {"mirror": self._mirror, "events": self._events}
        answer = self._client.ask({"ask": what, **who, **fields})
        if not isinstance(answer, dict):
            raise UsageError(
                f"answer ({what}) of {self.name} must be an object; install the same "
                f"tengen on both sides"
            )
        return answer
