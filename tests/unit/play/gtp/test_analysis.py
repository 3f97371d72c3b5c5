"""What analyses write, and what ends them."""

import re

import pytest

from tengen.games.vertices import read_vertex
from tengen.play.gtp.analysis import AnalysisRequest, parse_analysis
from tengen.play.gtp.protocol import GtpError

VERTEX = r"(?:[A-HJ-T][0-9]+|pass)"
LZ = re.compile(
    rf"info move ({VERTEX}) visits ([0-9]+) winrate ([0-9]+) prior ([0-9]+) "
    rf"order ([0-9]+) pv ((?:{VERTEX} ?)+)"
)
KATA = re.compile(
    rf"info move ({VERTEX}) visits ([0-9]+) utility (-?[0-9.]+) winrate ([0-9.]+) "
    rf"prior ([0-9.]+) order ([0-9]+) pv ((?:{VERTEX} ?)+)"
)
ROOT = re.compile(r"rootInfo visits ([0-9]+) utility (-?[0-9.]+) winrate ([0-9.]+)")


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("", AnalysisRequest(None, 1.0)),
        ("50", AnalysisRequest(None, 0.5)),
        ("b 50", AnalysisRequest(0, 0.5)),
        ("White interval 10 minmoves 3", AnalysisRequest(1, 0.1, min_moves=3)),
        ("0 maxmoves 5 ownership true", AnalysisRequest(None, 0.01, max_moves=5)),
        ("w rootInfo true pvVisits false", AnalysisRequest(1, 1.0, with_root=True)),
    ],
)
def test_arguments(words, request_):
    assert parse_analysis(tuple(words.split())) == request_


@pytest.mark.parametrize(
    "words",
    ["x", "b b", "interval", "interval x", "minmoves -1", "rootInfo 1", "b 1 2 3"],
)
def test_bad_arguments(words):
    with pytest.raises(GtpError, match="syntax error"):
        parse_analysis(tuple(words.split()))
    with pytest.raises(GtpError, match="avoid is not supported"):
        parse_analysis(("avoid", "b", "A1", "3"))


def moves_of(line, pattern):
    """The infos of a line, which must be nothing else."""
    infos = [text.strip() for text in re.split(r"(?=info move |rootInfo )", line)[1:]]
    matches = [pattern.fullmatch(info) for info in infos if info.startswith("info")]
    assert all(matches), line
    roots = [ROOT.fullmatch(info) for info in infos if info.startswith("root")]
    return [match.groups() for match in matches], roots


def test_analysis_goes_on_until_the_next_line(converse):
    conversation = converse()
    conversation.say(b"play b C3\n5 lz-analyze w 1\n")
    # Two lines at least: the first comes while the search is under way.
    thread = conversation.when_written("info move", b"6 name\n", b"")
    answers = conversation.listen()
    thread.join()
    assert answers[0] == "="
    assert answers[2] == "=6 tengen"
    first, *lines = answers[1].split("\n")
    assert first == "=5"
    assert len(lines) >= 2
    visits = 0
    for line in lines:
        moves, _ = moves_of(line, LZ)
        assert [int(move[4]) for move in moves] == list(range(len(moves)))
        assert all(0 <= int(move[2]) <= 10000 for move in moves)
        assert all(move[5].split()[0] == move[0] for move in moves)
        assert all(read_vertex(move[0], 5, 5) != 12 for move in moves)
        seen = sum(int(move[1]) for move in moves)
        assert seen >= visits
        visits = seen


def test_kata_lines_agree_with_the_analysis(ask, make_player):
    found = make_player("go/5").analyse([], simulations=8)
    line, play = ask("kata-genmove_analyze b 100 rootInfo true")[0].split("\n")[1:]
    moves, roots = moves_of(line, KATA)
    rows = [row for row in found.actions if row.visits]
    assert [read_vertex(move[0], 5, 5) for move in moves] == [r.action for r in rows]
    for move, row in zip(moves, rows, strict=True):
        assert int(move[1]) == row.visits
        assert float(move[2]) == pytest.approx(row.value_to_play, abs=1e-6)
        chance = 0.5 + 0.5 * row.value_to_play
        assert float(move[3]) == pytest.approx(chance, abs=1e-6)
        assert float(move[4]) == pytest.approx(row.prior, abs=1e-6)
    assert roots[0][1] == "8"
    assert float(roots[0][2]) == pytest.approx(found.value_to_play, abs=1e-6)
    assert read_vertex(play.removeprefix("play "), 5, 5) == found.best_action


def test_fewer_and_more_moves_are_shown(ask):
    line = ask("lz-genmove_analyze b maxmoves 2")[0].split("\n")[1]
    assert len(moves_of(line, LZ)[0]) == 2
    line = ask("lz-genmove_analyze b minmoves 20")[0].split("\n")[1]
    assert len(moves_of(line, LZ)[0]) == 20


def test_the_move_of_an_analysis_is_played(ask):
    answers = ask("kata-genmove_analyze b", "printsgf", "kata-genmove_analyze")
    assert answers[1].count(";B[") == 1
    assert answers[2] == "? syntax error"


def test_analysis_of_a_finished_game_says_nothing(ask):
    answers = ask("play b pass", "play w pass", "lz-analyze", "kata-raw-nn")
    assert answers[2:] == ["=", "? the game is over"]


def test_the_end_of_input_ends_an_analysis(ask):
    assert ask("3 kata-analyze 1")[0].startswith("=3\n")


def test_the_network_alone(ask, make_player):
    found = make_player("go/5").analyse([12], simulations=1)
    lines = ask("play b C3", "kata-raw-nn 0")[1].removeprefix("= ").split("\n")
    named = dict(line.split() for line in lines if line.count(" ") == 1)
    chance = 0.5 + 0.5 * found.network_value_to_play
    assert float(named["whiteWin"]) == pytest.approx(chance, abs=1e-6)
    assert float(named["whiteLoss"]) == pytest.approx(1 - chance, abs=1e-6)
    grid = [line.split() for line in lines[4:9]]
    assert grid[2][2] == "NAN"
    for row in found.actions:
        text = named["policyPass"] if row.action == 25 else ""
        text = text or grid[row.action // 5][row.action % 5]
        assert float(text) == pytest.approx(row.prior, abs=1e-6)
