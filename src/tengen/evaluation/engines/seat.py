"""An engine and the game that it sits at, whatever protocol it speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tengen.evaluation.engines.process import EngineProcess
from tengen.games import Game

__all__ = ["MoveRefusedError", "Seat"]


class MoveRefusedError(Exception):
    """An engine refuses a legal move of its game.

    Attributes:
        ply: The move's, from 0.
        vertex: The move as the engine was told it.
        words: What the engine said, on one line.
    """

    def __init__(self, ply: int, vertex: str, words: str) -> None:
        super().__init__(words)
        self.ply = ply
        self.vertex = vertex
        self.words = words


class Seat(ABC):
    """One engine, and the games that it plays one after the other. For one thread.

    Args:
        game: What is played.
        engine: The engine, just started; ``kill`` it from any thread.
    """

    can_score = False
    """Whether the engine says who has won a game, and by how much."""

    def __init__(self, game: Game, engine: EngineProcess) -> None:
        self.game = game
        self.engine = engine

    @abstractmethod
    def set_up(self) -> None:
        """Lets the engine begin a game. Blocks.

        Raises:
            RunError: It refuses the game, died or was too slow.
        """

    @abstractmethod
    def choose(self, moves: list[int]) -> str:
        """Returns what the engine plays after ``moves``, as it says it. Blocks.

        Raises:
            MoveRefusedError: It refuses one of them.
            RunError: It refuses to move, died or was too slow.
        """

    @abstractmethod
    def read(self, answer: str) -> int | None:
        """Returns the action of such an answer; None where it is none."""

    def resigns(self, answer: str) -> bool:
        """Returns whether such an answer gives the game up."""
        return False

    @abstractmethod
    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the rule that a move breaks, as the end of a sentence."""

    def score(self, moves: list[int]) -> str:
        """Returns what the engine says of the end of a game, where it can. Blocks.

        Raises:
            MoveRefusedError: It refuses one of its moves.
            RunError: It died or was too slow.
        """
        raise NotImplementedError

    def num_seki(self) -> int:
        """Returns how many stones the engine calls seki, 0 where it cannot say."""
        return 0

    def is_free(self) -> bool:
        """Returns whether the engine can play another game after one. Blocks."""
        return True
