"""A program that speaks GTP, seen from outside.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2".
"""

from __future__ import annotations

from tengen.errors import UsageError
from tengen.evaluation.engines.process import EngineProcess, short

__all__ = ["GtpEngine"]

_NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove")


class GtpEngine(EngineProcess):
    """One GTP engine; see ``EngineProcess``.

    Attributes:
        commands: What the engine says it knows.
    """

    PROTOCOL = "GTP"
    QUIT = b"quit\n"

    commands: frozenset[str]

    def ask(self, line: str) -> str:
        """Returns the answer to a command, without its ``=`` and the spaces around it.

        Blocks up to ``answer_s``.

        Raises:
            EngineRefusal: The engine refuses.
            RunError: It died, took too long, or answered what is no GTP.
        """
        self._tell(f"{line}\n", line)
        answer = self._read_answer(line, _find_answer)
        if answer.startswith("="):
            return answer[1:].strip()
        if answer.startswith("?"):
            raise self._refusal(line, short(answer[1:]))
        raise self._stranger(line, answer)

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


def _find_answer(text: bytes) -> tuple[str | None, bytes]:
    """Returns an answer, its lines joined by newlines, and what follows it."""
    # Empty lines before an answer are none.
    text = text.replace(b"\r", b"").lstrip(b"\n\t ")
    answer, end, rest = text.partition(b"\n\n")
    if end:
        return answer.decode(errors="replace"), rest
    if text[:1] not in (b"", b"=", b"?") and b"\n" in text:
        # No end of it follows where the program is none that speaks GTP.
        return text.decode(errors="replace"), text
    return None, text
