import xml.etree.ElementTree as ElementTree

import pytest

from tengen import games
from tengen.games.drawing import Heat, board_svg, position_figure, read_board

SVG = "{http://www.w3.org/2000/svg}"


def after(task, *moves):
    state = games.make(task).new_state()
    for action in moves:
        state.apply(action)
    return str(state)


@pytest.mark.parametrize(
    ("task", "moves", "row", "cells", "below"),
    [
        ("tictactoe", (4, 0), 1, ".X.", "X to play"),
        ("connect4", (3, 3, 2), 4, "...O...", "O to play"),
        ("go/5x7", (0, 34), 4, "......O", "X to play"),
        ("gomoku/15", (14,), 0, "..............X", "O to play"),
    ],
)
def test_a_native_games_text_is_read(task, moves, row, cells, below):
    board = read_board(after(task, *moves))
    game = games.make(task)
    assert (len(board.rows), board.width) == (game.height, game.width)
    assert board.rows[row] == cells
    assert board.below == below
    assert len(board.column_labels) == game.width
    assert len(board.row_labels) == (0 if task == "connect4" else game.height)


def test_rows_that_are_shifted_stay_so():
    board = read_board("X . .\n . O .\n  . . .")
    assert [row[0] for row in board.places] == [0, 0.5, 1]


@pytest.mark.parametrize(
    "shown",
    ["", "a position", "X", "8wwww\n7....", "0 1 2\n", "\n".join(["X O"] * 60)],
)
def test_other_text_is_no_board_and_shown_as_it_is(shown):
    assert read_board(shown) is None
    assert "<pre" in position_figure(shown, "a title")


def drawn(task, *moves, **told):
    game = games.make(task)
    shown = after(task, *moves)
    figure = position_figure(
        shown,
        "the title",
        layout=game.policy_layout,
        last=moves[-1] if moves else None,
        **told,
    )
    return ElementTree.fromstring(figure)


def test_the_drawing_says_what_it_shows():
    figure = drawn("tictactoe", 4, 0)
    (svg,) = figure.iter(f"{SVG}svg")
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == "the title"
    assert svg.findtext(f"{SVG}title") == "the title"
    assert svg.findtext(f"{SVG}desc") == "O . .\n. X .\n. . .\nX to play"
    assert figure.findtext("figcaption") == "X to play (X, the first player, is black)"


def rings(figure):
    return [
        (float(one.get("cx", "")), float(one.get("cy", "")))
        for one in figure.iter(f"{SVG}circle")
        if one.get("stroke-width") == "4"
    ]


def test_the_last_stone_has_a_ring():
    assert len(rings(drawn("tictactoe", 4, 0))) == 1
    # Each stone lies above the previous one in the column; a pass has no ring.
    first, second = rings(drawn("connect4", 3)), rings(drawn("connect4", 3, 3))
    assert first[0][0] == second[0][0]
    assert first[0][1] - second[0][1] == 30
    assert rings(drawn("go/5", 3, 25)) == []


def test_heat_is_where_the_action_is():
    heats = {0: Heat(0.25, "a3, 12 visits"), 4: Heat(0.7, "on a stone")}
    figure = drawn("tictactoe", 4, heats=heats)
    (group,) = figure.iter(f"{SVG}g")
    assert group.findtext(f"{SVG}title") == "a3, 12 visits"
    assert group.findtext(f"{SVG}text") == "25"
    columns = drawn("connect4", heats={6: Heat(0.5, "6"), 9: Heat(0.5, "none")})
    (rect,) = (group.find(f"{SVG}rect") for group in columns.iter(f"{SVG}g"))
    assert (rect.get("x"), rect.get("y")) == ("188", "8")


def test_a_title_is_escaped():
    board = read_board(after("tictactoe"))
    assert board is not None
    svg = board_svg(board, "</title><script>", cells={(0, 0): Heat(1, "<script>")})
    assert "<script" not in svg
