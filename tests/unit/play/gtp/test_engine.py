"""What a session answers to the commands that set boards up, play and keep time."""

import pytest

from tengen.errors import UsageError
from tengen.games.sgf import read_sgf
from tengen.games.vertices import write_vertex


def texts(answers):
    """Answers that are no errors, without their =."""
    assert all(answer.startswith("=") for answer in answers), answers
    return [answer[1:].strip() for answer in answers]


def test_a_game_of_the_model_is_what_its_searches_choose(ask, make_player):
    player, moves = make_player("go/5"), []
    vertices = texts(ask(*[f"genmove {'bw'[ply % 2]}" for ply in range(6)]))
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
    # The answer to a pass that was one may end the game.
    other = "bw".replace(side, "")
    assert " move pass " in ask(*lines, f"play {other} pass", aloud)[-1]
    only_pass = f"lz-analyze {side} allow {side} pass 1"
    assert ask(*lines, only_pass)[-1] == "? no move is allowed"


def test_the_longest_game_of_a_task_ends_no_session(ask):
    # Every second ply is a pass of White, who is left out.
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


def test_games_are_saved_and_loaded(ask, tmp_path):
    file = tmp_path / "game.sgf"
    plays = ["komi 5.5", "play b C3", "play w B2", "play b pass", f"printsgf {file}"]
    assert ask(*plays) == ["="] * 5
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
    # As many of the file's moves as come before its fourth.
    file.write_text("(;GM[1]SZ[9]HA[2];B[bb];B[dd];W[cc];B[cb])")
    answers = ask(f"loadsgf {file} 4", "printsgf", task="go/9")
    assert read_sgf(answers[1].removeprefix("= ")).moves == (10, 81, 30, 20)
    file.write_text("(;GM[1]SZ[x]KM[0];W[ee])")
    refused = ask(f"loadsgf {file}", task="go/9")[0]
    assert refused.startswith("? cannot load file: SGF SZ (x) must be")


@pytest.mark.parametrize("name", ["a game.sgf", "a  b.sgf", "game 7", "7"])
def test_a_path_with_a_blank(ask, tmp_path, name):
    file = tmp_path / name
    played = ask("play b C3", "play w B2", f"printsgf {file}")
    assert played == ["=", "=", "="]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    answers = ask(f"loadsgf {file}", "printsgf", f"loadsgf {file} 2", "printsgf")
    assert read_sgf(answers[1].removeprefix("= ")).moves == (12, 16)
    assert read_sgf(answers[3].removeprefix("= ")).moves == (12,)


def test_what_was_passed_over_in_a_file_is_said(ask, tmp_path, capfd):
    file = tmp_path / "games.sgf"
    file.write_text("(;SZ[5]KM[x];B[aa])(;SZ[5];B[bb])")
    assert ask(f"loadsgf {file}") == ["="]
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        "tengen: loadsgf: more games follow; this is the first",
        "tengen: loadsgf: KM (x) is no komi; 7.5 is taken",
    ]


def test_a_file_that_is_too_long_is_not_one_whose_end_is_missing(ask, tmp_path):
    file = tmp_path / "long.sgf"
    text = "\ufeff(;SZ[5];B[aa]C[" + "x" * (1 << 20) + "])"
    file.write_bytes(text.encode("utf-32-le"))
    refused = "? cannot load file: SGF text (4194305 bytes) must be at most"
    assert ask(f"loadsgf {file}")[0].startswith(refused)


def test_a_file_of_a_smaller_board(ask, tmp_path):
    file = tmp_path / "game.sgf"
    file.write_text("(;SZ[4]KM[0.5];B[aa];W[dd])")
    asked = (f"loadsgf {file}", "showboard")
    assert ask(*asked)[0] == "? unacceptable size"
    answers = ask(*asked, mixed_sizes=True)
    assert answers[1].startswith("= go/4/komi=0.5, Black (X) to play\n4 X")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(;SZ[9])", "? unacceptable size"),
        ("hello", "? cannot load file: SGF text (hello)"),
        ("(;SZ[5];B[aa];W[aa])", "? cannot load file: SGF move"),
        ("(;SZ[5]RU[NZ](;B[aa])(;B[bb]))", "="),
        ("(;SZ[5]AB[aa][bb]AW[cc]PL[W];W[dd])", "="),
    ],
)
def test_files_that_are_loaded_or_not(ask, tmp_path, text, answer):
    file = tmp_path / "game.sgf"
    file.write_text(text)
    answers = ask("play b E1", f"loadsgf {file}", "printsgf")
    assert answers[1].startswith(answer)
    is_loaded = answer == "="
    assert (read_sgf(answers[2].removeprefix("= ")).moves == (24,)) != is_loaded
    missing = ask("loadsgf /no/such/file", "loadsgf", f"loadsgf {tmp_path}")
    assert missing[0].startswith("? cannot load file: ")
    assert missing[1] == "? syntax error"
    assert missing[2].startswith("? cannot load file: ")


def test_a_move_out_of_turn_and_a_move_that_is_not_played(ask, make_player):
    answers = texts(ask("play b C3", "reg_genmove b", "genmove b", "printsgf"))
    expected = make_player("go/5").choose([12, 25], simulations=8)
    assert answers[1] == answers[2] == write_vertex(expected, 5, 5)
    record = read_sgf(answers[3])
    assert record.moves[:2] == (12, 25)
    assert len(record.moves) == 3


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
    with pytest.raises(UsageError, match="plays connect4, which GTP does not"):
        converse("connect4")
