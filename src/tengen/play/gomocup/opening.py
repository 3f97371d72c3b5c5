"""The opening of Swap2: three stones to offer, and which side of an offer to take.

Whoever is offered stones may take either side, or add two stones and leave the choice.
The last is worth no more than the better of the two sides, so that it is never chosen.

Source: Gomocup, "Experimental tournament 2020", the command SWAP2BOARD.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from tengen.play.gomocup.engine import Engine
from tengen.play.gomocup.protocol import GomocupError
from tengen.play.gomocup.stones import OTHER, OWN, Stones
from tengen.play.session.thinking import Limits

__all__ = ["answer_swap2"]

_NUM_OFFERED = 3
# Offers that the network looks at within this part of the time, and those of them that
# are searched.
_NUM_LOOKED_AT = 48
_LOOKING = 0.25
_NUM_SEARCHED = 6
_SEED = 0


def answer_swap2(engine: Engine, cells: list[int], begun_s: float) -> str | None:
    """Returns the answer to SWAP2BOARD: stones to offer, SWAP, or a move. Blocks.

    Args:
        engine: Whose searches judge, within its limits.
        cells: The stones so far, black's first: none, three or five.
        begun_s: When it was asked, by ``time.monotonic``.

    Returns:
        None where the manager has left meanwhile.

    Raises:
        GomocupError: There are otherwise many stones, or the game is over.
    """
    if len(cells) not in (0, _NUM_OFFERED, _NUM_OFFERED + 2):
        raise GomocupError(
            f"stones ({len(cells)}) must be 0, 3 or 5 where SWAP2BOARD sends them"
        )
    if not cells:
        offer = _offer(engine, begun_s)
        engine.limits.spend(time.monotonic() - begun_s)
        return None if engine.is_over else " ".join(map(engine.cell, offer))
    owners = [OTHER if ply % 2 == 0 else OWN for ply in range(len(cells))]
    as_white = Stones(tuple(zip(owners, cells, strict=True)))
    found = engine.think(as_white, begun_s)
    if engine.is_over:
        return None
    # As black the other side makes the next move.
    return "SWAP" if found.value_to_play < 0 else engine.play(as_white, found)


def _offer(engine: Engine, begun_s: float) -> list[int]:
    """Returns three stones after which searches expect the evenest game."""
    limits = engine.move_limits(0)
    looked_at: list[tuple[float, list[int]]] = []
    for cells in _offers(engine.rules.size**2):
        found = engine.search(cells, Limits(0), begun_s)
        looked_at.append((abs(found.network_value_to_play), cells))
        used_s = time.monotonic() - begun_s
        is_late = limits.seconds is not None and used_s > _LOOKING * limits.seconds
        if is_late or engine.is_left():
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
        if engine.is_left():
            break
    return min(searched)[1]


def _offers(num_cells: int) -> Iterator[list[int]]:
    """Yields stones to look at, the same ones each time."""
    rng = np.random.default_rng(_SEED)
    for _ in range(_NUM_LOOKED_AT):
        drawn = rng.choice(num_cells, _NUM_OFFERED, replace=False)
        yield [int(cell) for cell in drawn]
