"""A straightforward reference implementation of Go.

A board is a string, every board of the game is stored, and every query scans the
complete board. Nothing is shared with the core. `eternal_chains` determines
pass-alive chains by playing every sequence of moves instead of looking for eyes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from slow_games import EMPTY, STONES, SlowGame


class SlowGo(SlowGame):
    """Go with the rules given in its name, see core/games/go/rules/rules.h.

    Attributes:
        boards: Every board as text, with the side to move, oldest first; under the
            simple ko rule only those since the last pass.
        moves: The actions so far.
        captured: Points emptied by the last move, of either side.
        repeated: Under the simple ko rule, whether the last move repeated a situation.
    """

    def __init__(self, name: str) -> None:
        _, size, *options = name.split("/")
        sizes = [int(side) for side in size.split("x")]
        self.name = name
        self.height, self.width = sizes[0], sizes[-1]
        numbers = dict(option.split("=") for option in options if "=" in option)
        self.ko = next((o for o in options if o in ("simple", "situational")), "")
        self.suicide = "nosuicide" not in options
        self.komi = float(numbers.get("komi", "7.5"))
        self.max_plies = int(numbers.get("plies", 2 * self.height * self.width))
        super().__init__()
        self.first_to_move = 0
        for row, column in handicap_cells(self.height, int(numbers.get("handicap", 0))):
            self.board[row][column] = STONES[0]
            self.first_to_move = 1
        self.boards = [(self.text(), self.to_play)]
        self.moves: list[int] = []
        self.captured: list[int] = []
        self.repeated = False

    @property
    def to_play(self) -> int:
        return (self.ply + getattr(self, "first_to_move", 0)) % 2

    def num_actions(self) -> int:
        return self.height * self.width + 1

    def text(self) -> str:
        return "".join("".join(row) for row in self.board)

    def cell_of(self, action: int) -> tuple[int, int] | None:
        if action == self.num_actions() - 1:
            return None
        return super().cell_of(action)

    def after(self, action: int) -> str | None:
        """Returns the board after a stone on an empty point; None if it is suicide."""
        return after(
            self.text(), self.width, action, STONES[self.to_play], self.suicide
        )

    def ko_point(self) -> int | None:
        """Returns the point where an immediate recapture is forbidden, or None."""
        if not self.moves or len(self.captured) != 1:
            return None
        stone, text = self.moves[-1], self.text()
        if text[stone] == EMPTY:
            return None
        chain, liberties = chain_at(text, self.width, stone)
        alone = len(chain) == 1 and liberties == set(self.captured)
        return self.captured[0] if alone else None

    def split_actions(self) -> tuple[list[int], list[int]]:
        """Returns the legal actions, and the points forbidden by the ko rule alone."""
        legal, banned = [], []
        if self.is_terminal():
            return [], []
        text, opponent = self.text(), 1 - self.to_play
        seen = {board for board, _ in self.boards}
        situations = set(self.boards)
        for point in range(self.num_actions() - 1):
            board = self.after(point) if text[point] == EMPTY else None
            if board is None:
                continue
            if self.ko == "simple":
                is_banned = point == self.ko_point()
            elif self.ko == "situational":
                is_banned = (board, opponent) in situations
            else:
                is_banned = board in seen
            (banned if is_banned else legal).append(point)
        return [*legal, self.num_actions() - 1], banned

    def legal_actions(self) -> list[int]:
        return self.split_actions()[0]

    def apply(self, action: int) -> None:
        before = self.text()
        self.captured = []
        if action != self.num_actions() - 1:
            board = self.after(action)
            assert board is not None
            stones = before[:action] + STONES[self.to_play] + before[action + 1 :]
            self.captured = [p for p, cell in enumerate(stones) if cell != board[p]]
            self.board = [list(row) for row in rows_of(board, self.width)]
            self.last = divmod(action, self.width)
        elif self.ko == "simple":
            self.boards = []
        self.moves.append(action)
        self.ply += 1
        situation = (self.text(), self.to_play)
        self.repeated = self.ko == "simple" and situation in self.boards
        self.boards.append(situation)

    def has_two_passes(self) -> bool:
        return self.moves[-2:] == [self.num_actions() - 1] * 2

    def is_terminal(self) -> bool:
        return self.has_two_passes() or self.repeated or self.ply >= self.max_plies

    def owners(self) -> str:
        """Returns X, O or . for every point, by area scoring."""
        text = list(self.text())
        for region, around in regions(self.text(), self.width, EMPTY):
            if len(around) == 1:
                for point in region:
                    text[point] = next(iter(around))
        return "".join(text)

    def score(self) -> float:
        owners = self.owners()
        return owners.count(STONES[0]) - owners.count(STONES[1]) - self.komi

    def returns(self) -> tuple[int, int]:
        if self.repeated:
            return (0, 0)
        score = self.score()
        return (1, -1) if score > 0 else (-1, 1) if score < 0 else (0, 0)

    def pass_alive(self, stone: str) -> set[int]:
        return pass_alive(self.text(), self.width, stone, self.suicide)

    def planes(self) -> NDArray[np.float32]:
        """Returns all planes except the ladder planes, which slow_ladders computes."""
        text, num_points = self.text(), self.height * self.width
        planes = self.stone_planes()

        def add(points: Iterator[int] | list[int] | set[int]) -> None:
            plane = np.zeros(num_points, np.float32)
            plane[list(points)] = 1
            planes.append(plane.reshape(self.height, self.width))

        stones = [p for p in range(num_points) if text[p] != EMPTY]
        for count in (1, 2, 3):
            add(p for p in stones if len(chain_at(text, self.width, p)[1]) == count)
        add(self.split_actions()[1])
        for back in range(1, 6):
            move = self.moves[-back] if back <= len(self.moves) else None
            is_pass = move == num_points
            add([] if move is None else range(num_points) if is_pass else [move])
        add(self.pass_alive(STONES[self.to_play]))
        add(self.pass_alive(STONES[1 - self.to_play]))
        komi = self.komi if self.to_play == 1 else -self.komi
        constants = [komi / 20, self.ko == "simple", self.ko == "situational"]
        for value in [*constants, self.suicide]:
            planes.append(np.full((self.height, self.width), value, np.float32))
        return np.stack(planes)


def choose(rng: random.Random, slow: SlowGo, legal: list[int], mood: int) -> int:
    """Returns a random move; most moods rarely pass, so that boards fill up."""
    stones = legal[:-1]
    if not stones or (mood == 0 and rng.random() < 0.1) or rng.random() < 0.01:
        return legal[-1]
    if mood == 2 and slow.last is not None and rng.random() < 0.8:
        row, column = slow.last
        near = [
            action
            for action in stones
            if abs(action // slow.width - row) + abs(action % slow.width - column) < 3
        ]
        return rng.choice(near or stones)
    return rng.choice(stones)


def handicap_cells(size: int, num_stones: int) -> list[tuple[int, int]]:
    """Returns the usual handicap points of a square board, corners first."""
    if num_stones == 0:
        return []
    low, middle = (3 if size < 13 else 4), (size + 1) // 2
    high = size + 1 - low
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
    centre = [(middle, middle)] if num_stones > 4 and num_stones % 2 == 1 else []
    points = [*corners, *sides][: num_stones - len(centre)] + centre
    return [(size - number, letter - 1) for letter, number in points]


def rows_of(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]


@cache
def neighbours(height: int, width: int) -> list[list[int]]:
    found = []
    for point in range(height * width):
        row, column = divmod(point, width)
        cells = [
            (row + down, column + right)
            for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
        ]
        inside = [(r, c) for r, c in cells if 0 <= r < height and 0 <= c < width]
        found.append([r * width + c for r, c in inside])
    return found


def chain_at(text: str, width: int, stone: int) -> tuple[set[int], set[int]]:
    """Returns the stones of the chain at ``stone`` and its liberties."""
    beside = neighbours(len(text) // width, width)
    chain, liberties, todo = {stone}, set(), [stone]
    while todo:
        for point in beside[todo.pop()]:
            if text[point] == EMPTY:
                liberties.add(point)
            elif text[point] == text[stone] and point not in chain:
                chain.add(point)
                todo.append(point)
    return chain, liberties


def without(text: str, points: set[int]) -> str:
    return "".join(EMPTY if p in points else cell for p, cell in enumerate(text))


def after(text: str, width: int, point: int, stone: str, suicide: bool) -> str | None:
    """Returns the board after a stone, ignoring ko; None if the stone is illegal."""
    text = text[:point] + stone + text[point + 1 :]
    taken: set[int] = set()
    for other in neighbours(len(text) // width, width)[point]:
        if text[other] not in (EMPTY, stone) and other not in taken:
            chain, liberties = chain_at(text, width, other)
            if not liberties:
                taken |= chain
    if taken:
        return without(text, taken)
    chain, liberties = chain_at(text, width, point)
    if liberties:
        return text
    return without(text, chain) if suicide and len(chain) > 1 else None


def regions(text: str, width: int, cells: str) -> list[tuple[set[int], set[str]]]:
    """Returns connected regions of ``cells``, with the cells around each region."""
    beside = neighbours(len(text) // width, width)
    found: list[tuple[set[int], set[str]]] = []
    left = {point for point, cell in enumerate(text) if cell in cells}
    while left:
        region, around, todo = set(), set(), [left.pop()]
        while todo:
            point = todo.pop()
            region.add(point)
            for other in beside[point]:
                if other in left:
                    left.remove(other)
                    todo.append(other)
                elif text[other] not in cells:
                    around.add(text[other])
        found.append((region, around))
    return found


def pass_alive(text: str, width: int, stone: str, suicide: bool) -> set[int]:
    """Returns Benson's pass-alive stones, and regions where no opponent can live."""
    beside = neighbours(len(text) // width, width)
    other = STONES[1 - STONES.index(stone)]
    chains = {
        frozenset(chain_at(text, width, point)[0])
        for point, cell in enumerate(text)
        if cell == stone
    }
    inside = [frozenset(region) for region, _ in regions(text, width, EMPTY + other)]

    def is_vital(region: frozenset[int], chain: frozenset[int]) -> bool:
        asked = [p for p in region if suicide or text[p] == EMPTY]
        return all(any(q in chain for q in beside[p]) for p in asked)

    known = set(chains)
    while True:
        enclosed = [region for region in inside if walls_in(region, known, beside)]
        alive = {c for c in known if sum(is_vital(r, c) for r in enclosed) >= 2}
        if alive == known:
            break
        known = alive
    area = {point for chain in known for point in chain}
    for region in inside:
        inner = [p for p in region if all(text[q] != stone for q in beside[p])]
        if known and walls_in(region, known, beside) and len(inner) <= 1:
            area |= region
    return area


def walls_in(
    region: frozenset[int], chains: set[frozenset[int]], beside: list[list[int]]
) -> bool:
    """Returns whether every stone around ``region`` belongs to one of ``chains``."""
    edge = {q for p in region for q in beside[p]} - region
    return all(any(q in chain for chain in chains) for q in edge)


def eternal_chains(text: str, width: int, stone: str, suicide: bool) -> set[int]:
    """Returns ``stone``'s stones that no sequence of opponent moves alone captures."""
    other = STONES[1 - STONES.index(stone)]
    seen, todo = {text}, [text]
    kept = {point for point, cell in enumerate(text) if cell == stone}
    while todo and kept:
        board = todo.pop()
        kept = {point for point in kept if board[point] == stone}
        for point, cell in enumerate(board):
            if cell != EMPTY:
                continue
            then = after(board, width, point, other, suicide)
            if then is not None and then not in seen:
                seen.add(then)
                todo.append(then)
    return kept
