"""A mirror: the part of a run directory that a role on another host works on.

::

    RUN's host                                   this host
    service (mirror.service)  <-- questions --   mirror: a thread
                                                   |  run.json, models, STOP
                                                   v
                                                 a folder as a run's  <-- the role

The role works on the folder as on any run directory. The thread has what the role needs
come in and what the role makes go out. Where the host does not answer the role goes on:
self-play with the model that it has, until as many bytes of games wait as there may be,
or until it has no number of a generation left; numbers for an hour are kept in stock.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import writer_directory
from tengen.experience.games.files import writer_files
from tengen.mirror.members import log_name
from tengen.mirror.messages import Growing
from tengen.mirror.outbox import GamesOutbox, GrowingOutbox
from tengen.mirror.run_client import Place, RunClient
from tengen.observe.status import HOST_STATUS
from tengen.run import (
    RunDirectory,
    find_files,
    publish_json,
    read_actor_totals,
    read_object,
    storage_error,
    write_actor_totals,
)
from tengen.transport import Client, NoAnswer

__all__ = ["Mirror"]

_Answer = TypeVar("_Answer")

_SCHEMA = 1
_FILE = "mirror.json"
_LOOK_S = 1.0
_RETRY_S = 2.0
_PATIENCE_S = 60.0
_PATIENCE_OF_RUN_S = 600.0
"""For the host of a run that started the process itself: it may be restarted."""
_OUTAGE_S = 3600.0
_LEAST_AHEAD = 16
_MOST_AHEAD = 256
_KEPT_MODELS = 3
_CLOSE_S = 20.0
_STATUS_S = 10.0
_SENDING_S = 0.02


class Mirror:
    """A folder of this host that stands for a run of another. ``open`` comes first.

    Args:
        path: The folder; made when absent, or the mirror that it was before.
        client: To the run's service.
        role: What works on it, ``selfplay`` or ``actor``.
        index: Which actor or writer; None: the writer that this mirror was before, or
            one that is free.
        stop: Ends waiting for the host.
        say: Takes a line for people, from any thread.
        is_vouched: Whether the run started this process as the only one of its index.
        backlog_bytes: Bytes of games that may wait for the host, between generations.

    Attributes:
        run: The folder, as the role's run directory.
        place: What this process is to the run.
        waits_for: Why ``next_generation`` had none.
    """

    def __init__(
        self,
        path: Path,
        client: Client,
        role: str,
        index: int | None = None,
        *,
        stop: threading.Event,
        say: Callable[[str], None] = lambda text: None,
        backlog_bytes: int = 1 << 30,
        is_vouched: bool = False,
    ) -> None:
        self.run = RunDirectory(path)
        self.place: Place
        self.waits_for = ""
        self._service = client
        self._role = role
        self._index = index
        self._stop = stop
        self._say = say
        self._backlog_bytes = backlog_bytes
        self._is_vouched = is_vouched
        self._error: TengenError | None = None
        self._is_over = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._sha256 = ""
        self._claimed: list[int] = []
        self._num_ahead = _LEAST_AHEAD
        self._begun_s: float | None = None
        self._away_since_s: float | None = None
        self._told: tuple[int, int] | None = None
        self._status_s = -math.inf
        # That of an earlier process, whoever asked it.
        self._is_stopped_there = True

    def open(self) -> RunDirectory:
        """Makes the folder and takes a place in the run. Blocks.

        A host that does not answer is waited for, a minute at most, or ten where the
        run started this process.

        Returns:
            The folder, as a run directory, with the run's ``run.json``.

        Raises:
            UsageError: The folder is something else, the host does not answer, or it
                refuses this role: by its token, its version, its index.
            RunError: The disk refuses.
        """
        known = self._read()
        self._make_folder()
        self._held = self.run.lock("mirror")
        try:
            self._client = RunClient(self._service, known["mirror"])
            publish_json(self.run.path / _FILE, known)
            self.place = self._waited_for(lambda: self._join(known["run"]))
            publish_json(self.run.path / _FILE, {**known, "run": self.place.run})
            if self.run.is_new:
                self._take_config(self._waited_for(lambda: self._client.look("")))
            self.run = RunDirectory.create_or_resume(self.run.path)
            self._make_outboxes()
            self._waited_for(self._sync)
        except BaseException:
            self._held.release()
            raise
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self._thread.start()
        return self.run

    @property
    def log_name(self) -> str:
        """The file of ``logs`` that a process may print to, which the host gets."""
        return log_name(self._role, self.place)

    def new_incarnation(self) -> int:
        """Returns the incarnation of a new writer here: above all of this writer.

        A role that is made anew, as where ``run.json`` has changed, is a new one.
        """
        folder = writer_directory(self.run, self.place.index)
        names = [path.name for path in find_files(folder, "*")]
        used = [int(name) for name in names if name.isdecimal()]
        return max([self.place.incarnation, *(number + 1 for number in used)])

    def next_generation(self) -> int | None:
        """Returns the number of the generation to begin; None: wait, see ``waits_for``.

        Raises:
            TengenError: What the host refused for good.
        """
        if self._error is not None:
            raise self._error
        waiting = self._games.unsent_bytes() if self._games else 0
        if waiting > self._backlog_bytes:
            self.waits_for = (
                f"{waiting / 2**20:.0f} MiB of games wait for {self._client.name}, "
                f"which may be {self._backlog_bytes / 2**20:.0f}"
            )
            return None
        with self._lock:
            known = self._local_generations()
            free = [number for number in self._claimed if number not in known]
            if not free:
                self.waits_for = f"the next number comes from {self._client.name}"
                self._wake.set()
                return None
            now_s = time.monotonic()
            if self._begun_s is not None:
                ahead = math.ceil(_OUTAGE_S / max(0.1, now_s - self._begun_s))
                self._num_ahead = min(_MOST_AHEAD, max(_LEAST_AHEAD, ahead))
            self._begun_s = now_s
        self.waits_for = ""
        return free[0]

    def wait_until_sent(self, seconds: float) -> None:
        """Waits until the host has all games, unless it does not answer.

        Args:
            seconds: At most.
        """
        until = time.monotonic() + seconds
        while self._games is not None and self._games.unsent_bytes() > 0:
            is_late = time.monotonic() >= until or self._away_since_s is not None
            if is_late or self._error is not None or self._stop.is_set():
                return
            self._wake.set()
            time.sleep(_SENDING_S)

    def close(self) -> None:
        """Sends what is left, for some seconds, and ends. A second call does nothing.

        What could not be sent stays in the folder, for the next process on it.
        """
        if self._is_over.is_set():
            return
        self._is_over.set()
        self._wake.set()
        until = time.monotonic() + _CLOSE_S
        self._client.deadline_s = until
        self._thread.join()
        while self._error is None:
            try:
                self._send()
                self._end()
                break
            except NoAnswer as error:
                if time.monotonic() >= until or self._away_since_s is not None:
                    self._say(f"{error}; what it was not sent stays in {self.run.path}")
                    break
                time.sleep(_RETRY_S)
            except TengenError as error:
                self._say(f"{error}; what was not sent stays in {self.run.path}")
                break
        self._held.release()

    def _end(self) -> None:
        """Says that the process ends: for good where no generation is half played."""
        if self._games is not None and not self._games.has_journals:
            self._client.leave()
        else:
            self._client.bye()

    def _make_folder(self) -> None:
        """Makes the folder, this user's alone: what it holds is played, and trusted."""
        path = self.run.path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = path.stat().st_uid
        except OSError as error:
            raise storage_error(path, error) from error
        if owner != os.getuid():
            raise UsageError(f"folder ({path}) is another user's; name one of your own")

    def _read(self) -> dict[str, Any]:
        path = self.run.path / _FILE
        if path.exists():
            advice = "choose another folder"
            known = read_object(
                path, "mirror", schema=_SCHEMA, advice=advice, error=UsageError
            )
            if not isinstance(known.get("mirror"), str):
                raise UsageError(f"mirror ({path}) is damaged; {advice}")
            return {
                "schema": _SCHEMA,
                "mirror": known["mirror"],
                "run": known.get("run"),
            }
        if not self.run.is_new and self.run.models.numbers():
            raise UsageError(
                f"run ({self.run.path}) is a run of its own; name a folder for what "
                f"this host needs of the other's"
            )
        return {"schema": _SCHEMA, "mirror": secrets.token_hex(16), "run": None}

    def _join(self, run: str | None) -> Place:
        return self._client.join(
            self._role, self._index, run, is_vouched=self._is_vouched
        )

    def _waited_for(self, ask: Callable[[], _Answer]) -> _Answer:
        """Asks a host that may begin after this role, or again while it begins."""
        patience_s = _PATIENCE_OF_RUN_S if self._is_vouched else _PATIENCE_S
        until = time.monotonic() + patience_s
        is_told = False
        while True:
            try:
                return ask()
            except NoAnswer as error:
                if self._stop.is_set():
                    raise
                if time.monotonic() >= until:
                    if self._is_vouched:
                        raise
                    raise UsageError(f"{error}, for {patience_s:g} s") from error
                if not is_told:
                    self._say(f"waits for the run's host: {error}")
                    is_told = True
            self._stop.wait(_RETRY_S)

    def _make_outboxes(self) -> None:
        place, role = self.place, self._role
        self._games: GamesOutbox | None = None
        if role == "selfplay":
            folder = writer_directory(self.run, place.index)
            self._games = GamesOutbox(self._client, folder)
        elif place.totals > read_actor_totals(self.run, place.index):
            self.run.actors.mkdir(exist_ok=True)
            write_actor_totals(self.run, place.index, place.totals)
        events = self.run.events_path(f"{role}-command", place.events)
        self._events = GrowingOutbox(self._client, events, {"kind": Growing.EVENTS})
        log = self.run.logs / self.log_name
        self._log = GrowingOutbox(self._client, log, {"kind": Growing.LOG})

    def _work(self) -> None:
        while not self._is_over.is_set():
            pause_s = _LOOK_S
            try:
                self._sync()
                self._is_back()
            except UsageError as error:
                self._error = error
                self._say(str(error))
                return
            except TengenError as error:
                self._is_away(error)
                pause_s = _RETRY_S
            except Exception as error:
                # Of a host that answers what it should not, too: the role ends by it.
                self._error = RunError(
                    f"mirror ({self.run.path}) failed, {type(error).__name__} {error}"
                )
                self._say(str(self._error))
                return
            self._wake.wait(pause_s)
            self._wake.clear()

    def _sync(self) -> None:
        self._take_look()
        self._send()
        if self._games is not None and self._lacks_numbers():
            claimed = self._client.claim(self._num_wanted())
            with self._lock:
                self._claimed = claimed

    def _lacks_numbers(self) -> bool:
        """Returns whether half of the stock of numbers is used up."""
        with self._lock:
            free = set(self._claimed) - self._local_generations()
            return len(free) <= self._num_ahead // 2

    def _num_wanted(self) -> int:
        """Returns how many generations that are not sealed at the host to have.

        Those that are begun here count there too.
        """
        assert self._games is not None
        here = self._local_generations() - self._games.sent_generations()
        return min(1024, self._num_ahead + len(here))

    def _local_generations(self) -> set[int]:
        folder = writer_directory(self.run, self.place.index)
        files = writer_files(folder, "npz") + writer_files(folder, "journal")
        return {int(path.stem) for path in files}

    def _send(self) -> None:
        if self._games is not None:
            self._games.send()
            with self._lock:
                gone = self._games.sent_generations()
                self._claimed = [one for one in self._claimed if one not in gone]
        else:
            totals = read_actor_totals(self.run, self.place.index)
            if totals != self._told:
                self._client.send_totals(totals)
                self._told = totals
        self._events.send()
        self._log.send()

    def _take_look(self) -> None:
        found = self._client.look(self._sha256)
        self._take_config(found)
        self._take_stop(bool(found["stop"]))
        self._take_status()
        number = found["model"]
        newest = self.run.models.latest()
        if self._role == "actor" or type(number) is not int:
            return
        if newest is None or newest < number:
            self._client.fetch_model(self.run.models, number)
            self.run.models.retire(_KEPT_MODELS)

    def _take_stop(self, is_asked: bool) -> None:
        """Asks the role to stop as the run is; one that was asked here alone stays so.

        A STOP of before is none of this process.
        """
        if is_asked and not self.run.stop_requested():
            self.run.request_stop()
            self._is_stopped_there = True
        elif not is_asked and self._is_stopped_there:
            self.run.clear_stop()
            self._is_stopped_there = False

    def _take_config(self, found: Mapping[str, Any]) -> None:
        content = found["content"]
        if content is None:
            return
        if not isinstance(content, dict):
            raise RunError(f"run.json of {self._client.name} is no object")
        publish_json(self.run.path / "run.json", content)
        self._sha256 = str(found["sha256"])

    def _take_status(self) -> None:
        """Keeps what the host says of the whole run, for ``tengen status`` here."""
        if time.monotonic() - self._status_s >= _STATUS_S:
            self._status_s = time.monotonic()
            report = self._client.status()
            if report is None:
                return
            content = {"schema": 1, "time_s": time.time(), "report": report}
            publish_json(self.run.path / HOST_STATUS, content)

    def _is_away(self, error: TengenError) -> None:
        if self._away_since_s is None:
            self._away_since_s = time.monotonic()
            self._say(f"{error}; goes on, and sends what it makes when it can")

    def _is_back(self) -> None:
        if self._away_since_s is not None:
            away_s = time.monotonic() - self._away_since_s
            self._away_since_s = None
            self._say(f"{self._client.name} answers again, after {away_s:.0f} s")
