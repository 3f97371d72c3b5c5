"""A mirror: a local folder that stands in for the run directory of another host.

::

    the run's host                            this host
    RunService   <-- requests, chunks ---   Mirror: a thread
                                              |  run.json, models, STOP
                                              v
                                            a folder like a run's  <-- the role

The role uses the folder like any run directory. The thread downloads the inputs of the
role and uploads its outputs. During an outage, self-play continues with its current
model until it has used all generation numbers claimed in advance (enough for an hour),
or until the games that wait for upload are too large.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import writer_directory
from tengen.experience.games.files import writer_files
from tengen.remote.folder import MirrorFolder
from tengen.remote.messages import MOST_AHEAD, Place, RunClient, log_name
from tengen.remote.stock import NumberStock
from tengen.remote.transfers import Downloads, GameUploads, Upload
from tengen.run import (
    RunDirectory,
    find_files,
    read_actor_totals,
    write_actor_totals,
)
from tengen.transport import Client, NoAnswer

_Answer = TypeVar("_Answer")

_PATIENCE_OF_RUN_S = 600.0
"""``patience_s`` of a process that the run started, because the host may restart."""
_CLOSE_S = 20.0
_SENDING_S = 0.02


class _Interrupted(NoAnswer):
    """Raised to interrupt the download of a model when the role ends."""


class Mirror:
    """The mirror of a run, for one role. Call ``open`` first and ``close`` last.

    Args:
        path: The mirror's folder, created if missing. In the folder of an earlier
            process, the mirror resumes the work of that process.
        client: A client of the run's service.
        role: The role that works on the mirror, ``selfplay`` or ``actor``.
        index: The index of the actor or writer. None for this mirror's previous index,
            or a free index if there is none.
        stop: Ends the role and all waits for the run's host. The mirror sets the event
            on a permanent error; the caller then calls ``check``.
        say: Called with each log message, from any thread.
        is_vouched: Whether the run started this process, the only one with ``index``.
        backlog_bytes: The maximum size of the games that wait for upload when a
            generation begins.

    Attributes:
        run: The mirror's folder, as the run directory of the role.
        place: This process's slot in the run.
        waits_for: The reason why ``next_generation`` returned None.
        look_s: Seconds between two exchanges with the run's host.
        retry_s: Seconds between two attempts while the run's host is unreachable.
        patience_s: Seconds that ``open`` waits for the run's host.
    """

    look_s = 1.0
    retry_s = 2.0
    patience_s = 60.0

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
        self._stock = NumberStock()
        self._exchanged_s = -math.inf
        self._away_since_s: float | None = None
        self._totals: tuple[int, int] | None = None

    def open(self) -> RunDirectory:
        """Creates the folder and takes a slot in the run. Blocks.

        If the run's host does not respond, retries for one minute, or for ten minutes
        if the run started this process.

        Returns:
            The mirror's folder as a run directory, with the ``run.json`` of the run.

        Raises:
            UsageError: The folder is not a mirror of this run, or the run's host does
                not respond or rejects the token, the version or the index.
            RunError: A file operation fails.
        """
        self._folder = MirrorFolder(self.run, self._service.name)
        self._held = self.run.lock("mirror")
        try:
            self._folder.write()
            self.place = self._waited_for(self._join)
            self._folder.run_id, self._folder.has_place = self.place.run, True
            self._folder.write()
            self._downloads = Downloads(self._client, self.run, self._between_pieces)
            if self.run.is_new:
                self._waited_for(self._downloads.take)
            RunDirectory.create_or_resume(self.run.path)
            self._make_uploads()
            self._waited_for(self._sync)
        except BaseException:
            self._held.release()
            raise
        self._thread = threading.Thread(target=self._work, name="mirror", daemon=True)
        self._thread.start()
        return self.run

    @property
    def log_name(self) -> str:
        """The file name, in the folder ``logs``, of this process's log."""
        return log_name(self._role, self.place.index, self.place.events)

    def new_incarnation(self) -> int:
        """Returns an incarnation above all incarnations that this writer has used.

        A role needs a new incarnation if it is recreated, for example because
        ``run.json`` has changed.
        """
        folder = writer_directory(self.run, self.place.index)
        used = [int(p.name) for p in find_files(folder, "*") if p.name.isdecimal()]
        return max([self.place.incarnation, *(number + 1 for number in used)])

    def next_generation(self) -> int | None:
        """Returns the number of the next generation, or None with ``waits_for`` set.

        Raises:
            TengenError: The mirror has failed permanently.
        """
        self.check()
        waiting = self._games.unsent_bytes() if self._games else 0
        if waiting > self._backlog_bytes:
            self._stock.pause()
            self.waits_for = (
                f"{waiting / 2**20:.0f} MiB of games wait for {self._client.name}, "
                f"more than the limit of {self._backlog_bytes / 2**20:.0f}"
            )
            return None
        known = self._begun_generations()
        number = self._stock.begin(known, time.monotonic())
        if self._stock.num_lacking(known):
            self._wake.set()
        self.waits_for = ""
        if number is None:
            self.waits_for = f"{self._client.name} has not sent the next generation"
        return number

    def check(self) -> None:
        """Raises the error that ended the mirror, if there is one.

        Raises:
            TengenError: The run's host rejected a request, or the mirror failed.
        """
        if self._error is not None:
            raise self._error

    def wait_until_sent(self, seconds: float) -> None:
        """Waits until all games are uploaded; returns early in an outage.

        Args:
            seconds: The maximum wait.
        """
        until = time.monotonic() + seconds
        while self._games is not None and self._games.unsent_bytes() > 0:
            is_late = time.monotonic() >= until or self._away_since_s is not None
            if is_late or self._error is not None or self._stop.is_set():
                return
            self._wake.set()
            time.sleep(_SENDING_S)

    def close(self) -> None:
        """Uploads the remaining data for up to 20 s, and ends the mirror. Idempotent.

        Data that has not been uploaded stays in the folder for the next process.
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
                if self._games is None:
                    self._take()
                self._send()
                self._end()
                break
            except TengenError as error:
                is_late = time.monotonic() >= until or self._away_since_s is not None
                if is_late or isinstance(error, UsageError):
                    self._say(f"{error}; unsent files stay in {self.run.path}")
                    break
                time.sleep(self.retry_s)
        self._held.release()

    def _end(self) -> None:
        """Reports this process's end; gives the slot back unless games are left."""
        keeps_place = self._games is not None and bool(self._games.unsent())
        self._client.ask("end", keeps_place=keeps_place)
        if not keeps_place:
            self._folder.has_place = False
            self._folder.write()

    def _join(self) -> Place:
        place = self._ask_for_place()
        if place is None:
            self._say(self._folder.give_up())
            place = self._ask_for_place()
        if place is None:
            raise RunError(f"{self._client.name} has no place for a new mirror")
        return place

    def _ask_for_place(self) -> Place | None:
        folder = self._folder
        self._client = RunClient(self._service, folder.mirror)
        return self._client.join(
            self._role,
            self._index,
            folder.run_id,
            is_vouched=self._is_vouched,
            had_place=folder.has_place and self._role == "selfplay",
        )

    def _waited_for(self, ask: Callable[[], _Answer]) -> _Answer:
        """Returns ``ask()``. Retries while the run's host does not respond."""
        patience_s = _PATIENCE_OF_RUN_S if self._is_vouched else self.patience_s
        until = time.monotonic() + patience_s
        is_told = False
        while True:
            try:
                return ask()
            except NoAnswer as error:
                is_late = time.monotonic() >= until
                if self._stop.is_set() or (is_late and self._is_vouched):
                    raise
                if is_late:
                    raise UsageError(f"{error}, for {patience_s:g} s") from error
                if not is_told:
                    self._say(f"waits for the run's host: {error}")
                    is_told = True
            self._stop.wait(self.retry_s)

    def _make_uploads(self) -> None:
        place, role = self.place, self._role
        self._games: GameUploads | None = None
        if role == "selfplay":
            folder = writer_directory(self.run, place.index)
            self._games = GameUploads(self._client, folder)
        elif place.totals > read_actor_totals(self.run, place.index):
            self.run.actors.mkdir(exist_ok=True)
            write_actor_totals(self.run, place.index, place.totals)
        events = self.run.events_path(f"{role}-command", place.events)
        self._uploads = [
            Upload(self._client, events, {"kind": "events"}),
            Upload(self._client, self.run.logs / self.log_name, {"kind": "log"}),
        ]

    def _work(self) -> None:
        while not self._is_over.is_set():
            pause_s = self.look_s
            try:
                self._sync()
                self._is_back()
            except UsageError as error:
                self._fail(error)
                return
            except _Interrupted:
                pass
            except TengenError as error:
                self._is_away(error)
                pause_s = self.retry_s
            except Exception as error:
                # For example, the response of the run's host was malformed.
                kind = type(error).__name__
                self._fail(RunError(f"mirror ({self.run.path}) failed, {kind} {error}"))
                return
            self._wake.wait(pause_s)
            self._wake.clear()

    def _fail(self, error: TengenError) -> None:
        """Records a permanent error, and ends the role, which cannot sync any more."""
        self._error = error
        self._say(str(error))
        self._stop.set()

    def _sync(self) -> None:
        newest = self._exchange()
        if self._role == "selfplay" and not self._stop.is_set():
            self._downloads.follow(newest)

    def _exchange(self) -> int | None:
        """Syncs all files except models. Returns the number of the newest model."""
        newest = self._take()
        self._send(time.monotonic() + self.look_s)
        if self._games is not None:
            self._claim(self._games)
        self._exchanged_s = time.monotonic()
        return newest

    def _take(self) -> int | None:
        """Downloads all files except models, and reports an actor's counts."""
        totals = None
        if self._games is None:
            totals = read_actor_totals(self.run, self.place.index)
        newest = self._downloads.take(None if totals == self._totals else totals)
        self._totals = totals
        return newest

    def _send(self, until: float = math.inf) -> None:
        if self._games is not None:
            self._games.send(until)
            if time.monotonic() > until:
                self._wake.set()  # continues after the next look at the run
            self._stock.drop(self._games.sent_generations())
        for upload in self._uploads:
            upload.send()

    def _between_pieces(self) -> None:
        """Syncs all files except models between two chunks of a large model."""
        if self._is_over.is_set() or self._stop.is_set():
            raise _Interrupted("the role is ending")
        if time.monotonic() - self._exchanged_s >= self.look_s:
            self._exchange()

    def _claim(self, games: GameUploads) -> None:
        """Claims more generation numbers if the stock has too few."""
        known = self._begun_generations()
        # The run's host counts a generation as unsealed until its segment arrives.
        num_had = self._stock.num_free(known) + len(known - games.sent_generations())
        num_more = min(self._stock.num_lacking(known), MOST_AHEAD - num_had)
        if num_more > 0:
            answer = self._client.ask("claim", num_wanted=num_had + num_more)
            self._stock.put(int(number) for number in answer["numbers"])
            if self._stock.num_lacking(known):
                self._wake.set()

    def _begun_generations(self) -> set[int]:
        """Returns the numbers of all generations begun on this mirror."""
        folder = writer_directory(self.run, self.place.index)
        # List journals first: the role may seal a journal between the two listings.
        files = writer_files(folder, "journal") + writer_files(folder, "npz")
        sent = self._games.sent_generations() if self._games else set()
        return {int(path.stem) for path in files} | sent

    def _is_away(self, error: TengenError) -> None:
        if self._away_since_s is None:
            self._away_since_s = time.monotonic()
            self._say(f"{error}; continues, and sends its files when it can")

    def _is_back(self) -> None:
        if self._away_since_s is not None:
            away_s = time.monotonic() - self._away_since_s
            self._away_since_s = None
            self._say(f"{self._client.name} answers again, after {away_s:.0f} s")
