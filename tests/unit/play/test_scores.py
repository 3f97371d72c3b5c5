"""Scores in analyses, and models without score heads."""

import dataclasses
import json

import pytest

import tengen
from tengen import cli
from tengen.errors import UsageError
from tengen.evaluation import open_player, play_match
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused

COUNTS = SearchConfig(score_weight=0.4)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, publish_run):
    """Returns a run of Go whose untrained models estimate the score."""
    path = tmp_path_factory.mktemp("runs") / "scored"
    return publish_run(path, "go/5", (0, 1), auxiliary=True, exports=False)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, publish_run):
    """Returns a run of Go whose untrained model does not estimate the score."""
    return publish_run(tmp_path_factory.mktemp("runs") / "plain", "go/5", exports=False)


def test_analysis_has_scores_where_the_model_has(scored, plain):
    moves = [12, 7, 11]
    with tengen.load(str(scored.path)) as player:
        usual = player.analyse(moves, simulations=40)
        threads = player.analyse(moves, simulations=40, threads=2)
        with player.begin(moves, simulations=40) as search:
            search.grow(40)
            grown = search.analysis()
    assert grown == usual
    for found in (usual, threads):
        assert abs(found.score_to_play) <= 45
        for action in found.actions:
            assert (action.score_to_play is None) is (action.visits == 0)
        mean = sum(a.visits * a.score_to_play for a in found.actions if a.visits)
        own = found.score_to_play * (found.num_simulations + 1) - mean
        assert abs(own) <= 45  # the network's own estimate for the root
    with tengen.load(str(plain.path)) as player:
        found = player.analyse(moves, simulations=40)
    assert found.score_to_play is None
    assert {action.score_to_play for action in found.actions} == {None}


def test_scores_that_do_not_count_change_no_move(scored):
    with tengen.load(str(scored.path)) as player:
        shown = player.analyse([12, 7], simulations=60)
    silent = open_player(str(scored.path))
    assert "score" not in silent.backend.signature.outputs
    player = tengen.play.Player(silent)
    found = player.analyse([12, 7], simulations=60)
    assert found.score_to_play is None
    assert [a.visits for a in found.actions] == [a.visits for a in shown.actions]


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
def test_a_player_can_play_for_points(scored, policy):
    search = dataclasses.replace(COUNTS, policy=policy)
    with tengen.load(str(scored.path), PlayConfig(search=search)) as player:
        found = player.analyse([12, 7], simulations=60)
        assert -1 <= found.value_to_play <= 1
        assert found.best_action == player.choose([12, 7], simulations=60)
    with tengen.load(str(scored.path)) as player:
        usual = player.analyse([12, 7], simulations=60)
    assert [a.visits for a in usual.actions] != [a.visits for a in found.actions]


def test_a_model_without_scores_cannot_play_for_them(plain):
    with refused(UsageError, "search.score_weight (0.4)"):
        tengen.load(str(plain.path), play=PlayConfig(search=COUNTS))


def test_sides_of_a_match_that_play_for_points(scored):
    reports = [
        play_match(
            tengen.games.make("go/5"),
            open_player(f"{scored.path}@0", play=PlayConfig(search=COUNTS)),
            open_player(f"{scored.path}@1", num_threads=threads),
            num_games=4,
            num_simulations=12,
            num_threads=threads,
        )
        for threads in (1, 2)
    ]
    assert [g.moves for g in reports[0].games] == [g.moves for g in reports[1].games]


def test_the_command_line(scored, plain, capsys):
    words = ["--games", "2", "--simulations", "8", "--set", "a.search.score_weight=0.4"]
    trees = ["--tree-threads", "2", "--threads", "2"]
    for more in ([], trees):
        match = ["match", str(scored.path), "random", *words, *more, "--json"]
        assert cli.main(match) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["games"] == 2
    assert cli.main(["match", str(plain.path), "random", *words]) == 2
    error = capsys.readouterr().err
    assert "search.score_weight (0.4) needs a network" in error
    assert "net.auxiliary=true" in error
    assert error.count("\n") == 1
