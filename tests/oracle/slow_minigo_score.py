"""Pass-alive points and the score of MLPerf's minigo, computed on text boards.

Nothing is shared with the core. Boards are as in slow_go.py. The benchmark deviates
from Benson's algorithm, and so does this reference: a chain that fails invalidates an
adjacent region only if the chain has a liberty in it.
Source: MLPerf training v2.1, minigo.
"""

from __future__ import annotations

from dataclasses import dataclass

from slow_games import EMPTY, STONES
from slow_go import chain_at, neighbours, regions


@dataclass(frozen=True)
class Region:
    """A connected set of points without a stone of one side."""

    points: frozenset[int]
    empty: frozenset[int]
    walls: frozenset[frozenset[int]]
    """The side's chains adjacent to the region."""


def benson(text: str, width: int, stone: str) -> tuple[set[int], set[int]]:
    """Returns a side's pass-alive stones, and the points of its pass-alive regions."""
    beside = neighbours(len(text) // width, width)
    liberties: dict[frozenset[int], set[int]] = {}
    chain_of: dict[int, frozenset[int]] = {}
    for point, cell in enumerate(text):
        if cell == stone and point not in chain_of:
            chain, free = chain_at(text, width, point)
            liberties[frozenset(chain)] = set(free)
            chain_of |= dict.fromkeys(chain, frozenset(chain))
    found = []
    for points, _ in regions(text, width, EMPTY + STONES[1 - STONES.index(stone)]):
        around = {q for p in points for q in beside[p] if q in chain_of}
        found.append(
            Region(
                frozenset(points),
                frozenset(p for p in points if text[p] == EMPTY),
                frozenset(chain_of[q] for q in around),
            )
        )
    chains, left = set(liberties), found
    while True:
        failed = {
            chain
            for chain in chains
            if sum(region.empty <= liberties[chain] for region in left) < 2
        }
        if not failed:
            break
        chains -= failed
        lost = {point for chain in failed for point in liberties[chain]}
        left = [region for region in left if not region.empty & lost]
    kept_points: set[int] = set()
    for region in found:
        inner = [p for p in region.empty if not any(q in chain_of for q in beside[p])]
        if region.walls and region.walls <= chains and len(inner) < 2:
            kept_points |= region.points
    return {point for chain in chains for point in chain}, kept_points


def kept(text: str, width: int) -> str:
    """Returns each point's owner if it is pass-alive, otherwise EMPTY."""
    owners = [EMPTY] * len(text)
    sides = [(stone, *benson(text, width, stone)) for stone in STONES]
    for stone, chains, _ in sides:
        for point in chains:
            owners[point] = stone
    for stone, _, points in sides:  # the second side's regions take precedence
        for point in points:
            owners[point] = stone
    return "".join(owners)


def minigo_area(text: str, width: int) -> str:
    """Returns the owner of each point, EMPTY if neutral."""
    owners = list(text)
    for stone in STONES:
        for point in benson(text, width, stone)[1]:
            owners[point] = stone
    for points, around in regions("".join(owners), width, EMPTY):
        if len(around) == 1:
            for point in points:
                owners[point] = next(iter(around))
    return "".join(owners)


def minigo_score(text: str, width: int, komi: float) -> float:
    """Returns the first player's points minus the second player's and komi."""
    area = minigo_area(text, width)
    return area.count(STONES[0]) - area.count(STONES[1]) - komi
