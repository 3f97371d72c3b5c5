"""Ownership and score in analyses, for models with the auxiliary heads."""

import re

import numpy as np
import pytest

from tengen.play import load

PLAYS = ["play b C3", "play w B2", "play b D3"]
MOVES = [12, 16, 13]


@pytest.fixture(scope="module")
def player(tmp_path_factory, publish_run):
    """Returns a player of go/5 whose untrained network has auxiliary heads."""
    path = tmp_path_factory.mktemp("runs") / "go"
    with load(publish_run(path, "go/5", auxiliary=True, exports=False).path) as player:
        yield player


@pytest.fixture
def ask(player, talk_to):
    """Returns a function that sends lines to a new engine and returns the responses."""
    return lambda *lines: talk_to(player).ask(*lines)


def numbers_after(line, key):
    """Returns the numbers that follow the word ``key``."""
    words = line.split(f" {key} ")[1].split()
    numbers = []
    for word in words:
        if re.fullmatch(r"-?[0-9.]+", word) is None:
            break
        numbers.append(float(word))
    return numbers


def test_owners_and_score_are_the_side_to_moves(ask, player):
    line = ask(*PLAYS, "kata-genmove_analyze w ownership true rootInfo true")[3]
    line = line.split("\n")[1]
    found = player.forecast(MOVES)
    owners = numbers_after(line, "ownership")
    # Row by row from the top left, at the end of the line.
    assert owners == pytest.approx(found.ownership_to_play.ravel(), abs=1e-6)
    assert line.endswith(f" {owners[-1]:.6f}")
    root = line.split(" rootInfo ")[1].split(" ownership ")[0].split()
    said = dict(zip(root[::2], map(float, root[1::2]), strict=True))
    searched = player.analyse(MOVES, simulations=int(said["visits"]))
    assert said["scoreLead"] == said["scoreMean"]
    assert said["scoreLead"] == pytest.approx(searched.score_to_play, abs=1e-6)
    best = numbers_after(line.split(" info ")[0], "scoreLead")
    assert best == pytest.approx([searched.actions[0].score_to_play], abs=1e-6)
    assert said["scoreStdev"] == pytest.approx(found.score_stdev, abs=1e-6)


def test_the_other_side_to_move_is_another_position(ask, player):
    line = ask(*PLAYS, "kata-genmove_analyze b ownership true")[3].split("\n")[1]
    found = player.forecast([*MOVES, 25])
    expected = found.ownership_to_play.ravel()
    assert numbers_after(line, "ownership") == pytest.approx(expected, abs=1e-6)


def test_nothing_is_shown_that_was_not_asked_for(ask):
    line = ask("kata-genmove_analyze b")[0]
    assert "ownership" not in line
    assert "rootInfo" not in line
    # Leela Zero's dialect does not have these words.
    line = ask("lz-genmove_analyze b ownership true rootInfo true")[0]
    for word in ("ownership", "rootInfo", "score"):
        assert word not in line


def test_komi_is_in_the_score(ask, player):
    answers = ask("komi 0.5", *PLAYS, "kata-raw-nn all")
    found = player.playing("go/5/komi=0.5").forecast(MOVES)
    lead = float(re.search(r"whiteLead (-?[0-9.]+)", answers[4])[1])
    assert lead == pytest.approx(found.score_to_play, abs=1e-6)


def test_the_network_alone_speaks_of_white(ask, player):
    to_white = ask(*PLAYS, "kata-raw-nn 3")[3].removeprefix("= ").split("\n")
    to_black = ask(*PLAYS, "kata-raw-nn black 3")[3].removeprefix("= ").split("\n")
    for lines, sign, moves in ((to_white, 1, MOVES), (to_black, -1, [*MOVES, 25])):
        found = player.forecast(moves)
        assert lines[0] == "symmetry 0"
        lead = float(lines[4].removeprefix("whiteLead "))
        assert lead == pytest.approx(sign * found.score_to_play, abs=1e-6)
        # This network has no lead head.
        assert lines[5] == f"whiteScoreSelfplay {lead:.6f}"
        assert lines[12].startswith("policyPass ")
        assert lines[13] == "whiteOwnership"
        owners = np.array([line.split() for line in lines[14:]], float)
        expected = sign * found.ownership_to_play
        assert owners == pytest.approx(expected, abs=1e-6)


def test_the_network_alone_takes_what_other_engines_take(ask):
    assert ask("kata-raw-nn")[0].startswith("= symmetry 0")
    # A value for policy optimism may follow.
    assert ask("kata-raw-nn 0 0.5")[0].startswith("= symmetry 0")


def test_owners_in_gogui(ask, player):
    answers = ask(*PLAYS, "tengen-ownership", "gogui-analyze_commands")[3:]
    assert "dboard/Expected Owners/tengen-ownership" in answers[1]
    rows = answers[0].removeprefix("= ").split("\n")
    # White is to move, and 1 means Black.
    expected = -player.forecast(MOVES).ownership_to_play
    owners = np.array([row.split() for row in rows], float)
    assert owners == pytest.approx(expected, abs=1e-3)


def test_models_without_such_heads_answer_without(make_player, talk_to):
    answers = talk_to(make_player("go/5")).ask(
        "kata-genmove_analyze b ownership true rootInfo true",
        "kata-raw-nn 0",
        "tengen-ownership",
        "gogui-analyze_commands",
    )
    assert "ownership" not in answers[0]
    assert "scoreLead" not in answers[0]
    assert "white" not in answers[1].replace("whiteWin", "").replace("whiteLoss", "")
    assert answers[2] == "? the network does not predict ownership"
    assert "Owners" not in answers[3]
