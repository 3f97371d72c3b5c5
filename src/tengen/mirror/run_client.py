"""A mirror's questions to the service of its run."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import __version__
from tengen.errors import RunError, UsageError
from tengen.mirror.growing_file import Prefix
from tengen.mirror.messages import PIECE_BYTES, PYTHON, decoded, encoded, number_in
from tengen.transport import Client, NoAnswer

__all__ = ["Place", "RunClient"]

_MOST_FILES = 16


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a mirror is to its run."""

    run: str
    """The run's id."""
    index: int
    """Which self-play writer or which actor it is."""
    incarnation: int
    """Of self-play: the least that this process may write as."""
    events: int
    """The number of this process's event file."""
    totals: tuple[int, int]
    """Frames and ends of episodes that the actor has made so far."""


class RunClient:
    """Asks; thread-safe. Any answer is checked like a stranger's.

    Args:
        client: To the run's service.
        mirror: The mirror's id.

    Attributes:
        deadline_s: By ``time.monotonic``, after which nothing is asked any more.

    All methods raise ``NoAnswer`` where nobody answers, ``UsageError`` where the
    service refuses the question and ``RunError`` where it fails, as on a full disk.
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
            None where the mirror had a place, which was given up.
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

    def look(self, sha256: str) -> Mapping[str, Any]:
        """Returns what is new at the host.

        Args:
            sha256: Of the run.json that is known.

        Returns:
            ``content`` of run.json, None where it is the known one, its ``sha256``,
            whether to ``stop``, and the number of the newest ``model`` or None.
        """
        answer: Mapping[str, Any] = self._ask("look", sha256=sha256)
        return answer

    def claim(self, num_wanted: int) -> list[int]:
        """Returns the generations that this writer has not sealed."""
        return [
            number_in({"generation": number}, "generation", least=1)
            for number in self._ask("claim", num_wanted=num_wanted)
        ]

    def append(self, where: Mapping[str, Any], prefix: Prefix, data: bytes) -> int:
        """Adds a piece to a growing file; returns how long that is at the host."""
        answer = self._ask(
            "append", offset=prefix.size, crc=prefix.crc, data=encoded(data), **where
        )
        return number_in(answer, "size", 1 << 41)

    def size_there(self, where: Mapping[str, Any]) -> int:
        """Returns how long a growing file is at the host."""
        return self.append(where, Prefix(), b"")

    def send_segment(
        self, incarnation: int, generation: int, size: int, crc: int, path: Path
    ) -> None:
        """Sends a segment; it is published at the host when this returns."""
        offset = 0
        with open(path, "rb") as file:
            while True:
                answer = self._ask(
                    "segment",
                    incarnation=incarnation,
                    generation=generation,
                    size=size,
                    crc=crc,
                    offset=offset,
                    data=encoded(os.pread(file.fileno(), PIECE_BYTES, offset)),
                )
                if answer["done"]:
                    return
                held = number_in(answer, "size", size)
                # Somebody else's pieces, of a process before this one.
                offset = held if held == offset + PIECE_BYTES else 0

    def send_totals(self, totals: tuple[int, int]) -> None:
        """Tells what the actor has made in all."""
        self._ask("totals", num_rows=totals[0], num_episodes=totals[1])

    def model_files(self, number: int) -> list[Mapping[str, Any]]:
        """Returns the name, the size and the sha256 of each file of a model.

        Raises:
            RunError: It is not at the host any more.
        """
        files = self._ask("model", number=number)
        if not isinstance(files, list) or not 1 <= len(files) <= _MOST_FILES:
            raise RunError(f"model ({number}) of {self.name} has no files")
        return files

    def model_piece(self, number: int, name: str, offset: int) -> bytes:
        """Returns the bytes of a model's file from an offset on, at most a piece."""
        piece = self._ask("piece", number=number, name=name, offset=offset)
        return decoded({"data": piece})

    def bye(self) -> None:
        """Tells that this process ends; its place is kept for the next one."""
        self._ask("bye")

    def leave(self) -> None:
        """Gives the place back: what was sent is sealed, no more is taken."""
        self._ask("leave")

    def status(self) -> Any:
        """Returns the run's status, as its host tells it."""
        return self._ask("status")

    def _ask(self, what: str, **fields: Any) -> Any:
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            raise NoAnswer(f"{self.name} has not taken all in time")
        who = {"mirror": self._mirror, "events": self._events}
        answer = self._client.ask({"ask": what, **who, **fields})
        if what in ("join", "look", "append", "segment") and not isinstance(
            answer, dict
        ):
            raise UsageError(
                f"answer ({what}) of {self.name} must be an object; install the same "
                f"tengen on both sides"
            )
        return answer
