"""A GTP engine at a game of Go."""

from __future__ import annotations

import json

from tengen import _core
from tengen.evaluation.engines.gtp_client import GtpEngine
from tengen.evaluation.engines.process import EngineRefusal
from tengen.evaluation.engines.seat import MoveRefusedError, Seat
from tengen.games import Game, open_game
from tengen.games.go_rules import rules_as_json
from tengen.games.vertices import read_vertex, write_vertex

__all__ = ["GtpSeat"]


class GtpSeat(Seat):
    """One GTP engine; see ``Seat``."""

    engine: GtpEngine

    def __init__(self, game: Game, engine: GtpEngine) -> None:
        super().__init__(game, engine)
        self._rules = _core.parse_go_name(game.name)
        self.can_score = "final_score" in engine.commands
        self._moves: list[int] | None = None  # None: nothing is set up
        size = f"boardsize {game.height}"
        if game.height != game.width:
            size = f"rectangular_boardsize {game.width} {game.height}"
        engine.ask(size)
        if "kata-set-rules" in engine.commands:
            engine.ask(f"kata-set-rules {json.dumps(rules_as_json(self._rules))}")

    def set_up(self) -> None:
        """Lets the engine begin a game."""
        self._follow([])

    def choose(self, moves: list[int]) -> str:
        """Returns what the engine answers to genmove after ``moves``.

        Raises:
            MoveRefusedError: It refuses one of them.
        """
        self._follow(moves)
        answer = self.engine.ask(f"genmove {self._colour(len(moves))}")
        action = read_vertex(answer, self.game.height, self.game.width)
        self._moves = None if action is None else [*moves, action]
        return answer

    def read(self, answer: str) -> int | None:
        """Returns the action of a vertex; None where it is none."""
        return read_vertex(answer, self.game.height, self.game.width)

    def resigns(self, answer: str) -> bool:
        """Returns whether the engine gives the game up."""
        return answer.lower() == "resign"

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the rule that a move breaks, as the end of a sentence."""
        return _why_illegal(self.game.name, moves, action)

    def score(self, moves: list[int]) -> str:
        """Returns what the engine says of the end of a game.

        Raises:
            MoveRefusedError: It refuses one of its moves.
        """
        self._follow(moves)
        return self.engine.ask("final_score")

    def num_seki(self) -> int:
        """Returns how many stones the engine calls seki, 0 where it cannot say."""
        try:
            return len(self.engine.ask("final_status_list seki").split())
        except EngineRefusal:
            return 0

    def _follow(self, moves: list[int]) -> None:
        """Brings the engine's board to the position after ``moves``."""
        known, self._moves = self._moves, None  # after a refusal nothing is set up
        if known is None or known != moves[: len(known)]:
            self.engine.ask("clear_board")
            self.engine.ask(f"komi {self._rules.komi:g}")
            height, width = self.game.height, self.game.width
            if self._rules.handicap:
                # Moves, for some engines give White points for stones of a handicap.
                for point in _core.handicap_points(height, width, self._rules.handicap):
                    self.engine.ask(f"play b {write_vertex(point, height, width)}")
            known = []
        for ply in range(len(known), len(moves)):
            vertex = write_vertex(moves[ply], self.game.height, self.game.width)
            try:
                self.engine.ask(f"play {self._colour(ply)} {vertex}")
            except EngineRefusal as refusal:
                raise MoveRefusedError(ply, vertex, refusal.words) from refusal
        self._moves = list(moves)

    def _colour(self, ply: int) -> str:
        return "bw"[(ply + (self._rules.handicap > 0)) % 2]


def _why_illegal(name: str, moves: list[int], action: int | None) -> str:
    """Returns the rule that a move breaks, as the end of a sentence."""
    if action is None:
        return "it is no vertex"
    rules = _core.parse_go_name(name)
    superko, rules.ko = rules.ko, "simple"
    state = open_game(rules.name).new_state()
    for move in moves:
        if state.is_terminal():
            break
        state.apply(move)
    if superko != "simple" and action in state.legal_actions():
        return f"{superko} superko forbids it, give the engine that rule"
    return "the point is taken, or the stone would have no liberty"
