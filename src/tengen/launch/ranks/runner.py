"""The protocol by which the first rank of ``mpirun`` starts processes on other ranks.

Each other rank joins the runner as a role process does. The runner sends these notes:

    {"begin": ID, "words": [...],      start Python with these arguments, additional
     "environment": {...},             environment variables and visible GPUs; null
     "devices": [...] | null}          means the rank's GPUs
    {"kill": ID}                       kill the process
    {"look": RUN, "call": CALL}        check that RUN has the hosts file of this call
    {"over": true}                     end the rank

The rank sends ``{"ended": ID, "how": TEXT}``, with the text of ``Poll.end``, and
``{"looked": CALL, "found": BOOL}``.

Each process has its own session, because ``mpirun`` kills a rank's process group a
second after a signal, and a role needs longer to save. A process exits when the runner
ends or closes the process's connection.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from tengen.errors import RunError, UsageError, refusal
from tengen.launch.launcher import Command, Handle, Placed, Poll
from tengen.launch.local import LocalLauncher
from tengen.launch.messages import Note
from tengen.launch.ranks.table import RankInfo
from tengen.launch.wire import Stream, Ticket
from tengen.launch.workers import Worker
from tengen.observe import read_hosts
from tengen.run import RunDirectory

_PAUSE_S = 0.25
_POLL_S = 0.05


class Runner:
    """The first rank's connections to the other ranks. Thread-safe.

    Args:
        ranks: The info of all ranks, in order.
        tickets: By rank the ticket that it joins with; not of this rank.
        join_s: Seconds for all ranks to begin: they start together, on hosts that may
            be slow. If one dies, ``mpirun`` ends the call.
        say_s: Seconds after which it is said which ranks are waited for.

    Attributes:
        ranks: The info of all ranks, in order.
    """

    def __init__(
        self,
        ranks: Sequence[RankInfo],
        tickets: Mapping[int, Ticket],
        *,
        join_s: float = 600.0,
        say_s: float = 10.0,
    ) -> None:
        self.ranks = ranks
        self._join_s, self._say_s = join_s, say_s
        self._tickets = dict(tickets)
        self._numbers = itertools.count()
        # Guards all attributes below.
        self._changed = threading.Condition()
        self._streams: dict[int, Stream] = {}
        self._looked: dict[int, bool] = {}
        self._held: dict[int, Held] = {}
        self._lost: dict[int, str] = {}
        self._holds: dict[int, list[str]] = {}
        self._on_loss: Callable[[str], None] | None = None
        self._is_over = False
        for rank, ticket in self._tickets.items():
            args = (rank, ticket)
            threading.Thread(target=self._hear, args=args, daemon=True).start()

    def begin(self) -> None:
        """Waits until all ranks have joined. Blocks for at most ten minutes.

        Raises:
            RunError: A rank has not joined.
        """
        with self._changed:
            until = time.monotonic() + self._join_s
            self._wait_for(lambda: self._streams, "to join", until)
            missing = [rank for rank in self._tickets if rank not in self._streams]
            for rank in missing:
                self._lost[rank] = "did not join"
        if missing:
            raise RunError(
                f"ranks ({', '.join(map(str, missing))}) did not join within "
                f"{self._join_s:g} s; their hosts must be able to connect to "
                f"{self.ranks[0].host}, see their output"
            )

    def look(self, run: RunDirectory, call: str) -> None:
        """Checks that the run directory and its hosts file are visible on every rank.

        Blocks until every rank has responded or is lost. Meanwhile it prints which
        ranks are missing, for example because a file server does not respond.

        Raises:
            UsageError: A rank's host does not have the run directory.
        """
        path = str(run.path.absolute())
        for rank in self._tickets:
            self._send(rank, {"look": path, "call": call})
        with self._changed:
            self._wait_for(lambda: {*self._looked, *self._lost}, f"to check {path}")
            blind = [rank for rank in self._tickets if not self._looked.get(rank)]
            self._looked.clear()
        if blind:
            names = ", ".join(
                f"rank {rank} on {self.ranks[rank].host}" for rank in blind
            )
            raise UsageError(
                f"run ({path}) must be the same folder on every host, and is missing "
                f"on {names}; set --out to a folder that all hosts mount"
            )

    def know(self, table: Sequence[Placed]) -> None:
        """Sets the placements of all processes, for messages about lost ranks."""
        with self._changed:
            for one in table:
                self._holds.setdefault(one.rank, []).append(one.worker.name)

    def start(self, command: Command, placed: Placed) -> Held:
        """Starts a process on a rank's host. Does not block.

        Args:
            command: The command line of the process.
            placed: The placement, with the rank that starts the process.

        Raises:
            RunError: The rank is lost.
        """
        rank = placed.rank
        with self._changed:
            if rank in self._lost:
                raise RunError(self._loss(rank))
            held = Held(self, rank, next(self._numbers))
            self._held[held.number] = held
        begin = {
            "begin": held.number,
            "words": command.words,
            "environment": command.environment,
            "devices": placed.devices,
        }
        self._send(rank, begin)
        return held

    def kill(self, held: Held) -> None:
        """Kills a process, unless its rank is lost."""
        self._send(held.rank, {"kill": held.number})

    def watch(self, on_loss: Callable[[str], None] | None) -> None:
        """Sets a callback for lost ranks, and calls it for ranks that are lost already.

        Args:
            on_loss: Called from any thread with an error message; None for no callback.
        """
        with self._changed:
            self._on_loss = on_loss
            if on_loss is not None:
                for rank in sorted(self._lost):
                    on_loss(self._loss(rank))

    @property
    def losses(self) -> list[str]:
        """The error messages about lost ranks."""
        with self._changed:
            return [self._loss(rank) for rank in sorted(self._lost)]

    def end(self) -> bool:
        """Tells all ranks to end. Does not block.

        Returns:
            Whether no rank is lost, so that MPI can be finalized.
        """
        with self._changed:
            self._is_over = True
            is_whole = not self._lost
        for rank in self._tickets:
            self._send(rank, {"over": True})
        return is_whole

    def _send(self, rank: int, details: dict[str, Any]) -> None:
        with self._changed:
            stream = self._streams.get(rank)
        if stream is not None:
            with contextlib.suppress(OSError):  # _hear detects the loss
                stream.send(Note(details))

    def _hear(self, rank: int, ticket: Ticket) -> None:
        stream = ticket.wait(self._join_s)
        if stream is None:
            return
        with contextlib.suppress(RunError):  # invalid data means that the rank is lost
            while (message := stream.receive()) is not None:
                with self._changed:
                    if isinstance(message, Note):
                        self._take(rank, message.details)
                    else:
                        self._streams[rank] = stream  # Begun: the rank has joined
                    self._changed.notify_all()
        stream.close()
        with self._changed:
            if not self._is_over:
                self._lose(rank)

    def _take(self, rank: int, details: Mapping[str, Any]) -> None:
        if "looked" in details:
            self._looked[rank] = bool(details["found"])
        elif (held := self._held.pop(details["ended"], None)) is not None:
            held.end(str(details["how"]))

    def _lose(self, rank: int) -> None:
        self._lost.setdefault(rank, "is dead or does not answer")
        for held in self._held.values():
            if held.rank == rank:
                where = f"{rank} on {self.ranks[rank].host}"
                held.end(f"its rank, {where}, which {self._lost[rank]}")
        self._changed.notify_all()
        if self._on_loss is not None:
            self._on_loss(self._loss(rank))

    def _wait_for(
        self, known: Callable[[], Container[int]], what: str, until: float = math.inf
    ) -> None:
        """Waits until ``known`` contains all ranks; meanwhile prints missing ranks.

        The caller holds ``_changed``.
        """

        def absent() -> list[int]:
            found = known()
            return [rank for rank in self._tickets if rank not in found]

        while (left_s := until - time.monotonic()) > 0:
            if self._changed.wait_for(lambda: not absent(), min(left_s, self._say_s)):
                return
            names = ", ".join(map(str, absent()))
            print(f"waiting for ranks {names} {what}", flush=True)

    def _loss(self, rank: int) -> str:
        where = f"{rank} on {self.ranks[rank].host}"
        return (
            f"rank ({', '.join((where, *self._holds.get(rank, [])))}) "
            f"{self._lost[rank]}; see that host, then run the same command again to "
            "resume"
        )


class Held:
    """The ``Handle`` of a process that another rank started.

    Args:
        runner: The connection to the rank.
        rank: The rank that starts the process.
        number: The ID of the process, unique in this call.
    """

    def __init__(self, runner: Runner, rank: int, number: int) -> None:
        self.rank = rank
        self.number = number
        self._runner = runner
        self._end = ""

    def end(self, how: str) -> None:
        """Records how the process ended, or that its rank is lost. Thread-safe."""
        self._end = self._end or how

    def poll(self) -> Poll:
        """See ``Handle.poll``."""
        return Poll(end=self._end)

    def kill(self) -> None:
        """See ``Handle.kill``."""
        self._runner.kill(self)


class Holder:
    """Starts and kills the processes of one rank as the runner requests.

    Args:
        stream: To the runner.

    Attributes:
        look_s: Seconds for a file of another host to be seen: a network filesystem may
            be late.
    """

    look_s = 10.0

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._launcher = LocalLauncher(own_session=True)
        self._held: dict[int, Handle] = {}

    def run(self) -> bool:
        """Executes the runner's notes until the rank must end. Blocks.

        Returns:
            True if the runner ended the rank, False if the runner is lost. In both
            cases the rank's processes have ended.
        """
        is_over = False
        with contextlib.suppress(RunError):  # invalid data means a lost runner
            while not is_over:
                self._report_ends()
                try:
                    message = self._stream.receive(_POLL_S)
                except TimeoutError:
                    continue
                if message is None:
                    break
                if isinstance(message, Note):
                    is_over = "over" in message.details
                    self._take(message.details)
        while self._held:
            time.sleep(_POLL_S)
            self._report_ends()
        return is_over

    def _take(self, message: dict[str, Any]) -> None:
        if "begin" in message:
            self._begin(message)
        elif "kill" in message and (held := self._held.get(message["kill"])):
            held.kill()
        elif "look" in message:
            looking = threading.Thread(target=self._look, args=(message,), daemon=True)
            looking.start()

    def _send(self, details: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the runner is gone
            self._stream.send(Note(details))

    def _begin(self, message: dict[str, Any]) -> None:
        number, devices = message["begin"], message["devices"]
        command = Command(words=message["words"], environment=message["environment"])
        placed = Placed(
            worker=Worker(name="", roles=()),
            devices=None if devices is None else tuple(devices),
        )
        try:
            held = self._launcher.start(command, placed)
        except OSError as error:
            how = f"a start that failed, {refusal(error) or error}"
            self._send({"ended": number, "how": how})
            return
        self._held[number] = held

    def _report_ends(self) -> None:
        """Tells the runner which processes have ended."""
        for number, held in [*self._held.items()]:
            if how := held.poll().end:
                del self._held[number]
                self._send({"ended": number, "how": how})

    def _look(self, message: dict[str, Any]) -> None:
        run = RunDirectory(Path(message["look"]))
        pause = threading.Event()
        found = False
        for _ in range(round(self.look_s / _PAUSE_S)):
            with contextlib.suppress(OSError):
                hosts = read_hosts(run)
                found = hosts is not None and hosts.call == message["call"]
            if found:
                break
            pause.wait(_PAUSE_S)
        self._send({"looked": message["call"], "found": found})
