"""The questions of a mirror to the service of its run."""

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
    """A mirror's place in its run."""

    run: str
    """The run's id."""
    index: int
    """Which self-play writer or actor the mirror is."""
    incarnation: int
    """For self-play, the least incarnation that this process may write as."""
    events: int
    """The number of this process's event file."""
    totals: tuple[int, int]
    """The frames and finished episodes of the actor so far."""


class RunClient:
    """Asks the service of a run; thread-safe.

    Args:
        client: A client of the run's service.
        mirror: The mirror's id.

    Attributes:
        name: The service's address, for messages.
        deadline_s: The time, by ``time.monotonic``, after which every question raises
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
        """Takes a place in the run for this process; see ``Members.join``.

        Returns:
            The place; None if the mirror had a place that was given up meanwhile.

        Raises:
            TengenError: As ``ask``.
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
        """Returns the answer to a question; the caller checks its values.

        Args:
            what: One of the questions of ``RunService``.
            fields: The fields of the question.

        Raises:
            NoAnswer: The service does not answer, or the deadline is over.
            UsageError: The service refuses the question.
            RunError: The service fails, as on a full disk.
        """
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            raise NoAnswer(f"{self.name} has not taken all in time")
        who = {"mirror": self._mirror, "events": self._events}
        answer = self._client.ask({"ask": what, **who, **fields})
        if not isinstance(answer, dict):
            raise UsageError(
                f"answer ({what}) of {self.name} must be an object; install the same "
                f"tengen on both sides"
            )
        return answer
