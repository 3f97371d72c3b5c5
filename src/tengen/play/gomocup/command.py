"""``tengen gomocup``: runs a gomoku model as an engine of the Gomocup protocol."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tengen.games.gomoku import read_cell
from tengen.play.gomocup.engine import Engine, Handler
from tengen.play.gomocup.stones import (
    OTHER,
    OWN,
    Command,
    GomocupError,
    Owner,
    Stones,
    UnknownCommandError,
    parse_line,
)
from tengen.play.session.arguments import (
    add_session_arguments,
    load_for_session,
    read_input,
    write_output,
)
from tengen.play.session.searches import Limits
from tengen.play.session.session import LineReader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen gomocup`` to ``parser``."""
    add_session_arguments(parser, " or a bundled player, gomoku/15 or gomoku/9")


def gomocup(args: argparse.Namespace) -> dict[str, Any]:
    """Serves a tournament manager on stdin and stdout until the manager quits.

    Raises:
        UsageError: The model cannot be used or does not play gomoku, or a number or a
            setting is invalid.
        RunError: The backend rejects the model.
    """
    # The match clock starts when the process starts. The CPU time used so far estimates
    # how long ago that was.
    begun_s = time.monotonic() - time.process_time()
    player, simulations, threads = load_for_session(args)
    with player:
        engine = Engine(
            player,
            COMMANDS,
            simulations=simulations,
            threads=threads,
            write=write_output,
            lines=LineReader(read_input),
            ponders=args.ponder,
            begun_s=begun_s,
        )
        engine.run()
    return {}


_OWNERS: dict[str, Owner] = {"1": OWN, "2": OTHER}
_FIELD = re.compile(r"(.*),\s*([0-9]+)\s*")
_SIDES = re.compile(r"([^\s,]+)(?:\s*[\s,]\s*([^\s,]+))?")


def _start(engine: Engine, command: Command) -> str:
    """Runs START, which some managers send with width and height, not one size."""
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
    """Runs YXBOARD of the engine Yixin: sets the board like BOARD, plays no move."""
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
                f"stone ({line[:40]}) must be X,Y,1 (own) or X,Y,2 (opponent)"
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
    """Consumes input until DONE; returns the lines before it, without INFO commands.

    Runs INFO commands. Returns at most one line more than the board has cells.

    Raises:
        GomocupError: The input ends before DONE, or another command arrives first; that
            command is not consumed.
    """
    lines: list[str] = []
    while True:
        line, _ = engine.lines.peek(wait=True)
        command = None if line is None else parse_line(line)
        if line is None or (
            command is not None and command.name in COMMANDS.keys() - {"DONE", "INFO"}
        ):
            engine.is_over = command is not None and command.name == "END"
            raise GomocupError("the stones must end with DONE")
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
        raise GomocupError(f"cell ({text[:40]}) must be X,Y, each 0 to {size - 1}")
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
"""The handlers of all Gomocup commands, by command name."""


_NUM_OFFERED = 3
# For swap2: the maximum number of offers that the network evaluates, the share of the
# move's time for these evaluations, and the number of best offers to search afterwards.
_NUM_LOOKED_AT = 48
_LOOKING = 0.25
_NUM_SEARCHED = 6
_SEED = 0


def answer_swap2(engine: Engine, cells: list[int], begun_s: float) -> str | None:
    """Returns the response to SWAP2BOARD: stones to offer, SWAP, or a move. Blocks.

    The player who receives an offer of three stones may choose a side, or add two
    stones and let the opponent choose. The opponent would take the better side, so
    adding stones never gains: the engine always chooses a side itself.

    Source: Gomocup, "Experimental tournament 2020", the command SWAP2BOARD.

    Args:
        engine: The engine, which searches within its limits.
        cells: The cells of the stones so far, black first: none, three or five.
        begun_s: The time at which the command arrived, from ``time.monotonic``.

    Returns:
        The response; None if the manager quit during the search.

    Raises:
        GomocupError: The number of stones is invalid, or the game has ended.
    """
    if len(cells) not in (0, _NUM_OFFERED, _NUM_OFFERED + 2):
        raise GomocupError(f"stones ({len(cells)}) must be 0, 3 or 5 after SWAP2BOARD")
    if not cells:
        offer = _offer(engine, begun_s)
        engine.limits.spend(time.monotonic() - begun_s)
        return None if engine.is_over else " ".join(map(engine.cell, offer))
    owners = [OTHER if ply % 2 == 0 else OWN for ply in range(len(cells))]
    as_white = Stones(tuple(zip(owners, cells, strict=True)))
    found = engine.think(as_white, begun_s)
    if engine.is_over:
        return None
    # Choose black if White, who moves next, is worse off; otherwise play a white move.
    return "SWAP" if found.value_to_play < 0 else engine.play(as_white, found)


def _offer(engine: Engine, begun_s: float) -> list[int]:
    """Returns the three cells of a balanced swap2 offer. Blocks."""
    limits = engine.move_limits(*engine.limits.budget(0))
    looked_at: list[tuple[float, list[int]]] = []
    for cells in _offers(engine.rules.size**2):
        found = engine.search(cells, Limits(0), begun_s)
        looked_at.append((abs(found.network_value_to_play), cells))
        used_s = time.monotonic() - begun_s
        is_late = limits.seconds is not None and used_s > _LOOKING * limits.seconds
        if is_late or engine.is_stopped():
            break
    searched: list[tuple[float, list[int]]] = []
    best = sorted(looked_at)[:_NUM_SEARCHED]
    for number, (value, cells) in enumerate(best, start=1):
        share = Limits(
            max(limits.simulations // len(best), 1),
            None if limits.seconds is None else limits.seconds * number / len(best),
        )
        if share.seconds is not None and time.monotonic() - begun_s >= share.seconds:
            searched.append((value, cells))
        else:
            found = engine.search(cells, share, begun_s)
            searched.append((abs(found.value_to_play), cells))
        if engine.is_stopped():
            break
    return min(searched)[1]


def _offers(num_cells: int) -> Iterator[list[int]]:
    """Yields random swap2 offers of three cells, the same ones in each call."""
    rng = np.random.default_rng(_SEED)
    for _ in range(_NUM_LOOKED_AT):
        drawn = rng.choice(num_cells, _NUM_OFFERED, replace=False)
        yield [int(cell) for cell in drawn]
