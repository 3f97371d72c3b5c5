"""Client of a GTP engine.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2".
"""

from __future__ import annotations

import json

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

__all__ = ["GtpEngine"]

_NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove")


class GtpEngine(EngineProcess):
    """A GTP engine that plays Go; see ``EngineProcess``.

    Attributes:
        commands: The commands that the engine lists.
    """

    PROTOCOL = "GTP"
    QUIT = b"quit\n"

    commands: frozenset[str]

    def ask(self, line: str) -> str:
        """Returns the response to a command, without ``=`` and surrounding whitespace.

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
        """Sets the board size and, if the engine has ``kata-set-rules``, the rules."""
        self._game = game
        self._rules = _core.parse_go_name(game.name)
        self.can_score = "final_score" in self.commands
        self._moves: list[int] | None = None  # The engine's board; None if unknown.
        size = f"boardsize {game.height}"
        if game.height != game.width:
            size = f"rectangular_boardsize {game.width} {game.height}"
        self.ask(size)
        if "kata-set-rules" in self.commands:
            self.ask(f"kata-set-rules {json.dumps(rules_as_json(self._rules))}")

    def set_up(self) -> None:
        """Prepares the engine's board for a new game."""
        self._follow([])

    def choose(self, moves: list[int]) -> str:
        """Returns the engine's response to ``genmove`` after ``moves``.

        Raises:
            MoveRefusedError: The engine rejects one of the moves.
        """
        self._follow(moves)
        answer = self.ask(f"genmove {self._colour(len(moves))}")
        action = self.read(answer)
        self._moves = None if action is None else [*moves, action]
        return answer

    def read(self, answer: str) -> int | None:
        """Returns the action of a vertex; None if the vertex is not on the board."""
        return read_vertex(answer, self._game.height, self._game.width)

    def resigns(self, answer: str) -> bool:
        """Returns whether the engine resigns with this response."""
        return answer.lower() == "resign"

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns why a move is illegal, as the end of a sentence."""
        if action is None:
            return "it is no vertex"
        rules = _core.parse_go_name(self._game.name)
        superko, rules.ko = rules.ko, "simple"
        state = open_game(rules.name).new_state()
        for move in moves:
            if state.is_terminal():
                break
            state.apply(move)
        if superko != "simple" and action in state.legal_actions():
            return f"{superko} superko forbids it, give the engine that rule"
        return "the point is taken, or the stone would have no liberty"

    def score(self, moves: list[int]) -> str:
        """Returns the engine's response to ``final_score`` after ``moves``.

        Raises:
            MoveRefusedError: The engine rejects one of the moves.
        """
        self._follow(moves)
        return self.ask("final_score")

    def num_seki(self) -> int:
        """Returns the number of stones in seki by the engine; 0 if it cannot tell."""
        try:
            return len(self.ask("final_status_list seki").split())
        except EngineRefusal:
            return 0

    def _shake_hands(self) -> None:
        if (version := self.ask("protocol_version")) != "2":
            raise UsageError(
                f"engine ({self._command}) must speak GTP 2, not {short(version)}; "
                f"start it so"
            )
        self.commands = frozenset(self.ask("list_commands").split())
        missing = [name for name in _NEEDED if name not in self.commands]
        if missing:
            raise UsageError(
                f"engine ({self._command}) must know {', '.join(missing)}; "
                f"use one that plays"
            )

    def _follow(self, moves: list[int]) -> None:
        """Brings the engine's board to the position after ``moves``."""
        known, self._moves = self._moves, None  # unknown if a command fails
        height, width = self._game.height, self._game.width
        if known is None or known != moves[: len(known)]:
            self.ask("clear_board")
            self.ask(f"komi {self._rules.komi:g}")
            if self._rules.handicap:
                # Played as moves: some engines compensate White for handicap stones.
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
    """Returns the first response, None if it is incomplete, and the text after it."""
    # Engines may send empty lines before a response.
    text = text.replace(b"\r", b"").lstrip(b"\n\t ")
    answer, end, rest = text.partition(b"\n\n")
    if end:
        return answer.decode(errors="replace"), rest
    if text[:1] not in (b"", b"=", b"?") and b"\n" in text:
        # A program that does not speak GTP may never send the empty line at the end.
        return text.decode(errors="replace"), text
    return None, text
