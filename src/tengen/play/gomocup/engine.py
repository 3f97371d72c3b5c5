"""A Gomocup session: a model plays on a board as a manager commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tengen import __version__, _core
from tengen.errors import TengenError, UsageError
from tengen.games.gomoku import read_gomoku_name, write_cell
from tengen.play.gomocup.limits import ManagerLimits
from tengen.play.gomocup.stones import (
    OTHER,
    OWN,
    Command,
    GomocupError,
    Stones,
    UnknownCommandError,
    one_line,
    parse_line,
)
from tengen.play.growing import Analysis
from tengen.play.player import Player
from tengen.play.session.session import Session
from tengen.run.machine import resident_bytes

__all__ = ["Engine", "Handler"]

_VARIATION_CELLS = 8


class Engine(Session):
    """One session of the Gomocup protocol; see ``Session``.

    Args:
        player: The player; its game must be gomoku.
        handlers: Answer commands, by name.
        begun_s: When the process started, by ``time.monotonic``; None for now.
        settings: The other arguments of ``Session``.

    Attributes:
        rules: The rules that the model plays.
        limits: The manager's limits of time and memory.
        stones: The stones on the board; None before the first START.
    """

    def __init__(
        self,
        player: Player,
        handlers: Mapping[str, Handler],
        *,
        begun_s: float | None = None,
        **settings: Any,
    ) -> None:
        """Measures the speed of searches.

        Raises:
            UsageError: The game is not gomoku, or the search cannot grow.
        """
        rules = read_gomoku_name(player.game.name)
        if rules is None:
            raise UsageError(
                f"model ({player.name}) plays {player.game.name}, which Gomocup does "
                f"not; name a model of gomoku, or use tengen play"
            )
        super().__init__(player, **settings)
        self.rules = rules
        self.stones: Stones | None = None
        self._handlers = handlers
        self._moved_to: Stones | None = None
        self.measure_speed([])
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

    @property
    def tree_bytes(self) -> int | None:
        """The memory limit of a tree, which the manager sets."""
        return self.limits.tree_bytes

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
        limits = self.move_limits(*self.limits.budget(len(moves)))
        found = self.search(moves, limits, begun_s)
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

    def cell(self, action: int) -> str:
        """Returns an action as the protocol writes it."""
        return write_cell(action, self.rules.size)

    def moves_to_ponder(self) -> Sequence[int] | None:
        """Returns the moves after which to ponder; None unless it moved last."""
        if self.stones is None or self.stones is not self._moved_to:
            return None
        try:
            return self.stones.moves(self._player.game, to_move=OTHER)
        except GomocupError:
            return None  # Its own move has ended the game.

    def answer(self, line: bytes) -> None:
        """Runs the command of a line and writes its answer."""
        command = parse_line(line)
        if command is None:
            return
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

    def is_stopped(self) -> bool:
        """Returns whether the manager has quit, with END or at the end of its input.

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
