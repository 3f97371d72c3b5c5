"""The session's reply to each command, and complete recorded dialogues."""

import re
from pathlib import Path

import pytest

from tengen import __version__, games
from tengen.errors import UsageError
from tengen.games.gomoku import read_cell, write_cell
from tests.refusals import refused

GOLDEN = Path(__file__).parents[3] / "golden" / "gomocup"


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda path: path.stem)
def test_dialogues_are_as_they_were(ask, path):
    """``>`` marks lines of the manager, ``<`` of the engine; line 1 names the game."""
    first, *lines = path.read_text().splitlines()
    said = [line[2:] for line in lines if line.startswith("> ")]
    heard = [line[2:] for line in lines if line.startswith("< ")]
    assert len(said) + len(heard) == len(lines)
    answers = ask(*said, task=first.removeprefix("# "))
    assert [line.replace(__version__, "VERSION") for line in answers] == heard


def test_a_game_of_the_model_is_what_its_searches_choose(ask, make_player):
    player, moves, said = make_player("gomoku/6"), [], ["START 6", "BEGIN"]
    for other in (0, 5, 12):
        moves += [player.choose(moves, simulations=8), other]
        said.append(f"TURN {write_cell(other, 6)}")
    moves.append(player.choose(moves, simulations=8))
    assert ask(*said)[1:] == [write_cell(move, 6) for move in moves[::2]]


def test_a_board_is_its_moves(ask, make_player):
    chosen = make_player("gomoku/6").choose([14, 15, 20, 21, 1], simulations=8)
    stones = ["2,2,2", "3,2,1", "2,3,2", "3,3,1", "1,0,2"]
    later = ["2,2,2", "2,3,2", "1,0,2", "3,2,1", "3,3,1"]
    for lines in (stones, later, [f" {line} ".replace(",", " , ") for line in stones]):
        assert ask("START 6", "BOARD", *lines, "DONE") == ["OK", write_cell(chosen, 6)]


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["BEGIN"], "ERROR board (none) is needed first; START 6 makes one"),
        (["RESTART"], "ERROR board (none) is needed"),
        (["TURN 1,1"], "ERROR board (none) is needed"),
        (["START 20"], "ERROR size (20) must be 6, the board of the model hash"),
        (["START"], "ERROR size () must be 6"),
        (["START 6x"], "ERROR size (6x) must be 6"),
        (["RECTSTART 6,7"], "ERROR size (6,7) must be 6"),
        (["RECTSTART 6"], "ERROR RECTSTART (6) must be WIDTH,HEIGHT"),
        (["START 6", "TURN 6,0"], "ERROR cell (6,0) must be X,Y, each 0 to 5"),
        (["START 6", "TURN -1,0"], "ERROR cell (-1,0) must be X,Y"),
        (["START 6", "TURN"], "ERROR cell () must be X,Y"),
        (["START 6", "BEGIN", "BEGIN"], "ERROR stones (1 own, 0 of the other side)"),
        (["START 6", "TAKEBACK 0,0"], "ERROR cell (0,0) must have a stone"),
        (["START 6", "BOARD", "1,1,1", "1,1,2", "DONE"], "ERROR cell (1,1) must be em"),
        (["START 6", "BOARD", "1,1,1", "DONE"], "ERROR stones (1 own, 0 of the other"),
        (["START 6", "BOARD", "1,1,3", "DONE"], "ERROR stone (1,1,3) must be X,Y,1"),
        (["START 6", "BOARD", "a b", "DONE"], "ERROR stone (A b) must be X,Y,1"),
        (["START 6", "BOARD", "1,1,1", "ABOUT"], "ERROR the stones must end with DONE"),
        (["START 6", "SWAP2BOARD", "1,1", "DONE"], "ERROR stones (1) must be 0, 3 or"),
        (["START 6", "SWAP2BOARD", *["1,1"] * 3, "DONE"], "ERROR stones of SWAP2BOARD"),
        (["DONE"], "UNKNOWN DONE without BOARD before it"),
        (["1,1,1"], "UNKNOWN command (1,1,1)"),
        (["YXSHOWFORBID"], "UNKNOWN command (YXSHOWFORBID)"),
    ],
)
def test_what_cannot_be_is_one_error(ask, lines, answer):
    answers = [line for line in ask(*lines) if not line.startswith('name="')]
    assert answers[-1].startswith(answer)
    assert sum(line.startswith(("ERROR", "UNKNOWN")) for line in answers) == 1


@pytest.mark.parametrize(
    "line",
    ["START 6 6", "START 6,6", "START  6 , 6", "RECTSTART 6 6", "RECTSTART 6, 6"],
)
def test_both_sides_of_a_board_may_be_sent(ask, line):
    assert ask(line, "RESTART") == ["OK", "OK"]
    assert ask(line.replace("6", "7", 1))[0].startswith("ERROR size (7,6) must be 6")


def test_info_inside_a_board_is_no_line_of_it(ask):
    plain = ask("START 6", "BOARD", "1,1,1", "2,2,2", "DONE")
    said = ["1,1,1", "INFO time_left 100000", "2,2,2", "info rule 0", "INFO", "DONE"]
    assert ask("START 6", "BOARD", *said) == plain
    # Its settings apply to the next move.
    answers = ask("START 6", "BOARD", "INFO rule 4", "DONE")
    assert answers[1].startswith("ERROR rule (4) is for renju")
    assert len(answers) == 2
    assert ask("START 6", "SWAP2BOARD", "INFO folder x", "DONE")[1].count(",") == 3


def test_yxboard_sets_a_board_without_a_move(ask):
    stones = ["1,1,1", "2,2,2"]
    moved = ask("START 6", "BOARD", *stones, "DONE")
    set_up = ["START 6", "YXBOARD", *stones, "DONE"]
    assert ask(*set_up) == ["OK"]
    assert ask(*set_up, "BEGIN") == moved
    answers = ask("START 6", "yxboard", *stones, "1,1,2", "DONE", "TAKEBACK 1,1")
    assert answers[1] == "ERROR cell (1,1) must be empty"
    assert answers[2].startswith("ERROR cell (1,1) must have a stone")
    assert ask("YXBOARD", "DONE") == [
        "ERROR board (none) is needed first; START 6 " + "makes one"
    ]


def test_a_taken_cell_leaves_the_board_as_it_was(ask):
    cell = ask("START 6", "BEGIN")[1]
    again = ask("START 6", "BEGIN", f"TURN {cell}", "TURN 9,9", "TURN 0,0")
    assert again[2] == f"ERROR cell ({cell}) must be empty"
    assert again[4] == ask("START 6", "BEGIN", "TURN 0,0")[2]


def test_moves_are_taken_back(ask):
    first = ask("START 6", "BEGIN", "TURN 0,0")
    lines = [f"TAKEBACK {first[2]}", "TAKEBACK 0,0", "TURN 5,0", "RESTART", "BEGIN"]
    answers = ask("START 6", "BEGIN", "TURN 0,0", *lines)
    assert answers[3:5] == ["OK", "OK"]
    assert answers[5] == ask("START 6", "BEGIN", "TURN 5,0")[2]
    assert answers[6:] == ["OK", first[1]]


def test_a_move_that_was_taken_back_is_made_again(ask):
    first = ask("START 6", "BEGIN")
    assert ask("START 6", "BEGIN", f"TAKEBACK {first[1]}", "BEGIN")[3] == first[1]


def test_a_finished_game_is_an_error(ask):
    row = [f"{x},0,2" for x in range(5)] + [f"{x},2,1" for x in range(4)]
    answers = ask("START 6", "BOARD", *row, "DONE", "BEGIN")
    assert answers[1] == "ERROR the game on this board is over; RESTART starts another"
    assert read_cell(answers[2], 6) is not None


@pytest.mark.parametrize(
    ("task", "rule", "problem"),
    [
        ("gomoku/6", 0, None),
        ("gomoku/6/exact", 1, None),
        ("gomoku/6", 1, "rule (1) must be 0; the model plays five or more win"),
        ("gomoku/6/exact", 0, "rule (0) must be 1; the model plays exactly five win"),
        ("gomoku/6", 2, "rule (2) is for continuous games, which is not supported"),
        ("gomoku/6", 4, "rule (4) is for renju, which is not supported"),
        ("gomoku/6/exact", 9, "rule (9) is for caro, which is not supported"),
        ("gomoku/6", 16, "rule (16) must be 0 or 1"),
    ],
)
def test_a_rule_of_others_is_an_error_of_what_comes_next(ask, task, rule, problem):
    answers = ask("START 6", f"INFO rule {rule}", "BEGIN", task=task)
    assert answers[0] == "OK"
    if problem is None:
        assert read_cell(answers[1], 6) is not None
    else:
        assert answers[1].startswith(f"ERROR {problem}")
        # START reports the error as well; a valid INFO rule clears it.
        known = int("exact" in task)
        lines = [f"INFO rule {rule}", "START 6", f"INFO rule {known}", "START 6"]
        assert [line[:5] for line in ask(*lines, task=task)] == ["ERROR", "OK"]


def test_info_has_no_answer_and_is_noted(converse):
    lines = ["INFO", "INFO evaluate 1,1", "INFO folder C:\\x", "INFO timeout_turn soon"]
    answers = converse().ask(*lines, "START 6")
    note = "MESSAGE INFO timeout_turn (soon) must be a whole number; it is ignored"
    assert answers == [note, "OK"]


def test_a_move_is_told_of(converse):
    answers = converse().ask("START 6", "BEGIN")
    assert re.fullmatch(
        r"MESSAGE value [+-]\d\.\d{3}, simulations \d, line (\d,\d ?)+", answers[1]
    )
    assert answers[1].split("line ")[1].split()[0] == answers[2]


def test_lines_are_read_as_managers_write_them(ask):
    assert ask("", "start 6", "\tRectStart  6,6 ", "reSTART") == ["OK"] * 3


def test_a_model_of_another_game_is_refused(make_player, converse):
    with refused(UsageError, "connect4", "Gomocup"):
        converse(task="connect4")


def test_cells_are_columns_and_rows():
    size = games.make("gomoku/9").width
    assert read_cell("8,1", size) == 17
    assert write_cell(17, size) == "8,1"
    for text in ("9,0", "0,9", "1", "1,2,3", "a,b", "", "1.0,2"):
        assert read_cell(text, size) is None
