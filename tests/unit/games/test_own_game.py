"""Games written in Python: the worked example, the adapter, and the check."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from tengen import games
from tengen._core import CoreError
from tengen.errors import UsageError
from tests.refusals import refused

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def hex_game(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield games.make("own_game:Hex")
    sys.modules.pop("own_game", None)


def play(state, moves):
    for move in moves:
        state.apply(move)
    return state


def test_hex_plays_by_its_rules(hex_game):
    # X plays straight down the first column; O plays in the last.
    won = play(hex_game.new_state(), [0, 4, 5, 9, 10, 14, 15, 19, 20])
    assert won.is_terminal()
    assert won.returns() == (1.0, -1.0)
    assert won.legal_actions() == []
    assert str(won).splitlines()[0] == "X . . . O"
    # O joins left and right along the second row.
    lost = play(hex_game.new_state(), [0, 5, 1, 6, 2, 7, 24, 8, 23, 9])
    assert lost.returns() == (-1.0, 1.0)


def test_the_adapter_has_the_face_of_a_native_game(hex_game):
    assert hex_game.name == "own_game:Hex"
    assert (hex_game.num_planes, hex_game.height, hex_game.width) == (4, 5, 5)
    assert (hex_game.num_actions, hex_game.max_plies) == (25, 25)
    assert (hex_game.policy_layout, hex_game.num_symmetries) == ("cells", 2)
    state = hex_game.new_state()
    assert (state.to_play, state.ply) == (0, 0)
    copy = state.clone()
    copy.apply(3)
    assert (state.ply, copy.ply, copy.to_play) == (0, 1, 1)
    assert state.key() != copy.key()
    assert copy.key() == play(hex_game.new_state(), [3]).key()
    assert all(0 <= half < 1 << 64 for half in state.key())
    planes = copy.observation(1)
    assert planes.dtype == np.float32
    assert planes.flags.c_contiguous
    assert planes[2, 4, 1] == 1  # cell 3 after the half turn
    planes[:] = 9
    assert copy.observation().max() == 1
    native = games.make("connect4")
    public = {name for name in dir(native) if not name.startswith("_")} - {"perft"}
    assert all(hasattr(hex_game, name) for name in public)
    public = {name for name in dir(native.new_state()) if not name.startswith("_")}
    assert all(hasattr(state, name) for name in public)


def test_the_adapter_refuses_what_native_games_refuse(hex_game):
    state = play(hex_game.new_state(), [7])
    with refused(CoreError, "action (7)"):
        state.apply(7)
    with refused(CoreError, "returns"):
        state.returns()
    with refused(CoreError, "symmetry (2)"):
        state.observation(2)
    finished = play(hex_game.new_state(), [0, 4, 5, 9, 10, 14, 15, 19, 20])
    with refused(CoreError, "action (1)"):
        finished.apply(1)


class Nim:
    """Seven stones; take one or two; taking the last wins. A base for broken games."""

    num_actions = 2
    max_plies = 7

    def initial_state(self):
        return (7, 0)

    def to_play(self, state):
        return state[1]

    def legal_actions(self, state):
        return [0, 1] if state[0] >= 2 else [0]

    def apply(self, state, action):
        return (state[0] - action - 1, 1 - state[1])

    def is_terminal(self, state):
        return state[0] == 0

    def returns(self, state):
        return (-1, 1) if state[1] == 0 else (1, -1)

    def observation(self, state):
        planes = np.ones((2, 1, 7), np.float32)
        planes[1, 0, state[0] :] = 0
        return planes

    def to_string(self, state):
        return "|" * state[0]


def test_a_good_game_passes():
    games.check_own_game(Nim(), num_games=50)


class Mutating(Nim):
    def initial_state(self):
        return [7, 0]

    def apply(self, state, action):
        state[0] -= action + 1
        state[1] = 1 - state[1]
        return state


class Moody(Nim):
    def __init__(self):
        self.asked = 0

    def observation(self, state):
        self.asked += 1
        return super().observation(state) + np.float32(self.asked)


class Mirrored(Nim):
    """Declares a symmetry that the rules do not have."""

    num_symmetries = 2

    def transform_action(self, action, symmetry):
        return action if symmetry == 0 else 1 - action

    def transform_planes(self, planes, symmetry):
        return planes


class Negating(Mirrored):
    """A transform that is not a symmetry of the board."""

    def transform_planes(self, planes, symmetry):
        return planes if symmetry == 0 else 1 - planes


def broken(**members):
    return type("Nim", (Nim,), members)()


def returning(value):
    return lambda *_: value


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (broken(apply=None), "Nim.apply (missing) must be a method"),
        (broken(num_actions=0), "Nim.num_actions (0) must be an integer"),
        (broken(num_actions=True), "Nim.num_actions (True) must be an integer"),
        (broken(num_actions=65536), "Nim.num_actions (65536) must be an integer"),
        (broken(max_plies="7"), "Nim.max_plies ('7') must be an integer"),
        (broken(max_plies=3), "Nim.is_terminal (False) must be True"),
        (broken(policy_layout="grid"), "Nim.policy_layout ('grid') must be one of"),
        (broken(policy_layout="columns"), "Nim.policy_layout ('columns') needs num"),
        (broken(to_play=returning(1.0)), "Nim.to_play (1.0) must be 0 or 1"),
        (broken(is_terminal=returning(0)), "Nim.is_terminal (0) must be a bool"),
        (broken(returns=returning((0.5, -0.5))), "must be (1, -1), (-1, 1) or (0, 0)"),
        (broken(observation=returning(np.ones(3, np.float32))), "must be [C, H, W]"),
        (broken(observation=returning(np.ones((1, 2, 3)))), "must be float32"),
        (
            broken(observation=returning(np.full((1, 1, 1), np.nan, np.float32))),
            "must be finite",
        ),
        (
            broken(observation=lambda _, s: np.ones((1, 1, 1 + s[0]), np.float32)),
            "must be (1, 1, 8), as in the initial state",
        ),
        (broken(to_string=returning(None)), "Nim.to_string (None) must be a str"),
        (broken(num_symmetries=2), "Nim.transform_action (missing) must be a method"),
        (Mutating(), "must not modify its argument"),
        (Moody(), "Moody.observation (asked twice) must depend only on the state"),
        (Mirrored(), "(symmetry 1) must"),
        (Negating(), "transform_planes (symmetry 1) must only permute the entries"),
    ],
)
def test_a_broken_game_is_told_which_method_and_what(game, message):
    with pytest.raises(UsageError) as refused:
        games.check_own_game(game)
    assert message in str(refused.value)
    assert "; " in str(refused.value)
    assert "\n" not in str(refused.value)


def test_square_symmetries_number_as_the_core_does():
    game = games.make("gomoku/5")
    state = play(game.new_state(), [1, 7, 13, 24])
    for symmetry in range(8):
        for action in range(25):
            moved = games.transform_cell(action, 5, symmetry)
            assert moved == game.transform_action(action, symmetry)
        np.testing.assert_array_equal(
            games.transform_planes(state.observation(), symmetry),
            state.observation(symmetry),
        )


def test_stone_planes():
    planes = games.stone_planes([[0, 1], [2, 1]], to_play=1)
    assert planes.dtype == np.float32
    np.testing.assert_array_equal(planes[0], [[1, 1], [1, 1]])
    np.testing.assert_array_equal(planes[1], [[0, 0], [1, 0]])
    np.testing.assert_array_equal(planes[2], [[0, 1], [0, 1]])
    np.testing.assert_array_equal(planes[3], [[0, 0], [0, 0]])


def test_random_games_of_the_check_are_the_same_every_time(monkeypatch):
    seen = []

    class Spy(Nim):
        def apply(self, state, action):
            seen.append(action)
            return super().apply(state, action)

    games.check_own_game(Spy(), seed=1)
    first, seen[:] = list(seen), []
    random.seed(5)
    games.check_own_game(Spy(), seed=1)
    assert seen == first
    seen.clear()
    games.check_own_game(Spy(), seed=2)
    assert seen != first
