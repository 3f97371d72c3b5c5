"""``RunService``, the server for roles on hosts without the run directory.

::

    service = RunService(run, task)
    server = Server(listener, service.service)     # of tengen.transport
    ...
    server.close()
    service.close()

The service sends a role its inputs (``run.json``, models, generation numbers) and
receives its outputs (games, events, logs, counts), which are durable before the service
responds. Requests are idempotent, because mirrors repeat requests after an outage.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from tengen import __version__
from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import claim_ahead, writer_directory
from tengen.experience.games.files import writer_files
from tengen.remote.copies import CopiedFiles, Prefix
from tengen.remote.games import append_segment, check_claimed, check_segment
from tengen.remote.members import Member, Members
from tengen.remote.messages import (
    MAX_FILE_BYTES,
    MOST_AHEAD,
    PIECE_BYTES,
    PYTHON,
    RUN,
    decoded,
    encoded,
    log_name,
    number_in,
    word_in,
)
from tengen.run import (
    RunDirectory,
    file_sha256,
    read_actor_totals,
    run_identity,
    write_actor_totals,
)
from tengen.transport import Message, Service

_AWAY_S = 7200.0
"""Seconds without a request after which a mirror loses its slot; enough for an outage
of an hour. The service then seals the mirror's games, and rejects further games."""
_LOOK_S = 5.0
_HERE_S = 6.0
_LOOK_AGAIN_S = 0.1
_MOST_MADE_ANEW = 1000
"""The maximum number of times that a process may recreate its role."""


class RunService:
    """Serves a run's files to its mirrors. Thread-safe.

    Args:
        run: The run.
        task: The run's task.
        status: Returns the status of the run, as JSON values, for mirrors.
        say: Called with each log message.

    Raises:
        UsageError: Another process already runs the service of this run.
        RunError: A mirror's record is damaged, or a file operation fails.

    Attributes:
        service: The ``Service`` to pass to a ``Server`` of ``tengen.transport``.
    """

    def __init__(
        self,
        run: RunDirectory,
        task: str,
        *,
        status: Callable[[], Any] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._run = run
        self._task = task
        self._status = status
        self._say = say
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
        questions: dict[str, Callable[[Message], dict[str, Any]]] = {
            "join": self._join,
            "look": self._look,
            "claim": self._claim,
            "append": self._append,
            "model": self._model,
            "piece": self._piece,
            "end": self._end,
        }
        self.service = Service(dialect=RUN, questions=questions)
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)
        self._watch.start()

    def wait_for_mirrors(self, seconds: float) -> None:
        """Waits until all connected mirrors have uploaded their games and ended.

        Args:
            seconds: The maximum wait.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._members.num_here(_HERE_S) > 0:
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Ends the service. The next service resumes with the same mirrors."""
        self._is_over.set()
        self._watch.join()
        self._members.close()
        self._held.release()

    def _join(self, message: Message) -> dict[str, Any]:
        process = word_in(message, "process")
        for name, ours in (("tengen", __version__), ("python", PYTHON)):
            version = word_in(message, name)
            if version != ours:
                raise UsageError(
                    f"{name} ({version}) of {process} must be {ours}, that of the "
                    "run's host; install the same version on both"
                )
        role = word_in(message, "role")
        index = None
        if message.get("index") is not None:
            index = number_in(message, "index", 1023)
        elif role == "actor":
            raise UsageError("index (none) is required for an actor; add --index")
        run_id = run_identity(self._run)
        if message.get("run") not in (None, run_id):
            raise UsageError(
                f"run ({self._run.path}) is not the run of this mirror; choose another "
                "folder"
            )
        member = self._members.join(
            word_in(message, "mirror"),
            role,
            index,
            process,
            is_vouched=message.get("is_vouched") is True,
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
            "run": run_id,
            "index": record.index,
            "incarnation": record.incarnation,
            "events": record.events,
            "totals": list(totals),
        }

    def _look(self, message: Message) -> dict[str, Any]:
        totals = message.get("totals")
        if totals is None:
            self._hear(message)
        else:
            with self._working(message) as member:
                self._take_totals(member, totals)
        content = (self._run.path / "run.json").read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        is_known = message.get("sha256") == sha256
        return {
            "sha256": sha256,
            "content": None if is_known else json.loads(content),
            "stop": self._run.stop_requested(),
            "model": self._run.models.latest(),
            "status": self._told() if message.get("asks_status") is True else None,
        }

    def _take_totals(self, member: Member, totals: Any) -> None:
        if member.record.role != "actor" or not isinstance(totals, list):
            raise UsageError("totals must be an actor's two numbers")
        named = dict(zip(("num_rows", "num_episodes"), totals, strict=False))
        num_rows = number_in(named, "num_rows", 1 << 62)
        num_episodes = number_in(named, "num_episodes", 1 << 62)
        write_actor_totals(self._run, member.record.index, (num_rows, num_episodes))

    def _claim(self, message: Message) -> dict[str, list[int]]:
        num_wanted = number_in(message, "num_wanted", MOST_AHEAD)
        with self._working(message) as member:
            numbers = claim_ahead(
                self._run,
                self._folder(member),
                member.record.incarnation,
                self._task,
                num_wanted,
            )
        return {"numbers": numbers}

    def _append(self, message: Message) -> dict[str, int]:
        """Appends a chunk to a mirror's file. Returns the file's size on this host."""
        kind, data = word_in(message, "kind"), decoded(message)
        size = number_in(message, "offset", 1 << 40)
        before = Prefix(size, number_in(message, "crc", (1 << 32) - 1))
        with self._working(message) as member:
            record = member.record
            if kind == "events":
                path = self._run.events_path(f"{record.role}-command", record.events)
            elif kind == "log":
                name = log_name(record.role, record.index, record.events)
                path = self._run.logs / name
            else:
                held = self._append_games(member, message, kind, (before, data))
                return {"held": held}
            return {"held": self._copies.append(path, before, data)}

    def _append_games(
        self, member: Member, message: Message, kind: str, piece: tuple[Prefix, bytes]
    ) -> int:
        folder = self._folder(member)
        generation = number_in(message, "generation", least=1)
        # A recreated role uses a higher incarnation than `join` assigned.
        most = member.record.incarnation + _MOST_MADE_ANEW
        incarnation = number_in(message, "incarnation", most, least=1)
        if kind == "segment":
            size = number_in(message, "size", MAX_FILE_BYTES)
            whole = Prefix(size, number_in(message, "whole_crc", (1 << 32) - 1))
            newest = self._run.models.latest()
            return append_segment(
                folder,
                incarnation,
                generation,
                whole,
                piece,
                self._copies,
                lambda path: check_segment(path, generation, self._task, newest),
            )
        before, data = piece
        if any(int(path.stem) == generation for path in writer_files(folder, "npz")):
            return before.size + len(data)  # ignored, because the segment is sealed
        check_claimed(folder, generation)
        place = folder / str(incarnation)
        place.mkdir(exist_ok=True)
        return self._copies.append(place / f"{generation:06d}.journal", before, data)

    def _model(self, message: Message) -> dict[str, Any]:
        with self._reading_model(message) as folder:
            files = [
                {
                    "name": path.name,
                    "size": path.stat().st_size,
                    "sha256": file_sha256(path),
                }
                for path in sorted(folder.iterdir())
                if path.is_file()
            ]
        return {"files": files}

    def _piece(self, message: Message) -> dict[str, str]:
        offset = number_in(message, "offset", 1 << 40)
        with (
            self._reading_model(message) as folder,
            open(folder / word_in(message, "name"), "rb") as file,
        ):
            file.seek(offset)
            return {"data": encoded(file.read(PIECE_BYTES))}

    @contextmanager
    def _reading_model(self, message: Message) -> Iterator[Path]:
        self._hear(message)
        folder = self._run.models.entry(number_in(message, "number"))
        try:
            yield folder
        except OSError as error:
            raise RunError(f"model ({folder.name}) no longer exists") from error

    def _end(self, message: Message) -> dict[str, Any]:
        keeps_place = message.get("keeps_place") is not False
        self._members.end(*_asker(message), keeps_place=keeps_place)
        return {}

    def _told(self) -> Any:
        """Returns the status of the run, cached for a few seconds."""
        with self._reading:
            if time.monotonic() - self._read_s >= _LOOK_S:
                self._read_s = time.monotonic()
                # Keep the old status on an error, which the run's host reports itself.
                with suppress(TengenError):
                    self._report = self._status()
            return self._report

    def _folder(self, member: Member) -> Path:
        """Returns the folder with a member's games."""
        if member.record.role != "selfplay":
            raise RunError(f"mirror ({member.record.mirror}) writes no games")
        return writer_directory(self._run, member.record.index)

    def _working(self, message: Message) -> AbstractContextManager[Member]:
        return self._members.working(*_asker(message))

    def _hear(self, message: Message) -> None:
        self._members.hear(*_asker(message))

    def _watching(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            with suppress(TengenError):  # retried by the next call
                self._members.look(_AWAY_S)


def _asker(message: Message) -> tuple[str, int]:
    """Returns the IDs of the requesting mirror and of its process's event file."""
    return word_in(message, "mirror"), number_in(message, "events")
