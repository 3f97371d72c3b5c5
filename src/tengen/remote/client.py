"""The questions of a mirror to the service of its run."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen import __version__
from tengen.errors import RunError, UsageError
from tengen.remote.copies import Prefix
from tengen.remote.messages import PYTHON, decoded, encoded, number_in
from tengen.transport import Client, NoAnswer

__all__ = ["Place", "RunClient"]

_MOST_FILES = 16


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
    """Asks the service of a run; thread-safe. Checks every answer.

    All methods raise ``NoAnswer`` if the service does not answer, ``UsageError`` if it
    refuses the question and ``RunError`` if it fails, as on a full disk.

    Args:
        client: A client of the run's service.
        mirror: The mirror's id.

    Attributes:
        deadline_s: The time, by ``time.monotonic``, after which every question raises
            ``NoAnswer``; None for no deadline.
    """

    def __init__(self, client: Client, mirror: str) -> None:
        self._client = client
        self._mirror = mirror
        self._events = 0
        self.deadline_s: float | None = None

    @property
    def name(self) -> str:
        """The service's address, for messages."""
        return self._client.name

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
        """
        answer = self._ask(
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

    def look(
        self,
        sha256: str,
        *,
        totals: tuple[int, int] | None = None,
        asks_status: bool = False,
    ) -> Mapping[str, Any]:
        """Returns what is new in the run.

        Args:
            sha256: The SHA-256 of the ``run.json`` that is here.
            totals: The frames and episodes of the actor, if they have changed.
            asks_status: Whether to return the run's status too.

        Returns:
            ``content`` and ``sha256`` of ``run.json`` (no content if it is the same),
            ``stop``, the number of the newest ``model`` or None, and ``status``.
        """
        answer: Mapping[str, Any] = self._ask(
            "look", sha256=sha256, totals=totals, asks_status=asks_status
        )
        return answer

    def claim(self, num_wanted: int) -> list[int]:
        """Returns the unsealed generations of this writer, at least so many."""
        return [
            number_in({"generation": number}, "generation", least=1)
            for number in self._ask("claim", num_wanted=num_wanted)
        ]

    def append(self, where: Mapping[str, Any], prefix: Prefix, data: bytes) -> int:
        """Appends a piece to a file at the host; returns the size of the file there.

        Args:
            where: The fields that say which file it is; see ``uploads``.
            prefix: The bytes of the file before the piece.
            data: The piece.
        """
        answer = self._ask(
            "append", offset=prefix.size, crc=prefix.crc, data=encoded(data), **where
        )
        return number_in(answer, "held", 1 << 41)

    def model_files(self, number: int) -> list[Mapping[str, Any]]:
        """Returns the name, size and SHA-256 of each file of a model.

        Raises:
            RunError: The run does not have the model any more.
        """
        files = self._ask("model", number=number)
        if not isinstance(files, list) or not 1 <= len(files) <= _MOST_FILES:
            raise RunError(f"model ({number}) of {self.name} has no files")
        return files

    def model_piece(self, number: int, name: str, offset: int) -> bytes:
        """Returns the bytes of a model's file from ``offset``, at most a piece."""
        return decoded(
            {"data": self._ask("piece", number=number, name=name, offset=offset)}
        )

    def end(self, *, keeps_place: bool) -> None:
        """Ends this process's work; its place is kept for the next one, or given back.

        Args:
            keeps_place: Whether a generation is half played here. Otherwise the run
                gives the place to others.
        """
        self._ask("end", keeps_place=keeps_place)

    def _ask(self, what: str, **fields: Any) -> Any:
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            raise NoAnswer(f"{self.name} has not taken all in time")
        who = {"mirror": self._mirror, "events": self._events}
        answer = self._client.ask({"ask": what, **who, **fields})
        if what in ("join", "look", "append") and not isinstance(answer, dict):
            raise UsageError(
                f"answer ({what}) of {self.name} must be an object; install the same "
                f"tengen on both sides"
            )
        return answer
