"""A straightforward reference for core/games/go/ladders/ladder.h.

Boards are text, as in slow_go. Every move of the definition is played on a copy of
the board, and every chain is recomputed. The number of moves tried is unlimited.
"""

from __future__ import annotations

from dataclasses import dataclass

from slow_games import EMPTY, STONES
from slow_go import SlowGo, after, chain_at, neighbours


@dataclass(frozen=True)
class Ladder:
    """A board in the middle of a ladder.

    Attributes:
        text: The board.
        width: Columns.
        target: A stone of the attacked chain.
        ko: The point where the side to move must not retake a ko.
        num_stones: Stones played since the ladder began.
    """

    text: str
    width: int
    target: int
    ko: int | None
    num_stones: int = 0

    @property
    def owner(self) -> str:
        return self.text[self.target]

    def liberties(self) -> set[int]:
        return chain_at(self.text, self.width, self.target)[1]

    def is_too_long(self) -> bool:
        return self.num_stones == len(self.text)

    def played(self, point: int, stone: str) -> Ladder | None:
        """Returns the ladder after a stone; None if the move is illegal."""
        board = after(self.text, self.width, point, stone, suicide=False)
        if board is None or point == self.ko:
            return None
        taken = [p for p, c in enumerate(board) if c == EMPTY != self.text[p]]
        chain, liberties = chain_at(board, self.width, point)
        is_ko = len(taken) == len(chain) == 1 and liberties == set(taken)
        ko = taken[0] if is_ko else None
        return Ladder(board, self.width, self.target, ko, self.num_stones + 1)

    def answers(self) -> set[int]:
        """Returns the moves that may save a chain in atari: extensions and captures."""
        points = self.liberties()
        chain, _ = chain_at(self.text, self.width, self.target)
        for stone in chain:
            for other in neighbours(len(self.text) // self.width, self.width)[stone]:
                if self.text[other] not in (EMPTY, self.owner):
                    _, liberties = chain_at(self.text, self.width, other)
                    points |= liberties if len(liberties) == 1 else set()
        return points


def is_caught(ladder: Ladder) -> bool:
    """Returns whether a chain in atari is caught when its owner moves next."""
    for point in ladder.answers():
        then = ladder.played(point, ladder.owner)
        if then is None:
            continue
        if ladder.is_too_long() or len(then.liberties()) > 2:
            return False
        if len(then.liberties()) == 2 and not working_moves(then):
            return False
    return True


def working_moves(ladder: Ladder) -> set[int]:
    """Returns the attacker's moves that catch a chain with two liberties."""
    attacker = STONES[1 - STONES.index(ladder.owner)]
    if ladder.is_too_long():
        return set()
    played = {p: ladder.played(p, attacker) for p in ladder.liberties()}
    return {p for p, then in played.items() if then is not None and is_caught(then)}


def ladders(slow: SlowGo) -> tuple[set[int], set[int]]:
    """Returns the caught stones, and the moves that begin a working ladder."""
    text, to_play = slow.text(), STONES[slow.to_play]
    laddered: set[int] = set()
    moves: set[int] = set()
    for stone in range(len(text)):
        if text[stone] == EMPTY:
            continue
        chain, liberties = chain_at(text, slow.width, stone)
        if min(chain) < stone or len(liberties) > 2:
            continue
        owner_moves = len(liberties) == 1
        may_retake = owner_moves != (text[stone] == to_play)
        ko = None if may_retake else slow.ko_point()
        ladder = Ladder(text, slow.width, stone, ko)
        if owner_moves:
            laddered |= chain if is_caught(ladder) else set()
            continue
        found = working_moves(ladder)
        laddered |= chain if found else set()
        moves |= found if text[stone] != to_play else set()
    return laddered, moves
