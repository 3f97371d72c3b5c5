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
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import writer_directory
from tengen.experience.games.files import writer_files
from tengen.mirror.folder import MirrorFolder
from tengen.mirror.inbox import Inbox
from tengen.mirror.members import log_name
from tengen.mirror.messages import MOST_AHEAD, Growing
from tengen.mirror.models import MirroredModels
from tengen.mirror.outbox import GamesOutbox, GrowingOutbox
from tengen.mirror.run_client import Place, RunClient
from tengen.mirror.stock import NumberStock
from tengen.run import (
    RunDirectory,
    find_files,
    read_actor_totals,
    write_actor_totals,
)
from tengen.transport import Client, NoAnswer

__all__ = ["Mirror"]

_Answer = TypeVar("_Answer")

_LOOK_S = 1.0
_RETRY_S = 2.0
_PATIENCE_S = 60.0
_PATIENCE_OF_RUN_S = 600.0
"""For the host of a run that started the process itself: it may be restarted."""
_CLOSE_S = 20.0
_SENDING_S = 0.02


class _Cut(NoAnswer):
    """A model is fetched no further, as the role ends."""


class Mirror:
    """A folder of this host that stands for a run of another. ``open`` comes first.

    Args:
        path: The folder; made when absent, or the mirror that it was before.
        client: To the run's service.
        role: What works on it, ``selfplay`` or ``actor``.
        index: Which actor or writer; None: the writer that this mirror was before, or
            one that is free.
        stop: Ends waiting for the host. Set where the mirror fails for good: the role
            ends, and whoever runs it calls ``check``.
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
        self._stock = NumberStock()
        self._exchanged_s = -math.inf
        self._away_since_s: float | None = None
        self._told: tuple[int, int] | None = None

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
        self._folder = MirrorFolder(self.run, self._service.name)
        self._folder.make()
        self._held = self.run.lock("mirror")
        try:
            self._folder.write()
            self.place = self._waited_for(self._join)
            self._folder.run_id, self._folder.has_place = self.place.run, True
            self._folder.write()
            inbox = self._inbox = Inbox(self._client, self.run)
            if self.run.is_new:
                self._waited_for(inbox.take_config)
            self.run = RunDirectory.create_or_resume(self.run.path)
            self._make_outboxes()
            self._models = MirroredModels(self._client, self.run, self._between_pieces)
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
        self.check()
        waiting = self._games.unsent_bytes() if self._games else 0
        if waiting > self._backlog_bytes:
            self._stock.pause()
            self.waits_for = (
                f"{waiting / 2**20:.0f} MiB of games wait for {self._client.name}, "
                f"which may be {self._backlog_bytes / 2**20:.0f}"
            )
            return None
        known = self._local_generations()
        number = self._stock.begin(known)
        self.waits_for = ""
        if self._stock.num_lacking(known):
            self._wake.set()
        if number is None:
            self.waits_for = f"the next number comes from {self._client.name}"
        return number

    def check(self) -> None:
        """Makes sure that the mirror works; where it has failed the role is to end.

        Raises:
            TengenError: What the host refused for good, or what else failed.
        """
        if self._error is not None:
            raise self._error

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
        if self._games is not None and self._games.has_journals:
            self._client.bye()
            return
        self._client.leave()
        self._folder.has_place = False
        self._folder.write()

    def _join(self) -> Place:
        place = self._ask_for_place()
        if place is None:
            self._say(self._folder.give_up())
            place = self._ask_for_place()
        if place is None:
            raise RunError(f"{self._client.name} gives a new mirror no place")
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
                self._fail(error)
                return
            except _Cut:
                pass
            except TengenError as error:
                self._is_away(error)
                pause_s = _RETRY_S
            except Exception as error:
                # Of a host that answers what it should not, too: the role ends by it.
                self._fail(
                    RunError(
                        f"mirror ({self.run.path}) failed, {type(error).__name__} "
                        f"{error}"
                    )
                )
                return
            self._wake.wait(pause_s)
            self._wake.clear()

    def _fail(self, error: TengenError) -> None:
        """Ends the role: what it makes from now on nobody would hear of."""
        self._error = error
        self._say(str(error))
        self._stop.set()

    def _sync(self) -> None:
        newest = self._exchange()
        if self._role == "selfplay" and not self._stop.is_set():
            self._models.follow(newest)

    def _exchange(self) -> int | None:
        """Sends what is there and takes what is small; returns the newest model."""
        newest = self._inbox.take()
        self._send()
        if self._games is not None:
            self._claim(self._games)
        self._exchanged_s = time.monotonic()
        return newest

    def _between_pieces(self) -> None:
        """Keeps up with the host while a large model arrives."""
        if self._is_over.is_set() or self._stop.is_set():
            raise _Cut("the role ends")
        if time.monotonic() - self._exchanged_s >= _LOOK_S:
            self._exchange()

    def _claim(self, games: GamesOutbox) -> None:
        known = self._local_generations()
        # Those that are begun here count at the host until their segments are there.
        num_had = self._stock.num_free(known) + len(known - games.sent_generations())
        num_more = min(self._stock.num_lacking(known), MOST_AHEAD - num_had)
        if num_more > 0:
            self._stock.put(self._client.claim(num_had + num_more))
            if self._stock.num_lacking(known):
                self._wake.set()

    def _local_generations(self) -> set[int]:
        folder = writer_directory(self.run, self.place.index)
        # In this order: the role seals meanwhile. What was sent goes after a while.
        files = writer_files(folder, "journal") + writer_files(folder, "npz")
        sent = self._games.sent_generations() if self._games else set()
        return {int(path.stem) for path in files} | sent

    def _send(self) -> None:
        if self._games is not None:
            self._games.send()
            self._stock.drop(self._games.sent_generations())
        else:
            totals = read_actor_totals(self.run, self.place.index)
            if totals != self._told:
                self._client.send_totals(totals)
                self._told = totals
        self._events.send()
        self._log.send()

    def _is_away(self, error: TengenError) -> None:
        if self._away_since_s is None:
            self._away_since_s = time.monotonic()
            self._say(f"{error}; goes on, and sends what it makes when it can")

    def _is_back(self) -> None:
        if self._away_since_s is not None:
            away_s = time.monotonic() - self._away_since_s
            self._away_since_s = None
            self._say(f"{self._client.name} answers again, after {away_s:.0f} s")
