"""The conditions under which a session resigns."""

from tengen.play.gtp.engine import Resigning


def resigned(resigning, values):
    """Returns whether Black resigns at each of its moves, two plies apart."""
    return [
        resigning.resigns(0, range(2 * move), value)
        for move, value in enumerate(values)
    ]


def test_three_moves_in_a_row_look_lost():
    values = [-0.96, -0.99, -0.95, -0.96, -0.97, -0.98, -1.0, 0.0]
    expected = [False, False, False, False, False, True, True, False]
    assert resigned(Resigning(-0.95), values) == expected
    assert not any(resigned(Resigning(), [-1.0] * 5))


def test_each_side_counts_its_own():
    resigning = Resigning(-0.9)
    found = [resigning.resigns(ply % 2, range(ply), -1.0) for ply in range(6)]
    assert found == [False] * 4 + [True] * 2
    resigning = Resigning(-0.9)
    found = [
        resigning.resigns(ply % 2, range(ply), 1.0 - 2 * (ply % 2)) for ply in range(6)
    ]
    assert found == [False] * 5 + [True]


def test_what_was_taken_back_does_not_count():
    resigning = Resigning(-0.9)
    plies = (4, 6, 6, 4, 6, 0, 0, 0, 2, 4)
    found = [resigning.resigns(0, range(ply), -1.0) for ply in plies]
    assert found == [False] * 9 + [True]


def test_what_was_in_another_game_does_not_count():
    resigning = Resigning(-0.9)
    games = [[0, 1, 2, 3], [0, 1, 2, 3, 4, 5], [6, 1, 2, 3, 4, 5, 6, 7]]
    assert [resigning.resigns(0, game, -1.0) for game in games] == [False] * 3
    # Nor if the side made moves in between without a search.
    assert not resigning.resigns(0, range(8), -1.0)
    assert not resigning.resigns(0, range(12), -1.0)
    assert not resigning.resigns(0, range(14), -1.0)
    assert resigning.resigns(0, range(16), -1.0)


# Every value of the hash evaluator is below this threshold.
ALWAYS = 0.999


def test_a_session_resigns_and_plays_nothing(converse):
    moves = ["genmove b", "play w pass"] * 2
    lines = [*moves, "genmove b", "undo", "undo", "genmove b", "genmove w"]
    lines += ["genmove b", "kata-genmove_analyze b 100"]
    answers = converse(resigning=Resigning(ALWAYS)).ask(*lines)
    resigns = [answer.split()[-1] == "resign" for answer in answers]
    # The third move resigns without being played, so undo removes earlier moves.
    assert resigns == [False] * 4 + [True] + [False] * 4 + [True, True]
    assert answers[-1].endswith("\nplay resign")
    # A move requested with reg_genmove is not played, and resigning is off by default.
    asked = ["reg_genmove b"] * 4
    assert "= resign" not in converse(resigning=Resigning(ALWAYS)).ask(*asked)
    assert "= resign" not in converse().ask(*moves, *moves, "genmove b")
    # The limit of a model does not apply with handicap stones.
    handicap = ["fixed_handicap 2", *["genmove w", "play b pass"] * 3]
    mild = Resigning(ALWAYS, in_handicap=False)
    assert "= resign" not in converse("go/9", resigning=mild).ask(*handicap)
    strict = converse("go/9", resigning=Resigning(ALWAYS)).ask(*handicap)
    assert "= resign" in strict
    # Another game that starts with the same number of moves.
    plays = ["clear_board", *(f"play {m}" for m in ("b A1", "w A2", "b A3", "w A4"))]
    lines = [*moves, *plays, "genmove b"]
    assert "= resign" not in converse(resigning=Resigning(ALWAYS)).ask(*lines)
