"""The first rank of ``mpirun``, which exchanges messages with all other ranks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import queue
import threading
import time
from collections.abc import Callable, Container, Sequence
from typing import Any

from tengen.errors import RunError, UsageError
from tengen.launch.ranks.post import SILENCE_S, Post, Wire
from tengen.launch.ranks.table import Placed, RankInfo, check_alike
from tengen.run import RunDirectory

__all__ = ["RankChild", "Runner"]

_HELLO_S = 600.0
"""Seconds for all ranks to begin: they start together, on hosts that may be slow. If
one dies, ``mpirun`` ends the call."""
_SAY_S = 10.0
"""Seconds after which it is said which ranks are waited for."""
_PONG_S = 0.6
"""Seconds for a living rank to answer: ``mpirun`` kills this rank a second after its
signal."""


class Runner:
    """Exchanges messages with every other rank. Any thread.

    Args:
        wire: Carries messages to the other ranks.
        info: This rank's info.

    Attributes:
        ranks: The info of all ranks, in order; set when ``begin`` has returned.
    """

    def __init__(self, wire: Wire, info: RankInfo) -> None:
        self.ranks: Sequence[RankInfo] = [info]
        self._peers = list(range(1, wire.size))
        self._post = Post(wire, self._peers, self._take, self._on_silence)
        self._numbers = itertools.count()
        # Guards everything below.
        self._changed = threading.Condition()
        self._hellos: dict[int, RankInfo] = {0: info}
        self._looked: dict[int, bool] = {}
        self._ponged: set[int] = set()
        self._children: dict[int, RankChild] = {}
        self._lost: dict[int, str] = {}
        self._holds: dict[int, list[str]] = {}

    def begin(self) -> None:
        """Waits until every rank has begun. Blocks for ten minutes at most.

        Raises:
            RunError: A rank has not begun.
            UsageError: The ranks run different versions.
        """
        self._post.start()
        with self._changed:
            until = time.monotonic() + _HELLO_S
            self._wait_for(lambda: self._hellos, "to begin", until)
            missing = [rank for rank in self._peers if rank not in self._hellos]
            for rank in missing:
                self._lost[rank] = "did not begin"
        if missing:
            names = ", ".join(map(str, missing))
            raise RunError(
                f"ranks ({names}) did not begin within {_HELLO_S:g} s; see what their "
                f"hosts say, and give mpirun hosts that run tengen"
            )
        self.ranks = [self._hellos[rank] for rank in (0, *self._peers)]
        check_alike(self.ranks)

    def look(self, run: RunDirectory, call: str) -> None:
        """Makes sure that every rank sees the run directory, with its hosts file.

        Blocks until every rank has answered or is lost; says which are waited for, such
        as one whose file server does not answer.

        Raises:
            UsageError: A rank's host does not see it.
        """
        path = str(run.path.absolute())
        for rank in self._peers:
            self._post.send(rank, {"look": path, "call": call})
        with self._changed:
            self._wait_for(lambda: {*self._looked, *self._lost}, f"to look at {path}")
            blind = [rank for rank in self._peers if not self._looked.get(rank)]
            self._looked.clear()
        if blind:
            names = ", ".join(
                f"rank {rank} on {self.ranks[rank].host}" for rank in blind
            )
            raise UsageError(
                f"run ({path}) must be the same folder on every host, and is not for "
                f"{names}; give --out a folder that all hosts mount"
            )

    def _wait_for(
        self, known: Callable[[], Container[int]], what: str, until: float = math.inf
    ) -> None:
        """Waits until every rank is known, and says which are not.

        The caller holds the lock.
        """

        def absent() -> list[int]:
            found = known()
            return [rank for rank in self._peers if rank not in found]

        while (left_s := until - time.monotonic()) > 0:
            if self._changed.wait_for(lambda: not absent(), min(left_s, _SAY_S)):
                return
            names = ", ".join(map(str, absent()))
            print(f"waiting for ranks {names} {what}", flush=True)

    def know(self, table: Sequence[Placed]) -> None:
        """Takes the table of processes, to name those of a rank that is lost."""
        with self._changed:
            for one in table:
                self._holds.setdefault(one.rank, []).append(one.worker.name)

    def start(
        self, rank: int, words: list[str], devices: Sequence[str] | None = None
    ) -> RankChild:
        """Starts Python with some arguments beside a rank. Does not block.

        Args:
            rank: The rank that is to hold the process.
            words: Python's arguments.
            devices: The only GPUs that the process is to see; None: the rank's.

        Raises:
            RunError: The rank is lost.
        """
        with self._changed:
            if rank in self._lost:
                raise RunError(self._loss(rank))
            child = RankChild(self, rank, next(self._numbers))
            self._children[child.number] = child
        begin = {"begin": child.number, "words": words, "devices": devices}
        self._post.send(rank, begin)
        return child

    def send(self, rank: int, message: dict[str, Any]) -> None:
        """Sends a message; a lost rank never gets it."""
        self._post.send(rank, message)

    def forget(self, child: RankChild) -> None:
        """Ignores further messages of a process."""
        with self._changed:
            self._children.pop(child.number, None)

    def find_dead(self) -> list[str]:
        """Returns a line for each rank that does not answer at once. Blocks for 0.6 s.

        These ranks count as lost from now on.
        """
        with self._changed:
            asked = [rank for rank in self._peers if rank not in self._lost]
            for rank in asked:
                self._post.send(rank, {"ping": rank})
            self._changed.wait_for(lambda: self._ponged.issuperset(asked), _PONG_S)
            dead = [rank for rank in asked if rank not in self._ponged]
            self._ponged.clear()
        for rank in dead:
            self._lose(rank, "is dead or does not answer")
        return [self._loss(rank) for rank in dead]

    @property
    def losses(self) -> list[str]:
        """A line for each rank that is lost."""
        with self._changed:
            return [self._loss(rank) for rank in sorted(self._lost)]

    def end(self) -> bool:
        """Makes every rank end; blocks for some seconds at most.

        Returns:
            Whether all ranks were told to end, so that MPI can end too.
        """
        with self._changed:
            lost = set(self._lost)
        for rank in self._peers:
            if rank not in lost:
                self._post.send(rank, {"over": True})
        return self._post.close() and not lost

    def _take(self, rank: int, message: dict[str, Any]) -> None:
        with self._changed:
            if "hello" in message:
                # A rank of another version may report more fields; the version check
                # refuses it.
                told = {field.name for field in dataclasses.fields(RankInfo)}
                hello = message["hello"]
                self._hellos[rank] = RankInfo(
                    **{name: hello[name] for name in told if name in hello}
                )
            elif "looked" in message:
                self._looked[rank] = message["found"]
            elif "pong" in message:
                self._ponged.add(rank)
            else:
                number = next(
                    message[key]
                    for key in ("line", "closed", "ended")
                    if key in message
                )
                child = self._children.get(number)
                if child is not None:
                    child.take(message)
            self._changed.notify_all()

    def _on_silence(self, rank: int) -> None:
        self._lose(rank, f"said nothing for {SILENCE_S:g} s")

    def _lose(self, rank: int, how: str) -> None:
        with self._changed:
            self._lost.setdefault(rank, how)
            for child in self._children.values():
                if child.rank == rank:
                    child.lose(f"its rank, {rank} on {self._host(rank)}, which {how}")
            self._changed.notify_all()

    def _loss(self, rank: int) -> str:
        where = f"{rank} on {self._host(rank)}"
        return (
            f"rank ({', '.join((where, *self._holds.get(rank, [])))}) "
            f"{self._lost[rank]}; see that host, then run the same command again to go "
            "on"
        )

    def _host(self, rank: int) -> str:
        return self._hellos[rank].host if rank in self._hellos else "an unknown host"


class RankChild:
    """A ``Child`` beside another rank.

    Args:
        runner: Speaks with the rank.
        rank: The rank that holds the process.
        number: The process's number, unique in this call.
    """

    def __init__(self, runner: Runner, rank: int, number: int) -> None:
        self.rank = rank
        self.number = number
        self._runner = runner
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._has_ended = threading.Event()
        self._how = ""

    def take(self, message: dict[str, Any]) -> None:
        """Takes a message of the rank about the process."""
        if "line" in message:
            self._lines.put(message["text"])
        elif "closed" in message:
            self._lines.put(None)
        else:
            self._how = message["how"]
            self._has_ended.set()

    def lose(self, how: str) -> None:
        """Notes that the rank, and so the process, is lost."""
        self._how = how
        self._has_ended.set()
        self._lines.put(None)

    def send(self, message: dict[str, Any]) -> None:
        """See ``Child.send``."""
        line = json.dumps(message)
        self._runner.send(self.rank, {"tell": self.number, "line": line})

    def receive(self) -> dict[str, Any] | None:
        """See ``Child.receive``."""
        line = self._lines.get()
        if line is None:
            self._lines.put(None)  # for the next call
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        """See ``Child.kill``."""
        self._runner.send(self.rank, {"kill": self.number})

    def end(self, timeout_s: float) -> str:
        """See ``Child.end``."""
        self._runner.send(self.rank, {"end": self.number, "timeout_s": timeout_s})
        # The rank tells, or is lost.
        self._has_ended.wait()
        self._runner.forget(self)
        return self._how
