"""Searches that grow in slices."""

import contextlib
import dataclasses

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.play import Player
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused


def without_variations(analysis):
    rows = (dataclasses.replace(row, variation=()) for row in analysis.actions)
    return dataclasses.replace(analysis, actions=tuple(rows))


@pytest.mark.parametrize("task", ["connect4", "go/5"])
def test_slices_are_the_whole_search(make_player, task):
    player, moves = make_player(task), [3, 4]
    whole = player.analyse(moves, simulations=90)
    with player.begin(moves) as search:
        assert search.num_simulations == 0
        for num_simulations in (1, 29, 0, 60):
            search.grow(num_simulations)
        assert search.num_simulations == 90
        assert search.analysis() == whole
        seen = search.analysis(variation_length=5)
    assert without_variations(seen) == whole
    for row in seen.actions:
        assert row.variation[:1] == ((row.action,) if row.visits else ())
        assert len(row.variation) <= 5
        state = games.make(task).new_state()
        for move in (*moves, *row.variation):
            state.apply(move)
    assert len(seen.actions[0].variation) >= 2
    # The next analysis starts afresh in the same searcher.
    assert player.analyse(moves, simulations=90) == whole


def test_a_new_search_knows_the_network_alone(make_player):
    with make_player("connect4").begin([]) as search:
        seen = search.analysis(3)
    assert seen.value_to_play == seen.network_value_to_play
    assert sum(row.prior for row in seen.actions) == pytest.approx(1.0, abs=1e-5)
    assert all(row.variation == () for row in seen.actions)


def test_a_certain_result_grows_no_more(make_player):
    with make_player("tictactoe").begin([0, 3, 1, 4]) as search:
        search.grow(500)
        assert search.is_proven
        before = search.num_simulations
        search.grow(500)
        assert search.num_simulations == before < 500
        assert search.analysis().best_action == 2


def test_threads_grow_one_tree(make_player, give_cores):
    give_cores(3)
    with make_player("go/5").begin([], 300, threads=3) as search:
        for total in (1, 50, 300):
            search.grow(total - search.num_simulations)
            assert search.num_simulations == total
        assert len(search.analysis(4).actions[0].variation) >= 2


def test_a_search_that_fails_is_not_kept(make_player):
    player = make_player("connect4")
    whole = player.analyse([], 50)
    with contextlib.suppress(KeyboardInterrupt), player.begin([]) as search:
        search.grow(5)
        raise KeyboardInterrupt
    assert player.analyse([], 50) == whole


def test_what_is_refused(make_player, hash_player):
    player = make_player("connect4")
    with refused(UsageError, "simulations (0)"), player.begin([], 0):
        pass
    with refused(_core.CoreError, "legal"), player.begin([9]):
        pass
    play = PlayConfig(search=SearchConfig(policy="gumbel"))
    model = dataclasses.replace(hash_player("connect4"), play=play)
    with (
        refused(UsageError, "search.policy (gumbel)"),
        Player(model).begin([]),
    ):
        pass
    with player.begin([]) as search:
        player.close()
        search.grow(3)
    with refused(UsageError, "player (hash)"), player.begin([]):
        pass


def test_a_model_plays_other_komi(make_player):
    player = make_player("go/5")
    other = player.playing("go/5/komi=0")
    assert other.game.name == "go/5/komi=0"
    assert player.game.name == "go/5"
    # The planes show the komi, so the network's outputs differ.
    assert other.analyse([], 30) == make_player("go/5/komi=0").analyse([], 30)
    assert other.analyse([], 30) != player.analyse([], 30)
    with refused(UsageError, "game (go/6)"):
        player.playing("go/6")
    with refused(UsageError, "task (go/40)"):
        player.playing("go/40")
