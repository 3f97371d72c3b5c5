import re

import pytest

from tengen import games
from tengen.play.board import make_board_text


def drawn(task, moves, colours=False):
    game = games.make(task)
    state = game.new_state()
    for move in moves:
        state.apply(move)
    last = moves[-1] if moves else None
    return make_board_text(game).draw(state, last, colours)


def test_a_square_board():
    assert drawn("tictactoe", [0, 4, 8]) == "\n".join(
        [
            "3 X . . ",
            "2 . O . ",
            "1 . .(X)",
            "  a b c",
        ]
    )


def test_a_board_of_two_figures():
    text = drawn("gomoku/15", [0, 15 * 14 + 14])
    lines = text.splitlines()
    assert lines[0] == "15 X" + " ." * 14 + " "
    assert lines[14] == " 1" + " ." * 14 + "(O)"
    assert lines[15] == "  " + "".join(f" {c}" for c in "abcdefghijklmno")


def test_a_board_of_columns():
    assert drawn("connect4", [3, 3, 0]) == "\n".join(
        [
            " . . . . . . . ",
            " . . . . . . . ",
            " . . . . . . . ",
            " . . . . . . . ",
            " . . . O . . . ",
            "(X). . X . . . ",
            " 0 1 2 3 4 5 6",
        ]
    )
    assert "(O)" in drawn("connect4", [3, 3]).splitlines()[4]


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/9"])
def test_colours_change_nothing_else(task):
    plain = drawn(task, [0, 1, 2])
    coloured = drawn(task, [0, 1, 2], colours=True)
    assert coloured != plain
    assert re.sub(r"\033\[[0-9;]*m", "", coloured) == plain
    assert plain.isascii()


@pytest.mark.parametrize(
    "task", ["tictactoe", "connect4", "gomoku/9", "gomoku/19", "go/19", "go/3x14"]
)
def test_every_action_is_read_as_it_is_written(task):
    game = games.make(task)
    board = make_board_text(game)
    for action in range(game.num_actions):
        assert board.read(board.write(action)) == action


# Texts parsed as the centre of a 9x9 board, column e and the fifth row from the bottom,
# and texts that name no cell or column.
READ = {
    ("gomoku/9", 40): ["e5", "E5", " e 5 ", "e,5", "5 5", "5,5", "05 5"],
    ("gomoku/9", None): [
        "",
        "e",
        "5",
        "z5",
        "e0",
        "e10",
        "0 5",
        "10 1",
        "e5e5",
        "-1 1",
    ],
    ("connect4", None): ["", "7", "-1", "a1", "1 1", "1.5", "\u0663", "hello"],
}


@pytest.mark.parametrize(("task", "action"), READ)
def test_forms_of_a_cell(task, action):
    board = make_board_text(games.make(task))
    for text in READ[task, action]:
        assert board.read(text) == action, text


def test_go_has_no_column_i():
    board = make_board_text(games.make("go/9x13"))
    written = [board.write(action) for action in (7, 8, 12, 116, 117)]
    assert written == ["H9", "J9", "N9", "N1", "pass"]
    assert board.read("j9") == board.read("J9") == board.read("9 9") == 8
    assert board.read("i9") is None
    assert board.read("o9") is None
    assert 'a letter and a number, "G5" (or "7 5"), or pass' in board.move_help
    assert drawn("go/2x9", [8, 18]) == "\n".join(
        ["2 . . . . . . . . X ", "1 . . . . . . . . . ", "  A B C D E F G H J"]
    )


class PassGame:
    """The minimum that a board of cells with a pass needs."""

    name = "passing"
    policy_layout = "cells_and_pass"
    height = width = 3
    num_actions = 10
    num_planes = 4


def test_a_pass():
    board = make_board_text(PassGame())
    assert board.write(9) == "pass"
    assert board.read("Pass") == 9
    assert "or pass" in board.move_help


class OddGame:
    """A game whose actions are not positions on its board."""

    name = "odd"
    policy_layout = "flat"
    height, width, num_planes, num_actions = 1, 5, 4, 12


def test_other_games_show_their_own_text():
    board = make_board_text(OddGame())
    assert board.draw("my text", None, False) == "my text"
    assert board.write(11) == "11"
    assert board.read("11") == 11
    assert board.read("12") is None
    assert "0 to 11" in board.move_help
