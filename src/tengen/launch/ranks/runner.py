"""How the first rank of ``mpirun`` has the other ranks start processes.

Each other rank joins the runner as a role process does. Notes tell it what to start:

    {"begin": ID, "words": [...],      starts Python with these arguments, and adds to
     "environment": {...},             its environment; it sees only these GPUs, null:
     "devices": [...] | null}          those of the rank
    {"kill": ID}
    {"look": FILE, "call": CALL}       does this host see the file of this call?
    {"over": true}                     the rank ends

It answers with ``{"ended": ID, "how": TEXT}``, as ``Poll.end``, and ``{"looked": CALL,
"found": BOOL}``.

The processes are in sessions of their own: ``mpirun`` kills a rank together with its
group a second after a signal, and a role needs longer to save. A process ends by itself
once the runner closes its connection, also where the runner ends.
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

__all__ = ["Held", "Holder", "Runner"]

_PAUSE_S = 0.25
_POLL_S = 0.05


class Runner:
    """Has the other ranks start processes; see ``Launcher``. Any thread.

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
        # Guards everything below.
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
        """Waits until every rank has joined. Blocks for ten minutes at most.

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
                f"{self._join_s:g} s; their hosts must reach a port of "
                f"{self.ranks[0].host}, see what they print"
            )

    def look(self, run: RunDirectory, call: str) -> None:
        """Makes sure that every rank sees the run directory, with its hosts file.

        Blocks until every rank has answered or is lost; says which are waited for, such
        as one whose file server does not answer.

        Raises:
            UsageError: A rank's host does not see it.
        """
        path = str(run.path.absolute())
        for rank in self._tickets:
            self._send(rank, {"look": path, "call": call})
        with self._changed:
            self._wait_for(lambda: {*self._looked, *self._lost}, f"to look at {path}")
            blind = [rank for rank in self._tickets if not self._looked.get(rank)]
            self._looked.clear()
        if blind:
            names = ", ".join(
                f"rank {rank} on {self.ranks[rank].host}" for rank in blind
            )
            raise UsageError(
                f"run ({path}) must be the same folder on every host, and is not for "
                f"{names}; give --out a folder that all hosts mount"
            )

    def know(self, table: Sequence[Placed]) -> None:
        """Takes the table of processes, to name those of a rank that is lost."""
        with self._changed:
            for one in table:
                self._holds.setdefault(one.rank, []).append(one.worker.name)

    def start(self, command: Command, placed: Placed) -> Held:
        """Starts a command beside a rank. Does not block.

        Args:
            command: The command.
            placed: Its rank is the one that is to hold the process.

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
        """Has a function called with a line for each rank that is lost, also before.

        Args:
            on_loss: The function, which any thread calls; None: no more.
        """
        with self._changed:
            self._on_loss = on_loss
            if on_loss is not None:
                for rank in sorted(self._lost):
                    on_loss(self._loss(rank))

    @property
    def losses(self) -> list[str]:
        """A line for each rank that is lost."""
        with self._changed:
            return [self._loss(rank) for rank in sorted(self._lost)]

    def end(self) -> bool:
        """Makes every rank end. Does not block.

        Returns:
            Whether all ranks were told to end, so that MPI can end too.
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
            with contextlib.suppress(OSError):  # who hears it notices the end
                stream.send(Note(details))

    def _hear(self, rank: int, ticket: Ticket) -> None:
        stream = ticket.wait(self._join_s)
        if stream is None:
            return
        with contextlib.suppress(RunError):  # somebody else speaks: as an end
            while (message := stream.receive()) is not None:
                with self._changed:
                    if isinstance(message, Note):
                        self._take(rank, message.details)
                    else:
                        self._streams[rank] = stream  # it has begun
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
        """Waits until every rank is known, and says which are not.

        The caller holds the lock.
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
            f"{self._lost[rank]}; see that host, then run the same command again to go "
            "on"
        )


class Held:
    """A ``Handle`` of a process beside another rank.

    Args:
        runner: Speaks with the rank.
        rank: The rank that holds the process.
        number: The process's number, unique in this call.
    """

    def __init__(self, runner: Runner, rank: int, number: int) -> None:
        self.rank = rank
        self.number = number
        self._runner = runner
        self._end = ""

    def end(self, how: str) -> None:
        """Notes how the process ended, or that its rank is lost. Any thread."""
        self._end = self._end or how

    def poll(self) -> Poll:
        """See ``Handle.poll``."""
        return Poll(end=self._end)

    def kill(self) -> None:
        """See ``Handle.kill``."""
        self._runner.kill(self)


class Holder:
    """Starts the processes of one rank.

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
        self._watching: list[threading.Thread] = []

    def run(self) -> bool:
        """Does what the runner says until the rank is to end. Blocks.

        Returns:
            Whether the runner said so; else it is lost. In both cases the processes
            have ended: without its runner a process saves and ends, or ends itself.
        """
        is_over = False
        with contextlib.suppress(RunError):  # somebody else speaks: as an end
            while not is_over and (message := self._stream.receive()) is not None:
                if isinstance(message, Note):
                    is_over = "over" in message.details
                    self._take(message.details)
        for thread in self._watching:
            thread.join()
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
        watching = threading.Thread(target=self._watch, args=(number,), daemon=True)
        self._watching = [one for one in self._watching if one.is_alive()] + [watching]
        watching.start()

    def _watch(self, number: int) -> None:
        while not (how := self._held[number].poll().end):
            time.sleep(_POLL_S)
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
