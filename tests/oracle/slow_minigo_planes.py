"""A reference for the planes of MLPerf's minigo, computed from the move list.

Every board of the game is recomputed by flood fill; nothing is shared with the core.
Source: MLPerf training v2.1, minigo: the input features "mlperf07", preceded by a
plane that marks the board.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from slow_games import EMPTY, STONES
from slow_go import SlowGo, chain_at, neighbours

NUM_BOARDS = 4


def minigo_planes(name: str, moves: Sequence[int]) -> NDArray[np.float32]:
    """Returns planes ``[14, H, W]`` after a game's moves under positional superko."""
    slow = SlowGo(name)
    for move in moves:
        slow.apply(move)
    return planes_of(slow)


def planes_of(slow: SlowGo) -> NDArray[np.float32]:
    """Returns the planes for an already played game."""
    assert slow.ko == "", "the boards since the last pass alone are kept"
    texts = [text for text, _ in slow.boards]
    own, opponent = STONES[slow.to_play], STONES[1 - slow.to_play]
    num_points = len(texts[-1])
    wanted: list[Iterable[int]] = [range(num_points)]
    for back in range(NUM_BOARDS):
        text = texts[-1 - back] if back < len(texts) else EMPTY * num_points
        for stone in (own, opponent):
            wanted.append([p for p, cell in enumerate(text) if cell == stone])
    wanted.append(range(num_points) if slow.to_play == 0 else [])
    liberties = liberties_of(texts[-1], slow.width)
    for count in (1, 2):
        wanted.append([p for p, free in liberties.items() if len(free) == count])
    wanted.append([p for p, free in liberties.items() if len(free) >= 3])
    wanted.append(captures(slow, liberties))
    planes = np.zeros((len(wanted), num_points), np.float32)
    for plane, points in zip(planes, wanted, strict=True):
        plane[list(points)] = 1
    return planes.reshape(-1, slow.height, slow.width)


def liberties_of(text: str, width: int) -> dict[int, set[int]]:
    """Returns, for each stone, the liberties of its chain."""
    found: dict[int, set[int]] = {}
    for point, cell in enumerate(text):
        if cell != EMPTY and point not in found:
            chain, free = chain_at(text, width, point)
            found |= dict.fromkeys(chain, free)
    return found


def in_reach(slow: SlowGo, liberties: dict[int, set[int]]) -> list[int]:
    """Returns the empty points where the side to move would capture a chain."""
    text, other = slow.text(), STONES[1 - slow.to_play]
    beside = neighbours(slow.height, slow.width)
    return [
        point
        for point, cell in enumerate(text)
        if cell == EMPTY
        and any(text[q] == other and len(liberties[q]) == 1 for q in beside[point])
    ]


def captures(slow: SlowGo, liberties: dict[int, set[int]]) -> list[int]:
    """Returns the capturing points that are legal: they repeat no earlier board."""
    if slow.is_terminal():
        return []
    seen = {board for board, _ in slow.boards}
    return [p for p in in_reach(slow, liberties) if slow.after(p) not in seen]
