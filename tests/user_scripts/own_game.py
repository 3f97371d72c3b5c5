"""Trains a game of one's own: take one to three of 15 stones, the last one wins."""

import numpy as np
from numpy.typing import NDArray

import tengen

STONES = 15
State = tuple[int, int]


class Nim:
    """The stones that are left, and the player to move."""

    num_actions = 3
    max_plies = STONES
    policy_layout = "flat"

    def initial_state(self) -> State:
        """Returns the first position."""
        return STONES, 0

    def to_play(self, state: State) -> int:
        """Returns the player to move."""
        return state[1]

    def legal_actions(self, state: State) -> list[int]:
        """Returns the legal actions; action n takes n + 1 stones."""
        return list(range(min(3, state[0])))

    def apply(self, state: State, action: int) -> State:
        """Returns the position after an action."""
        return state[0] - action - 1, 1 - state[1]

    def is_terminal(self, state: State) -> bool:
        """Returns whether no stone is left."""
        return state[0] == 0

    def returns(self, state: State) -> tuple[float, float]:
        """Returns the result for both players."""
        return (1.0, -1.0) if state[1] == 1 else (-1.0, 1.0)

    def observation(self, state: State) -> NDArray[np.float32]:
        """Returns a plane of ones, and the stones as a row."""
        planes = np.zeros((2, 1, STONES), np.float32)
        planes[0] = 1.0
        planes[1, 0, : state[0]] = 1.0
        return planes

    def to_string(self, state: State) -> str:
        """Returns the stones as text."""
        return "o" * state[0]


if __name__ == "__main__":
    run = tengen.train(Nim, games=2000)
    with run.player() as player:
        print(player.choose([], simulations=100) + 1, "stones, best is 3")
