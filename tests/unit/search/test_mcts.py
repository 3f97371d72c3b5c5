"""The fixed opponent ``mcts:N``."""

import random

import pytest

from tengen import _core, games
from tests.refusals import refused

PLAYOUTS = 200


@pytest.mark.parametrize(
    ("name", "moves", "wanted"),
    [
        ("tictactoe", [0, 3, 1, 4], {2}),  # wins immediately
        ("tictactoe", [0, 4, 1], {2}),  # otherwise loses immediately
        ("connect4", [1, 1, 2, 2, 3, 3], {0, 4}),
        ("connect4", [0, 6, 0, 6, 0], {0}),
    ],
)
def test_wins_and_blocks_in_one(name, moves, wanted):
    for seed in range(10):
        assert _core.mcts_choose(name, moves, PLAYOUTS, seed) in wanted


def test_wins_in_one_on_a_big_board():
    # Four in a row, open at both ends, with the first player to move.
    moves = [39, 0, 40, 2, 41, 4, 42, 6]
    for seed in range(5):
        assert _core.mcts_choose("gomoku/9", moves, 2000, seed) in {38, 43}


def test_depends_on_the_seed_and_on_nothing_else():
    chosen = [_core.mcts_choose("gomoku/9", [40], 50, seed) for seed in range(30)]
    again = [_core.mcts_choose("gomoku/9", [40], 50, seed) for seed in range(30)]
    assert chosen == again
    # Fewer playouts than moves: still no bias towards the first cells.
    assert len(set(chosen)) > 15


def play(name, playouts, seed):
    """Returns the result of ``mcts`` against random moves, or against ``mcts``."""
    rng = random.Random(seed)
    state = games.make(name).new_state()
    player, moves = seed % 2, []
    while not state.is_terminal():
        if state.to_play == player:
            moves.append(_core.mcts_choose(name, moves, playouts[0], seed))
        elif playouts[1]:
            moves.append(_core.mcts_choose(name, moves, playouts[1], seed))
        else:
            moves.append(rng.choice(state.legal_actions()))
        state.apply(moves[-1])
    return state.returns()[player]


def test_beats_random():
    # It wins over 95 % of these games; fewer than 30 of 40 has a chance below 1e-6.
    assert sum(play("connect4", (50, 0), seed) == 1.0 for seed in range(40)) >= 30


def test_more_playouts_are_stronger():
    total = sum(play("connect4", (400, 10), seed) for seed in range(30))
    assert total > 15


def test_refusals():
    with refused(_core.CoreError, "finished"):
        _core.mcts_choose("tictactoe", [0, 3, 1, 4, 2], 10)
    with refused(_core.CoreError, "legal"):
        _core.mcts_choose("tictactoe", [0, 0], 10)
