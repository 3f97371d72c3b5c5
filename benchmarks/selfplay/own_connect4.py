"""Connect Four as a user would write it in plain Python, to measure own games with.

tengen train own_connect4:ConnectFour
"""

from typing import NamedTuple

import numpy as np

from tengen.games import Planes, stone_planes

HEIGHT, WIDTH = 6, 7
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


class Position(NamedTuple):
    cells: tuple[
        int, ...
    ]  # row 0 on top: 0 empty, 1 the first player's, 2 the second's
    to_play: int
    winner: int  # 0 for none, 1 the first player, 2 the second


class ConnectFour:
    num_actions = WIDTH
    max_plies = HEIGHT * WIDTH
    policy_layout = "columns"
    num_symmetries = 2

    def initial_state(self) -> Position:
        return Position((0,) * (HEIGHT * WIDTH), 0, 0)

    def to_play(self, state: Position) -> int:
        return state.to_play

    def legal_actions(self, state: Position) -> list[int]:
        return [column for column in range(WIDTH) if state.cells[column] == 0]

    def apply(self, state: Position, action: int) -> Position:
        cells = list(state.cells)
        row = max(row for row in range(HEIGHT) if cells[row * WIDTH + action] == 0)
        player = state.to_play + 1
        cells[row * WIDTH + action] = player
        winner = player if has_four(cells, row, action) else 0
        return Position(tuple(cells), 1 - state.to_play, winner)

    def is_terminal(self, state: Position) -> bool:
        return state.winner != 0 or 0 not in state.cells[:WIDTH]

    def returns(self, state: Position) -> tuple[float, float]:
        return ((0, 0), (1, -1), (-1, 1))[state.winner]

    def observation(self, state: Position) -> Planes:
        return stone_planes(np.reshape(state.cells, (HEIGHT, WIDTH)), state.to_play)

    def to_string(self, state: Position) -> str:
        rows = [state.cells[i : i + WIDTH] for i in range(0, HEIGHT * WIDTH, WIDTH)]
        return "\n".join(" ".join(".XO"[cell] for cell in row) for row in rows)

    def transform_action(self, action: int, symmetry: int) -> int:
        return WIDTH - 1 - action if symmetry == 1 else action

    def transform_planes(self, planes: Planes, symmetry: int) -> Planes:
        return planes[:, :, ::-1] if symmetry == 1 else planes


def has_four(cells: list[int], row: int, column: int) -> bool:
    """Whether the stone that was just put there is in a line of four."""
    player = cells[row * WIDTH + column]
    for down, right in DIRECTIONS:
        length = 1
        for sign in (1, -1):
            r, c = row + sign * down, column + sign * right
            while 0 <= r < HEIGHT and 0 <= c < WIDTH and cells[r * WIDTH + c] == player:
                length += 1
                r, c = r + sign * down, c + sign * right
        if length >= 4:
            return True
    return False
