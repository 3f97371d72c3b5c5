"""A Gomocup session: a model plays on a board as a manager commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tengen import __version__, _core
from tengen.errors import TengenError, UsageError
from tengen.games.gomoku import read_gomoku_name, write_cell
from tengen.play.gomocup.limits import ManagerLimits, resident_bytes
from tengen.play.gomocup.protocol import (
    Command,
    GomocupError,
    UnknownCommandError,
    one_line,
    parse_line,
)
from tengen.play.gomocup.stones import OTHER, OWN, Stones
from tengen.play.growing import Analysis
from tengen.play.player import Player
from tengen.play.session.lines import LineReader
from tengen.play.session.searches import (
    USUAL_SIMULATIONS,
    Limits,
    Searches,
    most_simulations,
)

__all__ = ["Engine", "Handler"]

_VARIATION_CELLS = 8


class Engine:
    """One session. Used by one thread.

    Args:
        player: The player; its game must be gomoku.
        handlers: Answer commands, by name.
        simulations: Simulations of a move. None for 400 without a time limit; with one
            only the time limits them.
        threads: Threads that search one tree.
        write: Sends a text at once.
        lines: The manager's lines; not started yet.
        ponders: Whether it searches in the opponent's time, from its move until the
            next line. The player must keep its tree.
        begun_s: When the process started, by ``time.monotonic``; None for now.

    Attributes:
        rules: The rules that the model plays.
        lines: The manager's lines.
        limits: The manager's limits of time and memory.
        stones: The stones on the board; None before the first START.
        is_over: Whether the manager has quit.
    """

    def __init__(
        self,
        player: Player,
        handlers: Mapping[str, Handler],
        *,
        simulations: int | None,
        threads: int,
        write: Callable[[str], None],
        lines: LineReader,
        ponders: bool = False,
        begun_s: float | None = None,
    ) -> None:
        """Runs a short search, which measures the speed of searches.

        Raises:
            UsageError: The game is not gomoku, or the search cannot grow.
        """
        rules = read_gomoku_name(player.game.name)
        if rules is None:
            raise UsageError(
                f"model ({player.name}) plays {player.game.name}, which Gomocup does "
                f"not; name a model of gomoku, or use tengen play"
            )
        self.rules = rules
        self.lines = lines
        self.is_over = False
        self.stones: Stones | None = None
        self._player = player
        self._handlers = handlers
        self._simulations = simulations
        self._searches = Searches(threads, simulations or USUAL_SIMULATIONS)
        self._write = write
        self._ponders = ponders
        self._moved_to: Stones | None = None
        self.search([], Limits(2 * threads), time.monotonic())
        if begun_s is None:
            begun_s = time.monotonic()
        self.limits = ManagerLimits(rules, begun_s, resident_bytes())

    @property
    def about(self) -> str:
        """The answer to ABOUT."""
        name = self._player.name.replace('"', "'")
        return (
            f'name="tengen", version="{__version__}", author="tengen", model="{name}", '
            f'game="{self._player.game.name}"'
        )

    @property
    def model(self) -> str:
        """The name with which the model was loaded."""
        return self._player.name

    def run(self) -> None:
        """Answers until the manager quits or its input ends. Blocks; call it once."""
        self.lines.start()
        while not self.is_over:
            if self._ponders and self.stones is not None:
                self._ponder(self.stones)
            line = self.lines.next()
            if line is None:
                return
            command = parse_line(line)
            if command is not None:
                self._answer(command)

    def begin_match(self) -> None:
        """Clears the board for a match."""
        self.stones = Stones()
        self.limits.start(time.monotonic())

    def board(self) -> Stones:
        """Returns the stones on the board.

        Raises:
            GomocupError: There is no board yet.
        """
        if self.stones is None:
            raise GomocupError(
                f"board (none) is needed first; START {self.rules.size} makes one"
            )
        return self.stones

    def check_limits(self) -> None:
        """Raises GomocupError if a limit of the manager cannot be kept."""
        problem = self.limits.problem
        if problem is not None:
            raise GomocupError(problem)

    def think(self, stones: Stones, begun_s: float) -> Analysis:
        """Returns the analysis of a board within the limits. Blocks.

        Args:
            stones: The board, with the engine to move.
            begun_s: When the move was requested, by ``time.monotonic``.

        Raises:
            GomocupError: It is not the engine's turn, or the game is over.
        """
        moves = stones.moves(self._player.game)
        found = self.search(moves, self.move_limits(len(moves)), begun_s)
        self.limits.spend(time.monotonic() - begun_s)
        return found

    def play(self, stones: Stones, found: Analysis) -> str:
        """Plays the move of an analysis; returns its cell.

        Args:
            stones: The board that was searched.
            found: The analysis.
        """
        self.stones = stones.with_stone(OWN, found.action_to_play, self.rules.size)
        self._moved_to = self.stones
        line = found.actions[0].variation or (found.best_action,)
        cells = " ".join(self.cell(action) for action in line[:_VARIATION_CELLS])
        self.say(
            f"value {found.value_to_play:+.3f}, simulations {found.num_simulations}, "
            f"line {cells}"
        )
        return self.cell(found.action_to_play)

    def move(self, stones: Stones, begun_s: float) -> str | None:
        """Thinks and plays; see ``think``. Blocks.

        Returns:
            The move's cell; None if the manager has quit.
        """
        found = self.think(stones, begun_s)
        return None if self.is_over else self.play(stones, found)

    def say(self, text: str) -> None:
        """Sends a message for people, which managers show."""
        self._write(one_line(f"MESSAGE {text}"))

    def move_limits(self, ply: int) -> Limits:
        """Returns the limits of a move's search.

        Args:
            ply: Moves made so far.
        """
        seconds, most_s = self.limits.budget(ply)
        simulations = self._simulations
        if simulations is None:
            simulations = USUAL_SIMULATIONS if seconds is None else self._most
        return Limits(min(simulations, self._most), seconds, most_s, may_end_early=True)

    def search(self, moves: Sequence[int], limits: Limits, begun_s: float) -> Analysis:
        """Returns the analysis of a search. Blocks.

        The search ends at once if the manager sends END, which sets ``is_over``, or if
        the input ends.

        Args:
            moves: Actions from the start of the game, which is not over.
            limits: When the search ends otherwise.
            begun_s: When the move was requested, by ``time.monotonic``.
        """
        return self._searches.run(
            self._player, moves, limits, begun_s, lambda analysis: self.is_left()
        )

    def cell(self, action: int) -> str:
        """Returns an action as the protocol writes it."""
        return write_cell(action, self.rules.size)

    def forget(self) -> None:
        """Drops the trees of earlier searches."""
        self._player = self._player.playing(self._player.game.name)

    @property
    def _most(self) -> int:
        """The maximum simulations of a tree, by its memory."""
        return most_simulations(self._player.game, self.limits.tree_bytes)

    def _ponder(self, stones: Stones) -> None:
        """Searches the board after its own move until the next line. Blocks."""
        if stones is not self._moved_to or self.lines.waiting():
            return
        try:
            moves = stones.moves(self._player.game, to_move=OTHER)
        except GomocupError:
            return  # Its own move has ended the game.
        self._ponders = self._searches.ponder(
            lambda: self._searches.run(
                self._player,
                moves,
                Limits(self._most),
                time.monotonic(),
                lambda analysis: len(self.lines.waiting()) > 0,
            )
        )

    def _answer(self, command: Command) -> None:
        handler = self._handlers.get(command.name)
        try:
            if handler is None:
                raise UnknownCommandError(f"command ({command.name[:40]})")
            text = handler(self, command)
        except UnknownCommandError as error:
            text = f"UNKNOWN {error}"
        except (GomocupError, TengenError, _core.CoreError) as error:
            text = f"ERROR {error}"
        if text is None or self.is_over:
            return
        for note in self.limits.take_notes():
            self.say(f"{note}; it is passed over")
        self._write(one_line(text))

    def is_left(self) -> bool:
        """Returns whether the manager has quit, by END or by the end of its input.

        END also counts after other lines, since managers send INFO at any time. The end
        of the input does not cancel commands that came before it.
        """
        has_command = False
        for line in self.lines.waiting():
            if line is None:
                return not has_command
            command = parse_line(line)
            name = "" if command is None else command.name
            if name == "END":
                self.is_over = True
                return True
            has_command = has_command or name not in ("", "INFO")
        return False


Handler: TypeAlias = Callable[[Engine, Command], str | None]
"""Answers a command: returns the text, or None for no answer."""
