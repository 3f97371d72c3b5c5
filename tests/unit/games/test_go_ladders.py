"""Ladders compared with a move-by-move reference on text boards."""

import random

import numpy as np
import pytest
from slow_go import SlowGo, choose, rows_of
from slow_ladders import ladders

from tengen import _core

# By board: the number of games, and the number of plies between compared positions.
SHORT = {"3": (20, 2), "5": (30, 3), "3x6": (20, 3), "7": (16, 7), "9": (8, 12)}
LONGEST = ("5", "7", "9", "6x8", "13")
LONG = {
    "2": (50, 1),
    "3": (100, 1),
    "4x3": (100, 1),
    "5": (100, 1),
    "6x8": (40, 2),
    "7": (40, 2),
    "9": (20, 3),
    "13": (3, 5),
    "19": (1, 9),
}


def compare_games(name, num_games, step):
    """Returns the numbers of positions with caught chains, and with ladder moves."""
    num_laddered = num_moves = 0
    for index in range(num_games):
        rng = random.Random(f"ladders {name} {index}")
        slow = SlowGo(name)
        shown = rng.randrange(step)
        while legal := slow.legal_actions():
            if slow.ply % step == shown:
                found = _core.GoPosition(name, slow.moves).ladders()
                laddered, moves = (set(np.flatnonzero(plane)) for plane in found)
                wanted = ladders(slow)
                board = rows_of(slow.text(), slow.width)
                assert (laddered, moves) == wanted, (board, slow.moves)
                num_laddered += bool(laddered)
                num_moves += bool(moves)
            slow.apply(choose(rng, slow, legal, index % 3))
    return num_laddered, num_moves


@pytest.mark.parametrize("board", SHORT)
def test_equals_the_slow_reading(board):
    num_games, step = SHORT[board]
    assert min(compare_games(f"go/{board}", num_games, step)) > 0


def test_the_rule_of_the_game_does_not_matter():
    for rule in ("/situational", "/simple/nosuicide"):
        assert min(compare_games(f"go/5{rule}", 8, 3)) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "board",
    [
        pytest.param(board, marks=[pytest.mark.soak] if board in LONGEST else [])
        for board in LONG
    ],
)
def test_equals_the_slow_reading_in_many_games(board):
    num_games, step = LONG[board]
    seen = [
        compare_games(f"go/{board}{rule}", num_games, step)
        for rule in ("", "/situational", "/simple", "/nosuicide")
    ]
    assert min(np.sum(seen, axis=0)) > 0


def test_planes_are_those_of_the_board():
    laddered, moves = _core.GoPosition("go/4x7", []).ladders()
    for plane in (laddered, moves):
        assert plane.shape == (4, 7)
        assert plane.dtype == np.bool_
        assert not plane.any()
