"""The output of analysis commands, and the events that end them."""

import re

import pytest

from tengen.games.go_rules import read_vertex, write_vertex
from tengen.play.gtp.protocol import AnalysisRequest, GtpError, parse_analysis
from tests.refusals import refused

VERTEX = r"(?:[A-HJ-T][0-9]+|pass)"
LZ = re.compile(
    rf"info move ({VERTEX}) visits ([0-9]+) winrate ([0-9]+) prior ([0-9]+) "
    rf"lcb ([0-9]+) order ([0-9]+) pv ((?:{VERTEX} ?)+)"
)
KATA = re.compile(
    rf"info move ({VERTEX}) visits ([0-9]+) utility (-?[0-9.]+) winrate ([0-9.]+) "
    rf"prior ([0-9.]+) lcb ([0-9.]+) order ([0-9]+) pv ((?:{VERTEX} ?)+)"
)
ROOT = re.compile(r"rootInfo visits ([0-9]+) utility (-?[0-9.]+) winrate ([0-9.]+)")


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("", AnalysisRequest(None, 1.0)),
        ("50", AnalysisRequest(None, 0.5)),
        ("b 50", AnalysisRequest(0, 0.5)),
        ("White interval 10 minmoves 3", AnalysisRequest(1, 0.1, min_moves=3)),
        (
            "0 maxmoves 5 ownership true",
            AnalysisRequest(None, 0.01, max_moves=5, with_ownership=True),
        ),
        ("w rootInfo true pvVisits false", AnalysisRequest(1, 1.0, with_root=True)),
        (
            "10 avoid b B2,b1, 3 avoid w pass 1 avoid b B2 1",
            AnalysisRequest(
                None, 0.1, left_out=((0, 3, 3), (0, 5, 3), (1, 6, 1), (0, 3, 1))
            ),
        ),
        (
            "allow w B1,A2,B2,A3,pass 4 allow b A1,B1,A2,B2,A3,B3,pass 9",
            AnalysisRequest(None, 1.0, left_out=((1, 1, 4), (1, 4, 4))),
        ),
    ],
)
def test_arguments(words, request_):
    # A board with three rows and two columns.
    assert parse_analysis(tuple(words.split()), (3, 2)) == request_


@pytest.mark.parametrize(
    "words",
    [
        "x",
        "b b",
        "interval",
        "interval x",
        "minmoves -1",
        "rootInfo 1",
        "b 1 2 3",
        "avoid b A1",
        "avoid x A1 1",
        "avoid b Z1 1",
        "avoid b A1 0",
        "avoid b A1 x",
        "allow b A1 1 allow b A2 1",
        "avoid b A1 1 allow b A2 1",
        "allow b A1 1 avoid b A2 1",
    ],
)
def test_bad_arguments(words):
    with refused(GtpError, "syntax error"):
        parse_analysis(tuple(words.split()), (5, 5))


def moves_of(line, pattern):
    """Returns the moves and root infos of a line, which must contain nothing else."""
    infos = [text.strip() for text in re.split(r"(?=info move |rootInfo )", line)[1:]]
    matches = [pattern.fullmatch(info) for info in infos if info.startswith("info")]
    assert all(matches), line
    roots = [ROOT.fullmatch(info) for info in infos if info.startswith("root")]
    return [match.groups() for match in matches], roots


def test_analysis_goes_on_until_the_next_line(converse):
    conversation = converse()
    conversation.say(b"play b C3\n5 lz-analyze w 1\n")
    # Waits for two lines, the first of which is written during the search.
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
        assert [int(move[5]) for move in moves] == list(range(len(moves)))
        assert all(0 <= int(move[4]) <= int(move[2]) <= 10000 for move in moves)
        assert all(move[6].split()[0] == move[0] for move in moves)
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
        bound = chance - 2.5 * row.standard_error
        assert float(move[5]) == pytest.approx(max(bound, 0), abs=1e-6)
    assert roots[0][1] == "8"
    assert float(roots[0][2]) == pytest.approx(found.value_to_play, abs=1e-6)
    assert read_vertex(play.removeprefix("play "), 5, 5) == found.best_action


def test_a_bound_of_few_visits_is_low_and_rises(ask):
    def bounds(simulations):
        answer = ask("kata-genmove_analyze b", simulations=simulations)[0]
        moves, _ = moves_of(answer.split("\n")[1], KATA)
        return {int(move[1]): float(move[5]) for move in moves}

    # With one visit, the bound is the lowest: 5 standard errors of 0.7 each.
    assert bounds(8)[1] == 0
    many = bounds(400)
    assert many[max(many)] > 0.3


def test_moves_are_left_out(ask):
    line = "kata-genmove_analyze b 100 minmoves 30"
    everything = ask(line)[0].split("\n")[1]
    best = moves_of(everything, KATA)[0][0][0]
    first, play = ask(f"{line} avoid b {best} 1")[0].split("\n")[1:]
    assert {move[0] for move in moves_of(first, KATA)[0]} == {
        move[0] for move in moves_of(everything, KATA)[0]
    } - {best}
    assert play != f"play {best}"
    first, play = ask(f"{line} allow b A1,B2 3")[0].split("\n")[1:]
    assert {move[0] for move in moves_of(first, KATA)[0]} == {"A1", "B2"}
    assert play in ("play A1", "play B2")


def test_fewer_and_more_moves_are_shown(ask):
    line = ask("lz-genmove_analyze b maxmoves 2")[0].split("\n")[1]
    assert len(moves_of(line, LZ)[0]) == 2
    line = ask("lz-genmove_analyze b minmoves 20")[0].split("\n")[1]
    assert len(moves_of(line, LZ)[0]) == 20


def test_the_move_of_an_analysis_is_played(ask):
    answers = ask("kata-genmove_analyze b", "printsgf")
    assert answers[1].count(";B[") == 1


def test_analysis_goes_on_after_two_passes(ask, make_player):
    # Analyses the position before the passes, or for the other side after one of them.
    player, passes = make_player("go/5"), ["play w pass", "play b pass"]
    for moves, plays, colour in (
        ([12], ["play b C3", *passes], ""),
        ([12], ["play b C3", *passes], "w"),
        ([12, 25], ["play b C3", *passes], "b"),
    ):
        found = player.analyse(moves, simulations=1)
        raw = ask(*plays, f"kata-raw-nn {colour}")[3]
        chance = 0.5 + 0.5 * found.network_value_to_play * (1 if colour != "b" else -1)
        assert f"whiteWin {chance:.6f}" in raw
        for dialect in ("lz", "kata"):
            answer = ask(*plays, f"{dialect}-analyze {colour}")[3]
            liked = max(found.actions, key=lambda row: row.prior)
            assert f"info move {write_vertex(liked.action, 5, 5)} " in answer
    # The position can be analysed, but genmove still passes.
    answers = ask("play b C3", *passes, "kata-analyze", "genmove w", "printsgf")
    assert answers[4] == "= pass"
    assert answers[5].count(";B[]") == 1


def test_the_end_of_input_ends_an_analysis(ask):
    assert ask("3 kata-analyze 1")[0].startswith("=3\n")


def test_the_network_alone(ask, make_player):
    found = make_player("go/5").analyse([12], simulations=1)
    lines = ask("play b C3", "kata-raw-nn 0")[1].removeprefix("= ").split("\n")
    assert lines.pop(0) == "symmetry 0"
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
