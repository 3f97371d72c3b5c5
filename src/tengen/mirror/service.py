"""The service of a run directory, for roles on hosts that do not have it.

::

    service = RunService(run, task)
    server = Server(listener, service.service)     # of tengen.transport
    ...
    server.close()
    service.close()

It hands out what a role needs (``run.json``, models, numbers of generations) and takes
what the role makes (games, events, logs, counts), durably before it answers. Each
question is answered by itself, and one that is asked again changes nothing: whoever was
cut off asks again.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tengen import __version__
from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import claim_ahead
from tengen.experience.games.files import writer_files
from tengen.mirror.growing_file import CopiedFiles
from tengen.mirror.members import Member, Members, folder_of, log_name
from tengen.mirror.messages import (
    MOST_AHEAD,
    PIECE_BYTES,
    PYTHON,
    RUN,
    Growing,
    decoded,
    encoded,
    number_in,
    word_in,
)
from tengen.mirror.segments import check_claimed, take_segment
from tengen.run import (
    RunDirectory,
    file_sha256,
    read_actor_totals,
    run_identity,
    write_actor_totals,
)
from tengen.transport import Message, Service

__all__ = ["AWAY_S", "RunService"]

AWAY_S = 7200.0
"""Seconds for which a mirror that is not heard of keeps its place: more than an outage
of an hour. Then the service seals what the mirror has sent, and takes no more of it."""

_LOOK_S = 5.0
_HERE_S = 6.0
_LOOK_AGAIN_S = 0.1
_MOST_MADE_ANEW = 1000
"""Times that a role is made anew in one process, as where ``run.json`` changes."""


class RunService:
    """Answers the mirrors of a run. Thread-safe.

    Args:
        run: The run.
        task: The run's, which its games are of.
        away_s: How long a mirror that is not heard of keeps its place.
        status: Returns what is told to whoever asks for the run's status, JSON values.
        say: Takes a line for people.

    Raises:
        UsageError: Another process is the run's service.
        RunError: A record of a mirror is damaged, or the disk refuses.

    Attributes:
        service: For a ``Server`` of the transport.
    """

    def __init__(
        self,
        run: RunDirectory,
        task: str,
        *,
        away_s: float = AWAY_S,
        status: Callable[[], Any] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._run = run
        self._task = task
        self._away_s = away_s
        self._status = status
        self._say = say
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._read_s = -math.inf
        self._report: Any = None
        self._copies = CopiedFiles()
        self._held = run.lock("mirrors")
        try:
            self._members = Members(run, task, say)
        except BaseException:
            self._held.release()
            raise
        questions: dict[str, Callable[[Message], Any]] = {
            "join": self._join,
            "look": self._look,
            "claim": self._claim,
            "append": self._append,
            "segment": self._segment,
            "totals": self._totals,
            "model": self._model,
            "piece": self._piece,
            "bye": self._bye,
            "leave": self._leave,
            "status": self._told,
        }
        self.service = Service(dialect=RUN, questions=questions)
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)
        self._watch.start()

    def wait_for_mirrors(self, seconds: float) -> None:
        """Waits until all that are connected have sent what they have and ended.

        Args:
            seconds: At most.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self._lock:
                if self._members.num_here(_HERE_S) == 0:
                    return
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Ends the service; mirrors keep their places for the next one."""
        self._is_over.set()
        self._watch.join()
        with self._lock:
            self._members.close()
            self._held.release()

    def _join(self, message: Message) -> dict[str, Any]:
        version = word_in(message, "tengen")
        if version != __version__:
            raise UsageError(
                f"tengen ({version}) of {word_in(message, 'process')} must be "
                f"{__version__}, that of the run's host; install the same on both"
            )
        python = word_in(message, "python")
        if python != PYTHON:
            raise UsageError(
                f"python ({python}) of {word_in(message, 'process')} must be {PYTHON}, "
                f"that of the run's host; install the same on both"
            )
        role = word_in(message, "role")
        mirror = word_in(message, "mirror")
        index = None
        if message.get("index") is not None:
            index = number_in(message, "index", 1023)
        elif role == "actor":
            raise UsageError("index (none) must be said, of an actor")
        known = message.get("run")
        if known not in (None, run_identity(self._run)):
            raise UsageError(
                f"run ({self._run.path}) is not the one that this mirror was made of; "
                f"choose another folder"
            )
        with self._lock:
            process = word_in(message, "process")
            is_vouched = message.get("is_vouched") is True
            member = self._members.join(
                mirror,
                role,
                index,
                process,
                is_vouched=is_vouched,
                had_place=message.get("had_place") is True,
            )
        if member is None:
            return {"given_up": True}
        record = member.record
        totals = (0, 0)
        if role == "actor":
            totals = read_actor_totals(self._run, record.index)
        self._say(f"{role} of {process} works here")
        return {
            "run": run_identity(self._run),
            "index": record.index,
            "incarnation": record.incarnation,
            "events": record.events,
            "totals": list(totals),
        }

    def _look(self, message: Message) -> dict[str, Any]:
        self._hear(message)
        content = (self._run.path / "run.json").read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        is_known = message.get("sha256") == sha256
        return {
            "sha256": sha256,
            "content": None if is_known else json.loads(content),
            "stop": self._run.stop_requested(),
            "model": self._run.models.latest(),
        }

    def _claim(self, message: Message) -> list[int]:
        num_wanted = number_in(message, "num_wanted", MOST_AHEAD)
        with self._working(message) as member:
            return claim_ahead(
                self._run,
                folder_of(self._run, member),
                member.record.incarnation,
                self._task,
                num_wanted,
            )

    def _append(self, message: Message) -> dict[str, int]:
        data = decoded(message)
        if len(data) > PIECE_BYTES:
            raise UsageError(f"piece ({len(data)} bytes) must be at most {PIECE_BYTES}")
        offset = number_in(message, "offset", 1 << 40)
        crc = number_in(message, "crc", (1 << 32) - 1)
        with self._working(message) as member:
            path = self._growing(member, message)
            if path is None:
                return {"size": offset + len(data)}
            return {"size": self._copies.append(path, offset, crc, data)}

    def _growing(self, member: Member, message: Message) -> Path | None:
        """Returns where a growing file of a mirror lies here; None: it has ended."""
        record = member.record
        kind = word_in(message, "kind")
        if kind == Growing.EVENTS:
            return self._run.events_path(f"{record.role}-command", record.events)
        if kind == Growing.LOG:
            return self._run.logs / log_name(record.role, record)
        folder = folder_of(self._run, member)
        generation = number_in(message, "generation", least=1)
        incarnation = self._incarnation(member, message)
        if any(int(p.stem) == generation for p in writer_files(folder, "npz")):
            return None
        check_claimed(folder, generation)
        (folder / str(incarnation)).mkdir(exist_ok=True)
        return folder / str(incarnation) / f"{generation:06d}.journal"

    def _incarnation(self, member: Member, message: Message) -> int:
        """Returns the folder that a mirror writes to: its own, or one of before."""
        most = member.record.incarnation + _MOST_MADE_ANEW
        return number_in(message, "incarnation", most, least=1)

    def _segment(self, message: Message) -> dict[str, Any]:
        data = decoded(message)
        with self._working(message) as member:
            is_whole, held = take_segment(
                folder_of(self._run, member),
                self._incarnation(member, message),
                number_in(message, "generation", least=1),
                self._task,
                self._run.models.latest(),
                (
                    number_in(message, "size", 1 << 40),
                    number_in(message, "crc", 1 << 32),
                ),
                (number_in(message, "offset", 1 << 40), data),
                self._copies,
            )
        return {"done": is_whole, "size": held}

    def _totals(self, message: Message) -> None:
        with self._working(message) as member:
            if member.record.role != "actor":
                raise UsageError("totals must be of an actor")
            totals = (
                number_in(message, "num_rows", 1 << 62),
                number_in(message, "num_episodes", 1 << 62),
            )
            write_actor_totals(self._run, member.record.index, totals)

    def _model(self, message: Message) -> list[dict[str, Any]]:
        self._hear(message)
        folder = self._run.models.entry(number_in(message, "number"))
        try:
            return [
                {
                    "name": path.name,
                    "size": path.stat().st_size,
                    "sha256": file_sha256(path),
                }
                for path in sorted(folder.iterdir())
                if path.is_file()
            ]
        except OSError as error:
            raise RunError(f"model ({folder.name}) is not here any more") from error

    def _piece(self, message: Message) -> str:
        self._hear(message)
        folder = self._run.models.entry(number_in(message, "number"))
        offset = number_in(message, "offset", 1 << 40)
        try:
            with open(folder / word_in(message, "name"), "rb") as file:
                file.seek(offset)
                return encoded(file.read(PIECE_BYTES))
        except OSError as error:
            raise RunError(f"model ({folder.name}) is not here any more") from error

    def _bye(self, message: Message) -> None:
        with self._lock:
            self._members.bye(self._member(message))

    def _leave(self, message: Message) -> None:
        with self._lock:
            # It has sent all that it began.
            self._members.part_with(self._member(message), were_begun=False)

    def _told(self, message: Message) -> Any:
        """Returns the run's status, read anew every few seconds at most."""
        self._hear(message)
        with self._reading:
            if time.monotonic() - self._read_s >= _LOOK_S:
                self._read_s = time.monotonic()
                # What cannot be read is told at the host.
                with suppress(TengenError):
                    self._report = self._status()
            return self._report

    @contextmanager
    def _working(self, message: Message) -> Iterator[Member]:
        """Returns the member that asks, with its files for this thread alone."""
        with self._lock:
            member = self._member(message)
        with self._members.work_of(member, number_in(message, "events")):
            yield member

    def _hear(self, message: Message) -> None:
        with self._lock:
            self._member(message)

    def _member(self, message: Message) -> Member:
        events = number_in(message, "events")
        return self._members.of(word_in(message, "mirror"), events)

    def _watching(self) -> None:
        while not self._is_over.wait(min(_LOOK_S, self._away_s / 4)):
            # Anew each time: a place that was given back may be another's by now.
            late: list[Member] = []
            with self._lock, suppress(TengenError):  # a full disk: the next time
                late = self._members.look(self._away_s)
            for member in late:
                with self._lock, suppress(TengenError):
                    self._members.part_with(member)
