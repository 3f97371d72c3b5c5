"""A program that speaks the Gomocup protocol, seen from outside.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re

from tengen.evaluation.engines.process import EngineProcess, short

__all__ = ["GomocupEngine"]

_LINE_END = re.compile(rb"[\r\n]")
_TALK = ("MESSAGE", "DEBUG")
_REFUSALS = ("ERROR", "UNKNOWN")


class GomocupEngine(EngineProcess):
    """One Gomocup engine; see ``EngineProcess``. It is asked nothing at the start."""

    PROTOCOL = "Gomocup protocol"
    QUIT = b"END\r\n"

    def tell(self, line: str) -> None:
        """Sends a command that has no answer.

        Raises:
            RunError: The engine has ended.
        """
        self._tell(f"{line}\r\n", line)

    def ask(self, line: str, *more: str) -> str:
        """Returns the answer to a command, messages passed over.

        Blocks up to ``answer_s``.

        Args:
            line: The command.
            more: Lines that belong to it.

        Raises:
            EngineRefusal: The engine answers ERROR or UNKNOWN.
            RunError: It died, or took too long.
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

    def start(self, size: int) -> None:
        """Lets the engine begin with an empty board. Blocks.

        Raises:
            EngineRefusal: It has no such board.
            RunError: It died, took too long, or does not speak the protocol.
        """
        line = f"START {size}"
        answer = self.ask(line)
        if not answer.upper().startswith("OK"):
            raise self._stranger(line, answer)


def _find_answer(text: bytes) -> tuple[str | None, bytes]:
    """Returns the first line that is no message, and what follows it."""
    while found := _LINE_END.search(text):
        line, text = text[: found.start()], text[found.end() :]
        shown = line.decode(errors="replace").strip()
        if shown and shown.split()[0].upper() not in _TALK:
            return shown, text
    return None, text
