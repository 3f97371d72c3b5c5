"""A Gomocup engine at a game of gomoku."""

from __future__ import annotations

from tengen.evaluation.engines.gomocup_client import GomocupEngine
from tengen.evaluation.engines.process import EngineRefusal
from tengen.evaluation.engines.seat import Seat
from tengen.games import Game
from tengen.games.gomoku import read_cell, read_gomoku_name, write_cell

__all__ = ["GomocupSeat"]

_NO_LIMIT_MS = (1 << 31) - 1


class GomocupSeat(Seat):
    """One Gomocup engine; see ``Seat``.

    Args:
        game: A game of gomoku.
        engine: The engine.
        turn_s: What it is told that it has for a move, in seconds.
    """

    engine: GomocupEngine

    def __init__(self, game: Game, engine: GomocupEngine, turn_s: float) -> None:
        super().__init__(game, engine)
        rules = read_gomoku_name(game.name)
        assert rules is not None
        self._rules = rules
        self._played: list[int] = []  # with the engine's own move at the end
        engine.start(rules.size)
        for key, value in (
            ("timeout_turn", max(int(1000 * turn_s), 0)),
            ("timeout_match", 0),
            ("time_left", _NO_LIMIT_MS),
            ("max_memory", 0),
            ("game_type", 1),
            ("rule", int(rules.exactly_five)),
        ):
            engine.tell(f"INFO {key} {value}")

    def set_up(self) -> None:
        """Lets the engine make a first move."""
        self.choose([])

    def choose(self, moves: list[int]) -> str:
        """Returns what the engine answers after ``moves``.

        Raises:
            EngineRefusal: It refuses them, or to move.
        """
        known = len(self._played)
        is_next = known > 0 and moves[:-1] == self._played
        if is_next:
            answer = self.engine.ask(f"TURN {self._cell(moves[-1])}")
        elif moves:
            stones = [
                f"{self._cell(move)},{1 if (len(moves) - ply) % 2 == 0 else 2}"
                for ply, move in enumerate(moves)
            ]
            answer = self.engine.ask("BOARD", *stones, "DONE")
        else:
            answer = self.engine.ask("BEGIN")
        action = self.read(answer)
        self._played = [] if action is None else [*moves, action]
        return answer

    def read(self, answer: str) -> int | None:
        """Returns the action of a cell; None where it is none of the board."""
        return read_cell(answer, self._rules.size)

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the rule that a move breaks, as the end of a sentence."""
        return "it is no cell" if action is None else "the cell is taken"

    def is_free(self) -> bool:
        """Returns whether the engine knows RESTART, which may be left out."""
        self._played = []
        try:
            return self.engine.ask("RESTART").upper().startswith("OK")
        except EngineRefusal:
            return False

    def _cell(self, action: int) -> str:
        return write_cell(action, self._rules.size)
