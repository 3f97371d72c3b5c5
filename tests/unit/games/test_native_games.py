"""The native games compared with published counts and the slow implementation."""

import random

import numpy as np
import pytest
from slow_games import make_slow

from tengen import games
from tengen._core import CoreError
from tests.refusals import refused

# By game: the number of games to compare, some thousand plies in total.
PLAYOUTS = {
    "tictactoe": 800,
    "connect4": 200,
    "gomoku/5": 100,
    "gomoku/7/exact": 40,
    "gomoku/9": 30,
    "gomoku/15": 6,
    "gomoku/19/exact": 3,
    "go/3": 30,
    "go/4x6/simple": 8,
    "go/7/situational/nosuicide": 3,
}


def crowded_action(rng, slow, legal):
    """Returns a move near the last one most of the time, so that rows appear."""
    if slow.last is None or rng.random() < 0.3:
        return rng.choice(legal)
    row, column = slow.last
    near = [
        action
        for action in legal
        if (cell := slow.cell_of(action)) is not None
        and abs(cell[0] - row) <= 2
        and abs(cell[1] - column) <= 2
    ]
    return rng.choice(near or legal)


@pytest.mark.parametrize("name", PLAYOUTS)
def test_equals_the_slow_game(name):
    rng = random.Random(name)
    game = games.make(name)
    outcomes = set()
    for index in range(PLAYOUTS[name]):
        state, slow = game.new_state(), make_slow(name)
        crowded = index % 2 == 0
        while True:
            legal = slow.legal_actions()
            assert state.legal_actions() == legal
            assert state.is_terminal() == slow.is_terminal() == (not legal)
            assert (state.to_play, state.ply) == (slow.to_play, slow.ply)
            planes = state.observation()
            assert planes.dtype == np.float32
            wanted = slow.planes()  # of Go all except the ladders, see test_go_ladders
            np.testing.assert_array_equal(planes[: len(wanted)], wanted)
            symmetry = rng.randrange(game.num_symmetries)
            np.testing.assert_array_equal(
                state.observation(symmetry)[: len(wanted)],
                slow.symmetric(wanted, symmetry),
            )
            if not legal:
                break
            action = crowded_action(rng, slow, legal) if crowded else rng.choice(legal)
            state.apply(action)
            slow.apply(action)
        assert state.returns() == slow.returns()
        outcomes.add(state.returns())
    assert {(1, -1), (-1, 1)} <= outcomes or PLAYOUTS[name] < 40


@pytest.mark.parametrize("name", PLAYOUTS)
def test_transformed_games_have_transformed_planes(name):
    rng = random.Random(name)
    game = games.make(name)
    slow = make_slow(name)
    for symmetry in range(game.num_symmetries):
        every = range(game.num_actions)
        image = [game.transform_action(action, symmetry) for action in every]
        assert sorted(image) == list(every)
        if symmetry == 0:
            assert image == list(every)
        state, turned = game.new_state(), game.new_state()
        while not state.is_terminal():
            action = rng.choice(state.legal_actions())
            state.apply(action)
            turned.apply(image[action])
            np.testing.assert_array_equal(
                turned.observation(), slow.symmetric(state.observation(), symmetry)
            )
        assert turned.is_terminal()
        assert turned.returns() == state.returns()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        # Published counts: 255168 games of tic-tac-toe; by length 1440, 5328, 47952,
        # 72576 and 127872 for 5 to 9 plies.
        (
            "tictactoe",
            [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872],
        ),
        ("connect4", [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234]),
        ("gomoku/5", [1, 25, 600, 13800]),
    ],
)
def test_perft_equals_published_counts(name, counts):
    game = games.make(name)
    assert [game.perft(depth) for depth in range(len(counts))] == counts


@pytest.mark.parametrize(
    "name", ["tictactoe", "connect4", "gomoku/5", "gomoku/9", "go/3", "go/5/simple"]
)
def test_equal_keys_mean_equal_planes(name):
    rng = random.Random(name)
    game = games.make(name)
    planes_of_key = {}
    key_of_planes = {}
    num_positions = 0
    for _ in range(300):
        state = game.new_state()
        # Few columns and cells, so that different games reach the same positions.
        allowed = set(rng.sample(range(game.num_actions), min(game.num_actions, 5)))
        while not state.is_terminal():
            num_positions += 1
            planes = state.observation().tobytes()
            assert planes_of_key.setdefault(state.key(), planes) == planes
            assert key_of_planes.setdefault(planes, state.key()) == state.key()
            legal = state.legal_actions()
            state.apply(rng.choice([a for a in legal if a in allowed] or legal))
    assert len(planes_of_key) < num_positions  # some were reached more than once


def test_keys_differ_between_sizes_and_rules():
    names = [f"gomoku/{size}" for size in range(5, 20)]
    rules = ["", "/situational", "/simple", "/nosuicide", "/komi=6.5", "/komi=-7.5"]
    boards = ["2", "2x3", "3x2", "9", "9x13", "13x9", "19"]
    names += [f"go/{board}{rule}" for board in boards for rule in rules]
    assert len({games.make(name).new_state().key() for name in names}) == len(names)


def test_a_transposition_has_one_key_unless_the_last_move_differs():
    def key(name, moves):
        state = games.make(name).new_state()
        for move in moves:
            state.apply(move)
        return state.key()

    assert key("tictactoe", [0, 4, 8]) == key("tictactoe", [8, 4, 0])
    assert key("connect4", [0, 3, 6]) == key("connect4", [6, 3, 0])
    assert key("gomoku/9", [0, 40, 8, 20]) == key("gomoku/9", [8, 40, 0, 20])
    assert key("gomoku/9", [0, 40, 8]) != key("gomoku/9", [8, 40, 0])


@pytest.mark.parametrize("name", ["tictactoe", "connect4", "gomoku/5"])
def test_clone_is_independent(name):
    state = games.make(name).new_state()
    state.apply(1)
    copy = state.clone()
    copy.apply(2)
    assert (state.ply, copy.ply) == (1, 2)
    assert state.key() != copy.key()
    fresh = state.observation()
    fresh[:] = 7
    assert state.observation().max() == 1


def test_text_boards():
    state = games.make("connect4").new_state()
    for column in (3, 3, 2, 4):
        state.apply(column)
    assert str(state).splitlines() == [
        ". . . . . . .",
        ". . . . . . .",
        ". . . . . . .",
        ". . . . . . .",
        ". . . O . . .",
        ". . X X O . .",
        "0 1 2 3 4 5 6",
        "X to play",
    ]
    state = games.make("tictactoe").new_state()
    for cell in (0, 1, 3, 4, 6):
        state.apply(cell)
    assert str(state).splitlines() == [
        "3 X O .",
        "2 X O .",
        "1 X . .",
        "  a b c",
        "X wins",
    ]
    lines = str(games.make("gomoku/10").new_state()).splitlines()
    assert lines[0] == "10" + " ." * 10
    assert lines[9] == " 1" + " ." * 10
    assert lines[10] == "   a b c d e f g h i j"


@pytest.mark.parametrize(
    ("name", "moves", "action", "rule"),
    [
        ("tictactoe", [4], 4, "action (4) must be legal"),
        ("tictactoe", [], 9, "action (9) must be legal"),
        ("tictactoe", [], -1, "action (-1) must be legal"),
        ("connect4", [0] * 6, 0, "action (0) must be legal"),
        ("connect4", [], 7, "action (7) must be legal"),
        ("gomoku/15", [], 225, "action (225) must be legal"),
        ("go/9", [40], 40, "action (40) must be legal"),
        ("go/9", [], 82, "action (82) must be legal"),
        ("go/9", [81, 81], 0, "action (0) cannot be played in a finished"),
        ("tictactoe", [0, 3, 1, 4, 2], 5, "action (5) cannot be played in a finished"),
    ],
)
def test_illegal_actions_are_refused(name, moves, action, rule):
    state = games.make(name).new_state()
    for move in moves:
        state.apply(move)
    key = state.key()
    with pytest.raises(CoreError) as refused:
        state.apply(action)
    assert str(refused.value).startswith(rule)
    assert "; " in str(refused.value)
    assert state.key() == key  # the state is unchanged


def test_questions_without_an_answer_are_refused():
    game = games.make("connect4")
    with refused(CoreError, "returns"):
        game.new_state().returns()
    with refused(CoreError, "symmetry (2)"):
        game.new_state().observation(2)
    with refused(CoreError, "action (7)"):
        game.transform_action(7, 0)


@pytest.mark.parametrize(
    ("name", "shape", "num_actions", "layout", "num_symmetries"),
    [
        ("tictactoe", (3, 3, 3), 9, "cells", 8),
        ("connect4", (4, 6, 7), 7, "columns", 2),
        ("gomoku/15", (5, 15, 15), 225, "cells", 8),
        ("go/9", (20, 9, 9), 82, "cells_and_pass", 8),
        ("go/9x13/plies=117", (20, 9, 13), 118, "cells_and_pass", 4),
        ("go/5x7/planes=minigo", (14, 5, 7), 36, "cells_and_pass", 4),
    ],
)
def test_declarations(name, shape, num_actions, layout, num_symmetries):
    game = games.make(name)
    assert game.name == name
    assert (game.num_planes, game.height, game.width) == shape
    assert game.new_state().observation().shape == shape
    assert (game.num_actions, game.policy_layout) == (num_actions, layout)
    assert game.num_symmetries == num_symmetries
    twice = 1 if "plies" in name or not name.startswith("go/") else 2
    assert game.max_plies == twice * shape[1] * shape[2]
