"""A session with another program, which sends commands and receives responses."""

from __future__ import annotations

import queue
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread

from tengen import _core
from tengen.errors import TengenError
from tengen.play.growing import Analysis
from tengen.play.player import Player
from tengen.play.session.searches import (
    USUAL_SIMULATIONS,
    Limits,
    Thinker,
    most_simulations,
)

_MAX_LINE_BYTES = 1 << 16
_MAX_LINES = 1000


class LineReader:
    """Reads lines in a background thread. Only one thread may call its methods.

    Args:
        read: A blocking function that returns the next bytes; empty at the end of
            input. The background thread may be blocked in it when the process exits.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read
        # The queue is bounded, for backpressure on a program that sends too fast.
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_LINES)
        self._peeked: deque[bytes | None] = deque()

    def start(self) -> None:
        """Starts the background thread. Must be called once, before other methods."""
        Thread(target=self._fill, name="lines", daemon=True).start()

    def next(self) -> bytes | None:
        """Consumes and returns the next line; None at the end of input. Blocks."""
        return self._peeked.popleft() if self._peeked else self._lines.get()

    def peek(self, *, wait: bool = False) -> tuple[bytes | None, bool]:
        """Returns (next line or None, whether it has arrived) without consuming it.

        Args:
            wait: Whether to block until a line or the end of input arrives.
        """
        if not self._peeked:
            try:
                self._peeked.append(self._lines.get(wait))
            except queue.Empty:
                return None, False
        return self._peeked[0], True

    def waiting(self) -> Sequence[bytes | None]:
        """Returns the lines that have arrived and are not consumed, at most 1000.

        None marks the end of input.
        """
        while len(self._peeked) < _MAX_LINES:
            try:
                self._peeked.append(self._lines.get_nowait())
            except queue.Empty:
                break
        return self._peeked

    def _fill(self) -> None:
        rest = b""
        try:
            while chunk := self._read():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put(line[:_MAX_LINE_BYTES])
                rest = rest[:_MAX_LINE_BYTES]
        except OSError:
            pass  # Treat a closed terminal as the end of input.
        if rest:
            self._lines.put(rest)
        self._lines.put(None)


# Maximum length of a reported principal variation.
_MAX_VARIATION = 15


class Session(ABC):
    """Base class of sessions; each protocol has a subclass. Not thread-safe.

    Args:
        player: The player that searches positions.
        simulations: Simulations per move. None for as many as the time limit allows, or
            for 400 without a time limit.
        threads: Number of threads that search one tree.
        write: Sends text to the other program; must not buffer it.
        lines: Reads the other program's lines. ``run`` starts it.
        ponders: Whether to ponder: to search while the other program waits to send its
            next line. Requires a player with tree reuse.

    Attributes:
        lines: Reader of the other program's lines.
        is_over: Whether the other program has quit.
    """

    def __init__(
        self,
        player: Player,
        *,
        simulations: int | None,
        threads: int,
        write: Callable[[str], None],
        lines: LineReader,
        ponders: bool = False,
    ) -> None:
        self.lines = lines
        self.is_over = False
        self._player = player
        self._simulations = simulations
        # The number of simulations for which the searches' batch size is chosen.
        self._usual = min(simulations or USUAL_SIMULATIONS, USUAL_SIMULATIONS)
        self._threads = threads
        self._write = write
        self._ponders = ponders
        self._thinker = Thinker()

    @property
    def tree_bytes(self) -> int | None:
        """The memory limit of a search tree, in bytes; None for the default."""
        return None

    @property
    def most(self) -> int:
        """The maximum number of simulations of a tree within its memory limit."""
        return most_simulations(self._player.game, self.tree_bytes)

    def run(self) -> None:
        """Runs the session until the other program quits or the input ends. Blocks."""
        self.lines.start()
        while not self.is_over:
            if self._ponders and not self.lines.waiting():
                self._ponder()
            line = self.lines.next()
            if line is None:
                return
            self.answer(line)

    @abstractmethod
    def answer(self, line: bytes) -> None:
        """Runs the command in ``line`` and writes the response."""

    @abstractmethod
    def is_stopped(self) -> bool:
        """Returns whether a waiting line ends the current search."""

    @abstractmethod
    def moves_to_ponder(self) -> Sequence[int] | None:
        """Returns the moves to the position to ponder; None to not ponder."""

    def move_limits(self, seconds: float | None, most_s: float | None) -> Limits:
        """Returns the search limits for a move.

        Args:
            seconds: The time limit ``Limits.seconds``.
            most_s: The time limit ``Limits.most_seconds``.
        """
        simulations = self._simulations
        if simulations is None:
            simulations = USUAL_SIMULATIONS if seconds is None else self.most
        return Limits(min(simulations, self.most), seconds, most_s, may_end_early=True)

    def search(
        self,
        moves: Sequence[int],
        limits: Limits,
        begun_s: float,
        between: Callable[[Callable[[], Analysis]], bool] | None = None,
        left_out: Sequence[tuple[int, int, int]] = (),
    ) -> Analysis:
        """Searches within limits; returns the analysis of the position. Blocks.

        Args:
            moves: Actions from the start of the game, which must not have ended.
            limits: Limits of the search.
            begun_s: Time at which the move was requested, from ``time.monotonic``.
            between: Called between slices with a function that returns the current
                analysis; ends the search if it returns True. None for ``is_stopped``.
            left_out: Actions to exclude, as for ``Player.begin``.
        """
        ends = between or (lambda analysis: self.is_stopped())
        with self._player.begin(
            moves, self._usual, threads=self._threads, left_out=left_out
        ) as search:
            self._thinker.think(
                search,
                limits,
                begun_s,
                lambda: ends(lambda: search.analysis(_MAX_VARIATION)),
            )
            return search.analysis(_MAX_VARIATION)

    def measure_speed(self, moves: Sequence[int]) -> None:
        """Runs a short search of the position after ``moves`` to measure the speed.

        Raises:
            UsageError: The player's searches cannot be extended.
        """
        self.search(moves, Limits(2 * self._threads), time.monotonic())

    def forget(self) -> None:
        """Discards the evaluation cache and the trees of earlier searches."""
        self._player = self._player.playing(self._player.game.name)

    def _ponder(self) -> None:
        """Searches until the next line arrives or the tree is full. Blocks.

        If the tree contains the opponent's move, the next search reuses the subtree. If
        the search fails, prints the error to stderr and stops pondering for good; the
        other program receives the error when it next requests a search.
        """
        moves = self.moves_to_ponder()
        if moves is None:
            return
        limits, begun_s = Limits(self.most), time.monotonic()
        try:
            self.search(moves, limits, begun_s, lambda _: bool(self.lines.waiting()))
        except (TengenError, _core.CoreError) as error:
            print(f"tengen: pondering stopped: {error}", file=sys.stderr)
            self._ponders = False
