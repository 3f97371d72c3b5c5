"""The commands of the Gomocup protocol.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re
import time

from tengen.games.gomoku import read_cell
from tengen.play.gomocup.engine import Engine, Handler
from tengen.play.gomocup.opening import answer_swap2
from tengen.play.gomocup.protocol import (
    Command,
    GomocupError,
    UnknownCommandError,
    parse_line,
)
from tengen.play.gomocup.stones import OTHER, OWN, Owner, Stones

__all__ = ["COMMANDS"]

_OWNERS: dict[str, Owner] = {"1": OWN, "2": OTHER}
_FIELD = re.compile(r"(.*),\s*([0-9]+)\s*")
_SIDES = re.compile(r"([^\s,]+)(?:\s*[\s,]\s*([^\s,]+))?")


def _start(engine: Engine, command: Command) -> str:
    """Some managers send both sides, as of RECTSTART."""
    sides = _SIDES.fullmatch(command.text)
    width, height = sides.groups() if sides else (command.text, None)
    return _begin_match(engine, width, height or width)


def _rectstart(engine: Engine, command: Command) -> str:
    sides = _SIDES.fullmatch(command.text)
    if sides is None or sides[2] is None:
        raise GomocupError(f"RECTSTART ({command.text[:40]}) must be WIDTH,HEIGHT")
    return _begin_match(engine, sides[1], sides[2])


def _begin_match(engine: Engine, width: str, height: str) -> str:
    size = str(engine.rules.size)
    if (width, height) != (size, size):
        asked = width if width == height else f"{width},{height}"
        raise GomocupError(
            f"size ({asked[:40]}) must be {size}, the board of the model "
            f"{engine.model}; START {size}, or use another model"
        )
    return _restart(engine)


def _restart(engine: Engine, command: Command | None = None) -> str:
    if command is not None:
        engine.board()
    engine.check_limits()
    engine.begin_match()
    return "OK"


def _begin(engine: Engine, command: Command) -> str | None:
    begun_s = time.monotonic()
    engine.check_limits()
    return engine.move(engine.board(), begun_s)


def _turn(engine: Engine, command: Command) -> str | None:
    begun_s = time.monotonic()
    stones = engine.board().with_stone(
        OTHER, _cell(engine, command.text), engine.rules.size
    )
    engine.check_limits()
    return engine.move(stones, begun_s)


def _takeback(engine: Engine, command: Command) -> str:
    action = _cell(engine, command.text)
    engine.stones = engine.board().without(action, engine.rules.size)
    return "OK"


def _board(engine: Engine, command: Command) -> str | None:
    begun_s = time.monotonic()
    stones = _stones_until_done(engine)
    engine.check_limits()
    return engine.move(stones, begun_s)


def _yxboard(engine: Engine, command: Command) -> None:
    """As BOARD of the protocol's other dialect, Yixin's: nobody moves."""
    engine.stones = _stones_until_done(engine)


def _stones_until_done(engine: Engine) -> Stones:
    lines = _lines_until_done(engine)
    engine.board()
    stones = Stones()
    for line in lines:
        found = _FIELD.fullmatch(line)
        owner = None if found is None else _OWNERS.get(found[2])
        if found is None or owner is None:
            raise GomocupError(
                f"stone ({line[:40]}) must be X,Y,1 of the own side or X,Y,2"
            )
        stones = stones.with_stone(owner, _cell(engine, found[1]), engine.rules.size)
    return stones


def _swap2board(engine: Engine, command: Command) -> str | None:
    begun_s = time.monotonic()
    lines = _lines_until_done(engine)
    engine.board()
    engine.check_limits()
    cells = [_cell(engine, line) for line in lines]
    if len(set(cells)) < len(cells):
        raise GomocupError("stones of SWAP2BOARD must be on different cells")
    return answer_swap2(engine, cells, begun_s)


def _info(engine: Engine, command: Command) -> None:
    room = engine.limits.tree_bytes
    engine.limits.set(command.text)
    if engine.limits.tree_bytes != room:
        engine.forget()


def _about(engine: Engine, command: Command) -> str:
    return engine.about


def _end(engine: Engine, command: Command) -> None:
    engine.is_over = True


def _done(engine: Engine, command: Command) -> str:
    raise UnknownCommandError("DONE without BOARD before it")


def _lines_until_done(engine: Engine) -> list[str]:
    """Returns what comes before DONE, at most a line more than there are cells.

    INFO may come at any time, and is no line of them.

    Raises:
        GomocupError: Another command or the end of the input comes first; that is
            left.
    """
    lines: list[str] = []
    while True:
        line, _ = engine.lines.peek(wait=True)
        command = None if line is None else parse_line(line)
        if line is None or (
            command is not None and command.name in COMMANDS.keys() - {"DONE", "INFO"}
        ):
            engine.is_over = command is not None and command.name == "END"
            raise GomocupError("the stones must end by DONE")
        engine.lines.next()
        if command is None:
            continue
        if command.name == "DONE":
            return lines
        if command.name == "INFO":
            _info(engine, command)
        elif len(lines) <= engine.rules.size**2:
            lines.append(f"{command.name} {command.text}".strip())


def _cell(engine: Engine, text: str) -> int:
    size = engine.rules.size
    action = read_cell(text, size)
    if action is None:
        raise GomocupError(f"cell ({text[:40]}) must be X,Y, both of 0 to {size - 1}")
    return action


COMMANDS: dict[str, Handler] = {
    "START": _start,
    "RECTSTART": _rectstart,
    "RESTART": _restart,
    "BEGIN": _begin,
    "TURN": _turn,
    "BOARD": _board,
    "YXBOARD": _yxboard,
    "SWAP2BOARD": _swap2board,
    "DONE": _done,
    "TAKEBACK": _takeback,
    "INFO": _info,
    "ABOUT": _about,
    "END": _end,
}
"""Every command by name."""
