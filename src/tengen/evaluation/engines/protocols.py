"""Engine protocol clients: GTP for Go, and Gomocup for gomoku.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2"; Lastovicka,
"Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import json
import re

from tengen import _core
from tengen.errors import UsageError
from tengen.evaluation.engines.process import (
    EngineProcess,
    EngineRefusal,
    MoveRefusedError,
    short,
)
from tengen.games import Game, open_game
from tengen.games.go_rules import read_vertex, rules_as_json, write_vertex
from tengen.games.gomoku import read_cell, read_gomoku_name, write_cell

_NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove")


class GtpEngine(EngineProcess):
    """A Go engine that speaks GTP; see ``EngineProcess``.

    Attributes:
        commands: Names of the GTP commands that the engine supports.
    """

    PROTOCOL = "GTP"
    QUIT = b"quit\n"

    commands: frozenset[str]

    def ask(self, line: str) -> str:
        """Returns the response to a command, without ``=`` and outer whitespace.

        Raises:
            EngineRefusal: The engine rejects the command.
            RunError: The engine died, timed out, or does not speak GTP.
        """
        self._tell(f"{line}\n", line)
        answer = self._read_answer(line, _find_answer)
        if answer.startswith("="):
            return answer[1:].strip()
        if answer.startswith("?"):
            raise self._refusal(line, short(answer[1:]))
        raise self._stranger(line, answer)

    def open(self, game: Game) -> None:
        """Sets the board size and, if ``kata-set-rules`` is supported, the rules."""
        self._game = game
        self._rules = _core.parse_go_name(game.name)
        self.can_score = "final_score" in self.commands
        self._moves: list[int] | None = None  # On the engine's board; None: unknown.
        size = f"boardsize {game.height}"
        if game.height != game.width:
            size = f"rectangular_boardsize {game.width} {game.height}"
        self.ask(size)
        if "kata-set-rules" in self.commands:
            self.ask(f"kata-set-rules {json.dumps(rules_as_json(self._rules))}")

    def set_up(self) -> None:
        """Clears the engine's board and sets up komi and handicap for a new game."""
        self._follow([])

    def choose(self, moves: list[int]) -> str:
        """Returns the engine's response to ``genmove`` in the position after ``moves``.

        Raises:
            MoveRefusedError: The engine rejects one of ``moves``.
        """
        self._follow(moves)
        answer = self.ask(f"genmove {self._colour(len(moves))}")
        action = self.read(answer)
        self._moves = None if action is None else [*moves, action]
        return answer

    def read(self, answer: str) -> int | None:
        """Returns the action of the vertex ``answer``; None if off the board."""
        return read_vertex(answer, self._game.height, self._game.width)

    def resigns(self, answer: str) -> bool:
        """Returns whether the response ``answer`` is a resignation."""
        return answer.lower() == "resign"

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns why ``action`` is illegal, as the end of a sentence."""
        if action is None:
            return "it is not a vertex"
        rules = _core.parse_go_name(self._game.name)
        superko, rules.ko = rules.ko, "simple"
        state = open_game(rules.name).new_state()
        for move in moves:
            if state.is_terminal():
                break
            state.apply(move)
        if superko != "simple" and action in state.legal_actions():
            return f"{superko} superko forbids it; give the engine that rule"
        return "the point is occupied, or the stone would have no liberty"

    def score(self, moves: list[int]) -> str:
        """Returns the engine's response to ``final_score`` for the game ``moves``.

        Raises:
            MoveRefusedError: The engine rejects one of ``moves``.
        """
        self._follow(moves)
        return self.ask("final_score")

    def num_seki(self) -> int:
        """Returns the number of stones in seki; 0 if the engine cannot report it."""
        try:
            return len(self.ask("final_status_list seki").split())
        except EngineRefusal:
            return 0

    def _shake_hands(self) -> None:
        if (version := self.ask("protocol_version")) != "2":
            raise UsageError(
                f"engine ({self._command}) must speak GTP 2, not {short(version)}; "
                "change its command"
            )
        self.commands = frozenset(self.ask("list_commands").split())
        missing = [name for name in _NEEDED if name not in self.commands]
        if missing:
            raise UsageError(
                f"engine ({self._command}) must know {', '.join(missing)}; use another "
                "engine"
            )

    def _follow(self, moves: list[int]) -> None:
        """Brings the engine's board to the position after ``moves``."""
        known, self._moves = self._moves, None  # Stays None if a command fails.
        height, width = self._game.height, self._game.width
        if known is None or known != moves[: len(known)]:
            self.ask("clear_board")
            self.ask(f"komi {self._rules.komi:g}")
            if self._rules.handicap:
                # Use play: with GTP's handicap commands, some engines change komi.
                for point in _core.handicap_points(height, width, self._rules.handicap):
                    self.ask(f"play b {write_vertex(point, height, width)}")
            known = []
        for ply in range(len(known), len(moves)):
            vertex = write_vertex(moves[ply], height, width)
            try:
                self.ask(f"play {self._colour(ply)} {vertex}")
            except EngineRefusal as refusal:
                raise MoveRefusedError(ply, vertex, refusal.words) from refusal
        self._moves = list(moves)

    def _colour(self, ply: int) -> str:
        return "bw"[(ply + (self._rules.handicap > 0)) % 2]


def _find_answer(text: bytes) -> tuple[str | None, bytes]:
    """Returns the first response in ``text`` (None if incomplete), and the rest."""
    # Skip empty lines before the response, which some engines send.
    text = text.replace(b"\r", b"").lstrip(b"\n\t ")
    answer, end, rest = text.partition(b"\n\n")
    if end:
        return answer.decode(errors="replace"), rest
    if text[:1] not in (b"", b"=", b"?") and b"\n" in text:
        # Not GTP: return the line now, because an empty line may never follow.
        return text.decode(errors="replace"), text
    return None, text


_LINE_END = re.compile(rb"[\r\n]")
_TALK = ("MESSAGE", "DEBUG")
_REFUSALS = ("ERROR", "UNKNOWN")
_NO_LIMIT_MS = (1 << 31) - 1


class GomocupEngine(EngineProcess):
    """A gomoku engine that speaks the Gomocup protocol; see ``EngineProcess``.

    Args:
        command: The command line of the engine.
        answer_s: Maximum time for each response, in seconds.
        turn_s: Time limit per move that is sent to the engine, in seconds.
        turn_nodes: Limit of nodes per move that is sent to the engine; 0 for none.
    """

    PROTOCOL = "Gomocup protocol"
    QUIT = b"END\r\n"

    def __init__(
        self, command: str, answer_s: float, turn_s: float = 1.0, turn_nodes: int = 0
    ) -> None:
        """Starts the engine's program, without sending commands.

        Raises:
            UsageError: The program cannot be started.
        """
        super().__init__(command, answer_s)
        self._turn_s = turn_s
        self._turn_nodes = turn_nodes

    def tell(self, line: str) -> None:
        """Sends a command that has no response.

        Raises:
            RunError: The engine has ended.
        """
        self._tell(f"{line}\r\n", line)

    def ask(self, line: str, *more: str) -> str:
        """Sends a command; returns the response, without MESSAGE and DEBUG lines.

        Args:
            line: The first line of the command.
            more: Further lines of the command.

        Raises:
            EngineRefusal: The engine responded with ERROR or UNKNOWN.
            RunError: The engine died or timed out.
        """
        self._tell("".join(f"{one}\r\n" for one in (line, *more)), line)
        answer = self._read_answer(line, _find_line)
        word, _, words = answer.partition(" ")
        if word.upper() == "SUGGEST":
            # A manager may accept or decline a suggested move; accept it.
            return self.ask(f"PLAY {words}") if not line.startswith("PLAY") else answer
        if word.upper() in _REFUSALS:
            raise self._refusal(line, short(answer))
        return answer

    def open(self, game: Game) -> None:
        """Sends START with the board size, then INFO with time limits and the rule.

        Raises:
            EngineRefusal: The engine does not support the board size.
            RunError: The engine dies, is too slow, or does not speak the protocol.
        """
        rules = read_gomoku_name(game.name)
        assert rules is not None
        self._size = rules.size
        self._played: list[int] = []  # On the engine's board, its own move last.
        line = f"START {rules.size}"
        answer = self.ask(line)
        if not answer.upper().startswith("OK"):
            raise self._stranger(line, answer)
        for key, value in (
            ("timeout_turn", max(int(1000 * self._turn_s), 0)),
            ("timeout_match", 0),
            ("time_left", _NO_LIMIT_MS),
            ("max_memory", 0),
            ("game_type", 1),
            ("rule", int(rules.exactly_five)),
        ):
            self.tell(f"INFO {key} {value}")
        if self._turn_nodes > 0:
            self.tell(f"INFO max_node {self._turn_nodes}")

    def set_up(self) -> None:
        """Lets the engine choose a first move, as a test; discards the move."""
        self.choose([])

    def choose(self, moves: list[int]) -> str:
        """Returns the engine's move in the position after ``moves``, as ``X,Y``.

        Raises:
            EngineRefusal: The engine rejected the moves, or refused to move.
        """
        if self._played and moves[:-1] == self._played:
            answer = self.ask(f"TURN {write_cell(moves[-1], self._size)}")
        elif moves:
            stones = [
                f"{write_cell(move, self._size)},{1 + (len(moves) - ply) % 2}"
                for ply, move in enumerate(moves)
            ]
            answer = self.ask("BOARD", *stones, "DONE")
        else:
            answer = self.ask("BEGIN")
        action = self.read(answer)
        self._played = [] if action is None else [*moves, action]
        return answer

    def read(self, answer: str) -> int | None:
        """Parses the cell ``answer``; returns its action, or None if off the board."""
        return read_cell(answer, self._size)

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the rule that an illegal move violates, as the end of a sentence."""
        return "it is not a cell" if action is None else "the cell is occupied"

    def is_free(self) -> bool:
        """Returns whether the engine accepts RESTART, which begins another game."""
        self._played = []
        try:
            return self.ask("RESTART").upper().startswith("OK")
        except EngineRefusal:
            return False


def _find_line(text: bytes) -> tuple[str | None, bytes]:
    """Returns the first line that is no MESSAGE or DEBUG (or None), and the rest."""
    while found := _LINE_END.search(text):
        line, text = text[: found.start()], text[found.end() :]
        shown = line.decode(errors="replace").strip()
        if shown and shown.split()[0].upper() not in _TALK:
            return shown, text
    return None, text
