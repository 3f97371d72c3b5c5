"""A Gomocup session, in which a tournament manager controls a model's play."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tengen import __version__, _core
from tengen.errors import TengenError, UsageError
from tengen.games.gomoku import GomokuRules, read_gomoku_name, write_cell
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
from tengen.play.session.clock import Clock, TimeSettings
from tengen.play.session.session import Session
from tengen.run.machine import resident_bytes

# The value of INFO time_left that managers send for unlimited time, in milliseconds.
_UNLIMITED_MS = (1 << 31) - 1
# Assumed overhead per move outside the search, until the manager reports the time.
_LAG_S = 0.02
# For time control: the share of the board's cells that a typical game fills.
_PLAYED_PART = 0.4
# Maximum number of trees in memory. There are two while tree reuse copies a subtree.
_NUM_TREES = 2
_LEAST_TREE_BYTES = 1 << 20
# Memory that searches need in addition to their trees.
_SPARE_BYTES = 16 << 20
# Bits of the value of INFO rule, as sent by managers.
_EXACTLY_FIVE = 1
_OTHER_RULES = {2: "continuous games", 4: "renju", 8: "caro"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}")


class ManagerLimits:
    """The limits that a manager has set with INFO. Not thread-safe.

    INFO has no response. If a limit cannot be met, the response to the next command
    reports the error; see ``problem``.

    Args:
        rules: The rules that the model plays.
        begun_s: Start time of the process, in seconds on the clock of ``start``.
        own_bytes: The memory that the process uses without search trees.
    """

    def __init__(self, rules: GomokuRules, begun_s: float, own_bytes: int) -> None:
        self._rules = rules
        self._begun_s: float | None = begun_s
        self._own_bytes = own_bytes
        self._turn_s: float | None = None
        self._match_s = math.inf
        self._told_left_s: float | None = None
        self._used_s = 0.0  # Time used since INFO time_left, or in the match.
        self._rule = _EXACTLY_FIVE if rules.exactly_five else 0
        self._max_memory = 0
        self._notes: list[str] = []

    @property
    def tree_bytes(self) -> int | None:
        """The maximum size of a search tree, in bytes; None for no limit."""
        if self._max_memory == 0:
            return None
        left = self._max_memory - self._own_bytes - _SPARE_BYTES
        return left // _NUM_TREES

    @property
    def problem(self) -> str | None:
        """An error message about a limit that cannot be met; None if there is none."""
        rule = self._rule_problem()
        if rule is not None:
            return f"rule ({self._rule}) {rule}; the model plays {self._rules.text}"
        least = self._own_bytes + _SPARE_BYTES + _NUM_TREES * _LEAST_TREE_BYTES
        if 0 < self._max_memory < least:
            return (
                f"max_memory ({self._max_memory}) must be at least {least} bytes, for "
                "the program and this model"
            )
        return None

    def take_notes(self) -> list[str]:
        """Returns and clears the messages about invalid INFO values."""
        notes, self._notes = self._notes, []
        return notes

    def set(self, text: str) -> None:
        """Sets a limit from ``text``, the arguments of INFO. Ignores unknown keys."""
        key, _, value = text.partition(" ")
        key, value = key.lower(), value.strip()
        setters: dict[str, Callable[[int], None]] = {
            "timeout_turn": self._set_turn,
            "timeout_match": self._set_match,
            "time_left": self._set_left,
            "max_memory": self._set_memory,
            "rule": self._set_rule,
        }
        if key not in setters:
            return
        if _NUMBER.fullmatch(value) is None:
            self._notes.append(f"INFO {key} ({value[:40]}) must be a whole number")
            return
        setters[key](int(value))

    def start(self, now_s: float) -> None:
        """Starts a match's clock; the first match's clock starts at ``begun_s``.

        Args:
            now_s: The current time, in seconds on the clock of ``begun_s``.
        """
        if self._told_left_s is None:
            self._used_s = 0.0 if self._begun_s is None else now_s - self._begun_s
        self._begun_s = None

    def budget(self, ply: int) -> tuple[float | None, float | None]:
        """Returns the normal and the maximum time for a move, in seconds.

        Both are None if there is no time limit.

        Args:
            ply: The number of moves played so far.
        """
        all_s = self._match_s if self._told_left_s is None else self._told_left_s
        if self._turn_s is None and all_s == math.inf:
            return None, None
        settings = TimeSettings(
            "fischer",
            main_s=max(all_s - self._used_s, 0.0),
            move_limit_s=math.inf if self._turn_s is None else self._turn_s,
        )
        clock = Clock(settings)
        where = 0, ply, int(_PLAYED_PART * self._rules.size**2)
        return clock.budget_s(*where), clock.most_s(*where)

    def spend(self, seconds: float) -> None:
        """Subtracts a move's time plus an overhead from the remaining match time."""
        self._used_s += seconds + _LAG_S

    def _set_turn(self, milliseconds: int) -> None:
        self._turn_s = max(milliseconds, 0) / 1000

    def _set_match(self, milliseconds: int) -> None:
        self._match_s = milliseconds / 1000 if milliseconds > 0 else math.inf

    def _set_left(self, milliseconds: int) -> None:
        is_limited = milliseconds < _UNLIMITED_MS
        self._told_left_s = max(milliseconds, 0) / 1000 if is_limited else math.inf
        self._used_s = 0.0

    def _set_memory(self, num_bytes: int) -> None:
        self._max_memory = max(num_bytes, 0)

    def _set_rule(self, mask: int) -> None:
        self._rule = mask

    def _rule_problem(self) -> str | None:
        for bit, name in _OTHER_RULES.items():
            if self._rule & bit:
                return f"is for {name}, which is not supported"
        if self._rule not in (0, _EXACTLY_FIVE):
            return "must be 0 or 1"
        if (self._rule == _EXACTLY_FIVE) != self._rules.exactly_five:
            return f"must be {1 - self._rule}"
        return None


_VARIATION_CELLS = 8


class Engine(Session):
    """A session of the Gomocup protocol; see ``Session``.

    Args:
        player: The player; its game must be gomoku.
        handlers: The command handlers, by command name.
        begun_s: The start time of the process, from ``time.monotonic``; None for now.
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
        """Creates the session, and measures the search speed of the player.

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
        """The response to the command ABOUT."""
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
        """The manager's memory limit per search tree, in bytes; None for no limit."""
        return self.limits.tree_bytes

    def begin_match(self) -> None:
        """Clears the board and starts the match clock."""
        self.stones = Stones()
        self.limits.start(time.monotonic())

    def board(self) -> Stones:
        """Returns the stones on the board.

        Raises:
            GomocupError: The manager has not sent START yet.
        """
        if self.stones is None:
            raise GomocupError(
                f"board (none) is needed first; START {self.rules.size} makes one"
            )
        return self.stones

    def check_limits(self) -> None:
        """Raises GomocupError if a limit of the manager cannot be met."""
        problem = self.limits.problem
        if problem is not None:
            raise GomocupError(problem)

    def think(self, stones: Stones, begun_s: float) -> Analysis:
        """Searches a position within the manager's limits; returns the result. Blocks.

        Args:
            stones: The stones of the position, with the engine to move.
            begun_s: Time at which the move was requested, from ``time.monotonic``.

        Raises:
            GomocupError: It is not the engine's turn, or the game has ended.
        """
        moves = stones.moves(self._player.game)
        limits = self.move_limits(*self.limits.budget(len(moves)))
        found = self.search(moves, limits, begun_s)
        self.limits.spend(time.monotonic() - begun_s)
        return found

    def play(self, stones: Stones, found: Analysis) -> str:
        """Plays the move that an analysis chooses; returns the cell of the move.

        Args:
            stones: The stones of the analysed position.
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
        """Searches a position and plays the chosen move; see ``think``. Blocks.

        Returns:
            The cell of the move; None if the manager has quit.
        """
        found = self.think(stones, begun_s)
        return None if self.is_over else self.play(stones, found)

    def say(self, text: str) -> None:
        """Sends ``text`` to the manager as a MESSAGE, which is shown to the user."""
        self._write(one_line(f"MESSAGE {text}"))

    def cell(self, action: int) -> str:
        """Returns the cell of an action in the protocol's notation."""
        return write_cell(action, self.rules.size)

    def moves_to_ponder(self) -> Sequence[int] | None:
        """Returns the moves so far if the engine has just moved, otherwise None."""
        if self.stones is None or self.stones is not self._moved_to:
            return None
        try:
            return self.stones.moves(self._player.game, to_move=OTHER)
        except GomocupError:
            return None  # The engine's move ended the game.

    def answer(self, line: bytes) -> None:
        """Runs the Gomocup command in ``line`` and writes the response."""
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
            self.say(f"{note}; it is ignored")
        self._write(one_line(text))

    def is_stopped(self) -> bool:
        """Returns whether the manager has quit, with END or by closing the input.

        END counts even behind other waiting lines, because managers send INFO at any
        time. The end of the input counts only if no commands are waiting: those sent
        before it are still run.
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
"""A handler of a Gomocup command: returns the response, or None for no response."""
