"""Responses to commands for board setup, play and time."""

import pytest

from tengen.errors import UsageError
from tengen.games.go_rules import write_vertex
from tengen.games.sgf import read_sgf
from tests.refusals import refused


def texts(answers):
    """Returns responses without their ``=``; asserts that none is an error."""
    assert all(answer.startswith("=") for answer in answers), answers
    return [answer[1:].strip() for answer in answers]


@pytest.mark.parametrize("task", ["go/5", "go/5/nosuicide/planes=minigo"])
def test_a_game_of_the_model_is_what_its_searches_choose(ask, make_player, task):
    player, moves = make_player(task), []
    vertices = texts(ask(*["genmove b", "genmove w"] * 3, task=task))
    for vertex in vertices:
        moves.append(player.choose(moves, simulations=8))
        assert vertex == write_vertex(moves[-1], 5, 5)


@pytest.mark.parametrize("komi", [0.0, 5.5, -3.0])
def test_komi_is_that_of_the_game_that_is_searched(ask, make_player, komi):
    player = make_player(f"go/5/komi={komi:g}")
    found = player.analyse([12], simulations=8)
    answers = texts(ask("play b C3", f"komi {komi}", "get_komi", "genmove w"))
    assert answers[2:] == [f"{komi:g}", write_vertex(found.best_action, 5, 5)]
    chance = float(ask(f"komi {komi}", "play b C3", "kata-raw-nn 0")[2].split()[4])
    assert chance == pytest.approx(0.5 + 0.5 * found.network_value_to_play, abs=1e-6)


@pytest.mark.parametrize(
    ("side", "lines"),
    [
        ("w", ["komi 20.5"]),
        ("b", ["komi -20.5", "play b C3"]),
        ("w", ["komi 20.5", "play w C3", "play w B2"]),
    ],
)
def test_nobody_wins_by_passing_to_a_side_that_is_left_out(ask, side, lines):
    answers = ask(*lines, f"genmove {side}", f"genmove {side}", simulations=64)
    assert "pass" not in texts(answers)[-2:]
    aloud = f"kata-genmove_analyze {side} 100 minmoves 30"
    assert " move pass " not in ask(*lines, aloud)[-1]
    # The response to a real pass may end the game.
    other = "bw".replace(side, "")
    assert " move pass " in ask(*lines, f"play {other} pass", aloud)[-1]
    only_pass = f"lz-analyze {side} allow {side} pass 1"
    assert ask(*lines, only_pass)[-1] == "? no move is allowed"


def test_the_longest_game_of_a_task_ends_no_session(ask):
    # Every second ply is an omitted pass by White.
    points = [f"{column}{row}" for row in range(1, 6) for column in "ABCDE"][:24]
    plays = [f"play b {point}" for point in points]
    rest = ["play w E5", "play b A1", "play b B1", "play w C3"]
    rest += ["kata-raw-nn 0", "showboard", "final_score", "genmove b"]
    for task in ("go/5", "go/5/plies=10"):
        answers = ask(*plays, *rest, task=task)
        assert answers[:28] == ["="] * 28
        assert answers[28].startswith("= symmetry 0")
        assert answers[29].startswith("= go/5/plies=1444, Black (X) to play\n")
        assert answers[30] == "= W+7.5"
        assert answers[31] != "= pass"


def test_free_handicap(ask):
    answers = ask("set_free_handicap A1 C3 E5", "genmove w", "printsgf", "clear_board")
    record = read_sgf(answers[2].removeprefix("= "))
    assert record.black_stones == (4, 12, 20)
    assert record.first_player == 1
    assert len(record.moves) == 1


def test_boards_and_rules_of_a_network_for_several(ask, make_player):
    player = make_player("go/5", mixed_sizes=True)
    answers = ask(
        "boardsize 4",
        "komi 0.5",
        "kata-set-rules chinese",
        "play b C3",
        "play w D1",
        "genmove b",
        "showboard",
        "printsgf",
        "final_score",
        "boardsize 6",
        "rectangular_boardsize 5 3",
        "play b E3",
        "genmove w",
        "kata-get-rules",
        "boardsize 5",
        "play b E5",
        "genmove w",
        mixed_sizes=True,
    )
    small = player.playing("go/4/simple/nosuicide/komi=0.5/plies=1444")
    move = write_vertex(small.choose([6, 15], simulations=8), 4, 4)
    assert answers[:6] == ["="] * 5 + [f"= {move}"]
    shown = answers[6].splitlines()
    assert shown[0] == "= go/4/simple/nosuicide/komi=0.5, White (O) to play"
    assert [len(line.split()[0]) for line in shown[1:]] == [1] * 5
    assert shown[5].split() == list("ABCD")
    assert shown[2][6] == "X"
    assert shown[4][8] == "O"
    assert read_sgf(answers[7].removeprefix("= ")).moves[:2] == (6, 15)
    assert answers[9] == "? unacceptable size"
    wide = player.playing("go/3x5/simple/nosuicide/komi=0.5/plies=1444")
    assert answers[12] == f"= {write_vertex(wide.choose([4], 8), 3, 5)}"
    assert '"SIMPLE"' in answers[13]
    usual = player.playing("go/5/simple/nosuicide/komi=0.5/plies=1444")
    assert answers[16] == f"= {write_vertex(usual.choose([4], 8), 5, 5)}"


@pytest.mark.parametrize("name", ["game.sgf", "a game.sgf", "a  b.sgf", "game 7", "7"])
def test_games_are_saved_and_loaded(ask, tmp_path, name):
    file = tmp_path / name
    plays = ["komi 5.5", "play b C3", "play w B2", "play b pass", f"printsgf {file}"]
    assert ask(*plays) == ["="] * 5
    assert [path.name for path in tmp_path.iterdir()] == [name]
    record = read_sgf(file.read_bytes())
    assert record.game == "go/5/komi=5.5"
    assert record.moves == (12, 16, 25)
    answers = ask(f"loadsgf {file}", "printsgf", f"loadsgf {file} 2", "printsgf")
    assert read_sgf(answers[1].removeprefix("= ")) == record
    assert read_sgf(answers[3].removeprefix("= ")).moves == (12,)


def test_files_as_servers_write_them(ask, tmp_path):
    file = tmp_path / "game.sgf"
    file.write_text("(;GM[1]SZ[9]KM[375]HA[2]RU[Chinese];W[ee];W[dd];B[])")
    answers = ask(f"loadsgf {file}", "get_komi", "showboard", "printsgf", task="go/9")
    assert answers[:2] == ["=", "= 7.5"]
    assert answers[2].startswith("= go/9/handicap=2, White (O) to play")
    assert answers[2].count("X") == 2
    record = read_sgf(answers[3].removeprefix("= "))
    assert record.moves == (40, 81, 30, 81)
    # As many of the file's moves as precede its fourth.
    file.write_text("(;GM[1]SZ[9]HA[2];B[bb];B[dd];W[cc];B[cb])")
    answers = ask(f"loadsgf {file} 4", "printsgf", task="go/9")
    assert read_sgf(answers[1].removeprefix("= ")).moves == (10, 81, 30, 20)


def test_what_was_passed_over_in_a_file_is_said(ask, tmp_path, capfd):
    file = tmp_path / "games.sgf"
    file.write_text("(;SZ[5]KM[x];B[aa])(;SZ[5];B[bb])")
    assert ask(f"loadsgf {file}") == ["="]
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        "tengen: loadsgf: only the first of several games is read",
        "tengen: loadsgf: KM (x) is not a komi; 7.5 is used",
    ]


LONG = "\ufeff(;SZ[5];B[aa]C[" + "x" * (1 << 20) + "])"


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"(;SZ[9])", "? unacceptable size"),
        (b"(;SZ[4]KM[0.5];B[aa];W[dd])", "? unacceptable size"),
        (b"hello", "? cannot load file: SGF text (hello)"),
        (b"(;GM[1]SZ[x]KM[0];W[ee])", "? cannot load file: SGF SZ (x)"),
        (b"(;SZ[5];B[aa];W[aa])", "? cannot load file: SGF move"),
        # Too long, rather than truncated.
        (LONG.encode("utf-32-le"), "? cannot load file: SGF text (4194305 bytes)"),
        (b"(;SZ[5]RU[NZ](;B[aa])(;B[bb]))", "="),
        (b"(;SZ[5]AB[aa][bb]AW[cc]PL[W];W[dd])", "="),
    ],
    ids=range(8),
)
def test_files_that_are_loaded_or_not(ask, tmp_path, content, answer):
    file = tmp_path / "game.sgf"
    file.write_bytes(content)
    answers = ask("play b E1", f"loadsgf {file}", "printsgf")
    assert answers[1].startswith(answer)
    is_loaded = answer == "="
    assert (read_sgf(answers[2].removeprefix("= ")).moves == (24,)) != is_loaded


def test_files_that_are_none(ask, tmp_path):
    missing = ask("loadsgf /no/such/file", "loadsgf", f"loadsgf {tmp_path}")
    assert missing[0].startswith("? cannot load file: ")
    assert missing[1] == "? syntax error"
    assert missing[2].startswith("? cannot load file: ")


def test_a_file_of_a_smaller_board(ask, tmp_path):
    file = tmp_path / "game.sgf"
    file.write_text("(;SZ[4]KM[0.5];B[aa];W[dd])")
    answers = ask(f"loadsgf {file}", "showboard", mixed_sizes=True)
    assert answers[1].startswith("= go/4/komi=0.5, Black (X) to play\n4 X")


def test_a_move_out_of_turn_and_a_move_that_is_not_played(ask, make_player):
    answers = texts(ask("play b C3", "reg_genmove b", "genmove b", "printsgf"))
    expected = make_player("go/5").choose([12, 25], simulations=8)
    assert answers[1] == answers[2] == write_vertex(expected, 5, 5)
    record = read_sgf(answers[3])
    assert record.moves[:2] == (12, 25)
    assert len(record.moves) == 3
    # A pass before a move of the same side is dropped, as is one out of turn.
    for plays, moves in (
        (["b A5", "w pass", "w C5"], (0, 2)),
        (["b A5", "b pass", "w C5"], (0, 2)),
        (["b A5", "w pass", "b pass", "w D5"], (0, 3)),
        (["b A5", "w pass", "b pass", "b D5"], (0, 25, 3)),
        (["w B4"], (25, 6)),
    ):
        answers = texts(ask(*[f"play {play}" for play in plays], "printsgf"))
        assert read_sgf(answers[-1]).moves == moves


def test_without_any_time_the_network_moves(ask, make_player):
    found = make_player("go/5").analyse([], 1)
    liked = max(found.actions, key=lambda row: row.prior).action
    answers = ask("time_settings 0 0 0", "genmove b", simulations=None)
    assert answers[1] == f"= {write_vertex(liked, 5, 5)}"


def test_stop_ends_the_search_of_a_move(converse):
    conversation = converse(simulations=1 << 24)
    assert len(conversation.ask("genmove b", "stop", "name")) == 3


def test_a_cleared_cache_changes_nothing(ask):
    answers = ask("reg_genmove b", "clear_cache", "reg_genmove b")
    assert answers[0] == answers[2]


def test_only_go_is_played(converse):
    with refused(UsageError, "connect4", "GTP"):
        converse("connect4")


MINIGO = "go/5/nosuicide/planes=minigo"


def test_a_session_keeps_the_planes_of_its_model(ask, make_player, tmp_path):
    """Also with another komi, in a loaded game, and on a smaller board."""
    file = tmp_path / "a.sgf"
    *_, loaded, moved, shown = ask(
        "komi 0.5",
        "play b A1",
        "play w A2",
        "play b B2",
        f"printsgf {file}",
        "clear_board",
        f"loadsgf {file}",
        "genmove w",
        "showboard",
        task=MINIGO,
    )
    assert loaded == "="
    player = make_player("go/5/nosuicide/komi=0.5/planes=minigo")
    best = player.choose([20, 15, 16], simulations=8)
    assert moved == f"= {write_vertex(best, 5, 5)}"
    assert "go/5/nosuicide/komi=0.5/planes=minigo, Black" in shown
    assert "planes" not in file.read_text()
    player = make_player(MINIGO, mixed_sizes=True)
    small = player.playing("go/4/nosuicide/plies=1444/planes=minigo")
    best = small.choose([], simulations=8)
    answers = ask("boardsize 4", "genmove b", task=MINIGO, mixed_sizes=True)
    assert answers == ["=", f"= {write_vertex(best, 4, 4)}"]
