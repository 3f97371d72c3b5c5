"""Python versions of core games, for comparison with the core."""

import numpy as np

from tengen.games import transform_cell, transform_planes

LINES = (
    *((3 * i, 3 * i + 1, 3 * i + 2) for i in range(3)),
    *((i, i + 3, i + 6) for i in range(3)),
    (0, 4, 8),
    (2, 4, 6),
)


def stones_planes(board, player):
    return np.stack(
        [np.ones(board.shape), board == player + 1, board == 2 - player]
    ).astype(np.float32)


class Decisive:
    """Finds the decisive actions by playing all pairs of moves, like the core."""

    def decisive_actions(self, state):
        legal = self.legal_actions(state)
        winning = [action for action in legal if self.wins(state, action)]
        if winning:
            return winning, 1
        saving = [action for action in legal if not self.loses(state, action)]
        return (saving, 0) if saving else (legal, -1)

    def wins(self, state, action):
        after = self.apply(state, action)
        return self.is_terminal(after) and self.returns(after)[self.to_play(state)] > 0

    def loses(self, state, action):
        after = self.apply(state, action)
        if self.is_terminal(after):
            return False
        return any(self.wins(after, reply) for reply in self.legal_actions(after))


class Forcing(Decisive):
    """Also looks for a win by threats, like the core in Connect Four."""

    def decisive_actions(self, state):
        actions, result = near = super().decisive_actions(state)
        if result == 0 and (first := self.forced_win(state, actions, [30])) is not None:
            return [first], 1
        return near

    def forced_win(self, state, considered, num_left):
        for action in considered:
            after = self.apply(state, action)
            if self.is_terminal(after):
                continue
            replies, result = super().decisive_actions(after)
            if result == -1:
                return action
            if len(replies) != 1 or result == 1:
                continue
            num_left[0] -= 1
            if num_left[0] < 0:
                return None
            after = self.apply(after, replies[0])
            if self.is_terminal(after):
                continue
            then, result = super().decisive_actions(after)
            if result == 1:
                return action
            if result == 0 and self.forced_win(after, then, num_left) is not None:
                return action
        return None


class PlainTicTacToe:
    num_actions = 9
    max_plies = 9
    policy_layout = "cells"
    num_symmetries = 8

    def initial_state(self):
        return (0,) * 9

    def to_play(self, state):
        return sum(cell != 0 for cell in state) % 2

    def legal_actions(self, state):
        return [action for action, cell in enumerate(state) if cell == 0]

    def apply(self, state, action):
        return (*state[:action], self.to_play(state) + 1, *state[action + 1 :])

    def winner(self, state):
        lines = ({state[cell] for cell in line} for line in LINES)
        return next((line.pop() for line in lines if line in ({1}, {2})), 0)

    def is_terminal(self, state):
        return self.winner(state) != 0 or 0 not in state

    def returns(self, state):
        return [(0, 0), (1, -1), (-1, 1)][self.winner(state)]

    def observation(self, state):
        return stones_planes(np.reshape(state, (3, 3)), self.to_play(state))

    def to_string(self, state):
        return "\n".join(str(state[i : i + 3]) for i in (0, 3, 6))

    def transform_action(self, action, symmetry):
        return transform_cell(action, 3, symmetry)

    def transform_planes(self, planes, symmetry):
        return transform_planes(planes, symmetry)


class TicTacToe(Decisive, PlainTicTacToe):
    """Has decisive actions, like the core's game."""


class ConnectFour(Forcing):
    """The state is two bitboards, one per player: 7 columns of 8 bits."""

    num_actions = 7
    max_plies = 42
    policy_layout = "columns"
    num_symmetries = 2

    def initial_state(self):
        return (0, 0)

    def to_play(self, state):
        return (state[0] | state[1]).bit_count() % 2

    def legal_actions(self, state):
        stones = state[0] | state[1]
        return [column for column in range(7) if not stones >> 8 * column + 5 & 1]

    def apply(self, state, action):
        stones = state[0] | state[1]
        bit = (stones + (1 << 8 * action)) & (0xFF << 8 * action) & ~stones
        if self.to_play(state) == 0:
            return (state[0] | bit, state[1])
        return (state[0], state[1] | bit)

    def has_four(self, stones):
        for step in (1, 7, 8, 9):
            pairs = stones & stones >> step
            if pairs & pairs >> 2 * step:
                return True
        return False

    def is_terminal(self, state):
        stones = state[0] | state[1]
        full = stones.bit_count() == 42
        return full or self.has_four(state[0]) or self.has_four(state[1])

    def returns(self, state):
        if self.has_four(state[0]):
            return (1, -1)
        return (-1, 1) if self.has_four(state[1]) else (0, 0)

    def observation(self, state):
        columns = np.frombuffer(
            b"".join(stones.to_bytes(7, "little") for stones in state), np.uint8
        )
        bits = np.unpackbits(columns.reshape(2, 7, 1), axis=2, bitorder="little")
        boards = bits[:, :, 5::-1].swapaxes(1, 2)
        player = self.to_play(state)
        planes = np.ones((4, 6, 7), np.float32)
        planes[1], planes[2], planes[3] = boards[player], boards[1 - player], 1 - player
        return planes

    def to_string(self, state):
        return str(self.observation(state)[1:3])

    def transform_action(self, action, symmetry):
        return 6 - action if symmetry == 1 else action

    def transform_planes(self, planes, symmetry):
        return planes[..., ::-1] if symmetry == 1 else planes
