"""An example of a custom game: Hex on 5 x 5, which has no draws.

X moves first and connects the top and bottom edges; O connects left and right. Each
cell has six neighbours: two in its row, two above and two below. In this folder, run

    tengen train own_game:Hex --minutes 5
    tengen play runs/own_game_Hex --task own_game:Hex
"""

import numpy as np

from tengen.games import stone_planes

SIZE = 5
NEIGHBOURS = ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0))

# The cells: 0 empty, 1 X, 2 O. A tuple, because states must be immutable.
State = tuple[int, ...]


class Hex:
    num_actions = SIZE * SIZE  # action = row * SIZE + column
    max_plies = SIZE * SIZE
    policy_layout = "cells"  # optional: one action per cell
    num_symmetries = 2  # optional: identity, and rotation by 180 degrees

    def initial_state(self) -> State:
        return (0,) * (SIZE * SIZE)

    def to_play(self, state: State) -> int:
        return sum(cell != 0 for cell in state) % 2

    def legal_actions(self, state: State) -> list[int]:
        return [action for action, cell in enumerate(state) if cell == 0]

    def apply(self, state: State, action: int) -> State:
        return (*state[:action], self.to_play(state) + 1, *state[action + 1 :])

    def is_terminal(self, state: State) -> bool:
        return self.is_joined(state, 1) or self.is_joined(state, 2)

    def returns(self, state: State) -> tuple[float, float]:
        return (1, -1) if self.is_joined(state, 1) else (-1, 1)

    def observation(self, state: State) -> np.ndarray:
        return stone_planes(np.reshape(state, (SIZE, SIZE)), self.to_play(state))

    def to_string(self, state: State) -> str:
        rows = [state[row * SIZE : (row + 1) * SIZE] for row in range(SIZE)]
        return "\n".join(
            " " * i + " ".join(".XO"[cell] for cell in row)
            for i, row in enumerate(rows)
        )

    def transform_action(self, action: int, symmetry: int) -> int:
        return SIZE * SIZE - 1 - action if symmetry == 1 else action

    def transform_planes(self, planes: np.ndarray, symmetry: int) -> np.ndarray:
        return planes[:, ::-1, ::-1] if symmetry == 1 else planes

    def is_joined(self, state: State, player: int) -> bool:
        """Returns whether the player's edges are joined, by a search from one edge."""
        board = np.reshape(state, (SIZE, SIZE))
        if player == 2:
            board = board.T  # left and right become top and bottom
        reached = [(0, column) for column in range(SIZE) if board[0, column] == player]
        for row, column in reached:
            for down, right in NEIGHBOURS:
                cell = (row + down, column + right)
                inside = 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE
                if inside and board[cell] == player and cell not in reached:
                    reached.append(cell)
        return any(row == SIZE - 1 for row, _ in reached)
