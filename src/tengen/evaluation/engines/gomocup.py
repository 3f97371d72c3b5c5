"""A Gomocup engine.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re

from tengen.evaluation.engines.process import EngineProcess, EngineRefusal, short
from tengen.games import Game
from tengen.games.gomoku import read_cell, read_gomoku_name, write_cell

__all__ = ["GomocupEngine"]

_LINE_END = re.compile(rb"[\r\n]")
_TALK = ("MESSAGE", "DEBUG")
_REFUSALS = ("ERROR", "UNKNOWN")
_NO_LIMIT_MS = (1 << 31) - 1


class GomocupEngine(EngineProcess):
    """One Gomocup engine, which plays gomoku; see ``EngineProcess``.

    Args:
        command: The command line.
        answer_s: Seconds that one answer may take.
        turn_s: The time limit of a move that the engine is told, in seconds.
    """

    PROTOCOL = "Gomocup protocol"
    QUIT = b"END\r\n"

    def __init__(self, command: str, answer_s: float, turn_s: float = 1.0) -> None:
        """Starts the program, and asks it nothing.

        Raises:
            UsageError: The command names no program.
        """
        super().__init__(command, answer_s)
        self._turn_s = turn_s

    def tell(self, line: str) -> None:
        """Sends a command that has no answer.

        Raises:
            RunError: The engine has ended.
        """
        self._tell(f"{line}\r\n", line)

    def ask(self, line: str, *more: str) -> str:
        """Returns the answer to a command; skips messages.

        Args:
            line: The command.
            more: Further lines of the command.

        Raises:
            EngineRefusal: The engine answers ERROR or UNKNOWN.
            RunError: The engine died, or was too slow.
        """
        self._tell("".join(f"{one}\r\n" for one in (line, *more)), line)
        answer = self._read_answer(line, _find_answer)
        word, _, words = answer.partition(" ")
        if word.upper() == "SUGGEST":
            # The manager decides; it agrees.
            return self.ask(f"PLAY {words}") if not line.startswith("PLAY") else answer
        if word.upper() in _REFUSALS:
            raise self._refusal(line, short(answer))
        return answer

    def open(self, game: Game) -> None:
        """Sends START, the time limits and the rule.

        Raises:
            EngineRefusal: The engine has no such board.
            RunError: The engine died, was too slow, or does not speak the protocol.
        """
        rules = read_gomoku_name(game.name)
        assert rules is not None
        self._size = rules.size
        self._played: list[int] = []  # with the engine's own move at the end
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

    def set_up(self) -> None:
        """Asks for a first move."""
        self.choose([])

    def choose(self, moves: list[int]) -> str:
        """Returns the engine's answer after ``moves``.

        Raises:
            EngineRefusal: The engine refuses them, or to move.
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
        """Returns the action of a cell; None if it is not on the board."""
        return read_cell(answer, self._size)

    def why_illegal(self, moves: list[int], action: int | None) -> str:
        """Returns the rule that a move breaks, as the end of a sentence."""
        return "it is no cell" if action is None else "the cell is taken"

    def is_free(self) -> bool:
        """Returns whether the engine knows RESTART, which is optional."""
        self._played = []
        try:
            return self.ask("RESTART").upper().startswith("OK")
        except EngineRefusal:
            return False


def _find_answer(text: bytes) -> tuple[str | None, bytes]:
    """Returns the first line that is not a message, and what follows it."""
    while found := _LINE_END.search(text):
        line, text = text[: found.start()], text[found.end() :]
        shown = line.decode(errors="replace").strip()
        if shown and shown.split()[0].upper() not in _TALK:
            return shown, text
    return None, text
