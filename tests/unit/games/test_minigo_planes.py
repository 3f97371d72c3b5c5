"""The planes of ``/planes=minigo`` compared with a flood-fill reference."""

import random

import numpy as np
import pytest
from slow_go import SlowGo, choose
from slow_minigo_planes import (
    captures,
    in_reach,
    liberties_of,
    minigo_planes,
    planes_of,
)

from tengen import _core, games

PART = "/planes=minigo"
# By board: the number of games, and the maximum number of plies.
SHORT = {
    "2x3": (20, 60),
    "5": (12, 120),
    "7": (4, 98),
    "9x13": (2, 234),
    "19": (2, 250),
}
LONG = {
    "2": (40, 60),
    "3x4": (40, 120),
    "5": (60, 120),
    "7": (20, 98),
    "9": (6, 162),
    "13x9": (4, 234),
    "19": (2, 722),
}


def moved(planes, game, symmetry):
    """Returns planes transformed by a symmetry of the board, cell by cell."""
    cells = planes.reshape(len(planes), -1)
    found = np.zeros_like(cells)
    images = [game.transform_action(c, symmetry) for c in range(cells.shape[1])]
    found[:, images] = cells
    return found.reshape(planes.shape)


def name_of(board, rule, num_plies):
    rules = _core.parse_go_name(f"go/{board}{rule}{PART}")
    rules.max_plies = num_plies
    return rules.name


def compare_games(name, num_games):
    """Plays games and compares at every ply; returns the kinds of events seen."""
    game, seen = games.make(name), set()
    for index in range(num_games):
        rng = random.Random(f"minigo {name} {index}")
        state, slow = game.new_state(), SlowGo(name)
        while True:
            wanted = planes_of(slow)
            np.testing.assert_array_equal(state.observation(), wanted, str(slow.moves))
            symmetry = 1 + slow.ply % (game.num_symmetries - 1)
            if slow.ply % 3 == index % 3:
                turned = state.observation(symmetry)
                np.testing.assert_array_equal(turned, moved(wanted, game, symmetry))
            note(slow, seen)
            if state.is_terminal():
                break
            # test_go checks that these are the legal moves.
            action = choose(rng, slow, state.legal_actions(), 2 - index % 3)
            state.apply(action)
            slow.apply(action)
        np.testing.assert_array_equal(wanted, minigo_planes(name, slow.moves))
    return seen


def note(slow, seen):
    liberties = liberties_of(slow.text(), slow.width)
    reached, taking = in_reach(slow, liberties), captures(slow, liberties)
    if taking:
        seen.add("captures")
    if set(reached) - set(taking) and not slow.is_terminal():
        banned = set(reached) - set(taking) - {slow.ko_point()}
        seen.add("superko forbids" if banned else "ko forbids")
    if len(slow.captured) > 1:
        seen.add("several captured")
    if slow.moves and slow.moves[-1] == slow.num_actions() - 1:
        seen.add("a pass")


EVERYTHING = {"captures", "ko forbids", "superko forbids", "several captured", "a pass"}


def test_equals_the_slow_planes():
    seen = set()
    for board, (num_games, num_plies) in SHORT.items():
        for rule in ("/nosuicide", ""):
            name = name_of(board, rule, num_plies)
            shown = compare_games(name, num_games // 2)
            assert {"captures", "a pass"} <= shown, name
            seen |= shown
    assert seen == EVERYTHING


@pytest.mark.slow
def test_equals_the_slow_planes_in_many_games():
    seen = set()
    for board, (num_games, num_plies) in LONG.items():
        seen |= compare_games(name_of(board, "/nosuicide", num_plies), num_games)
    assert seen == EVERYTHING


def test_the_boards_of_a_handicap_game():
    name = f"go/9/nosuicide/handicap=4/plies=60{PART}"
    start = games.make(name).new_state().observation()
    assert start[2].sum() == 4  # White is to move
    assert not start[3:10].any()
    compare_games(name, 1)


def test_keys_are_equal_where_planes_and_moves_are():
    """Uses small boards, where positions are reached by many move orders."""
    for board in ("2", "2x3", "3"):
        game = games.make(f"go/{board}{PART}")
        by_key, by_planes = {}, {}
        for index in range(250):
            rng = random.Random(f"keys {board} {index}")
            state = game.new_state()
            for _ in range(12):
                legal = state.legal_actions()
                shown = (state.observation().tobytes(), tuple(legal))
                assert by_key.setdefault(state.key(), shown) == shown
                assert by_planes.setdefault(shown, state.key()) == state.key()
                if not legal:
                    break
                state.apply(rng.choice(legal))
        assert len(by_key) > 100


def test_a_smaller_board_lies_in_the_corner_of_the_planes():
    large = games.make(f"go/7{PART}")
    for board in ("5", "3x6"):
        name = f"go/{board}/nosuicide{PART}"
        small = games.make(name)
        rng = random.Random(board)
        state, other = large.new_state(name), small.new_state()
        for _ in range(40):
            for symmetry in range(small.num_symmetries):
                planes = state.observation(symmetry)
                inside = planes[:, : small.height, : small.width]
                np.testing.assert_array_equal(inside, other.observation(symmetry))
                assert planes.sum() == inside.sum()
            action = rng.choice(other.legal_actions())
            row, column = divmod(action, small.width)
            is_pass = action == small.num_actions - 1
            state.apply(large.num_actions - 1 if is_pass else 7 * row + column)
            other.apply(action)
            if other.is_terminal():
                break


@pytest.mark.parametrize(
    ("name", "variant"),
    [(f"go/9{PART}", "go/7"), ("go/9", f"go/7{PART}"), (f"go/9{PART}", "go/9")],
)
def test_a_variant_has_the_planes_of_its_game(name, variant):
    with pytest.raises(_core.CoreError) as refused:
        games.make(name).new_state(variant)
    assert str(refused.value) == (
        f"variant ({variant}) must have the planes of {name}; end its name in the "
        f"same way"
    )
