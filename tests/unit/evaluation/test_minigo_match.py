"""Matches between players with minigo's search, against slow references."""

import dataclasses

import numpy as np
import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.evaluation import play_match
from tengen.search import PlayConfig, SearchConfig
from tests.oracle.slow_minigo_games import (
    evaluate_planes,
    pass_alive_of,
    slow_match_game,
)
from tests.refusals import refused

NAME = "go/5/nosuicide/planes=minigo"


def player(search, num_simulations):
    native = _core.MatchPlayer()
    native.kind = _core.PlayerKind.NETWORK
    native.num_simulations = num_simulations
    native.search = search.to_native()
    return native


def play(players, num_games, evaluate=evaluate_planes, **how):
    """Returns the games of a match, by index."""
    how = {"num_slots": 4, "num_opening_plies": 0, "seed": 3} | how
    queue = _core.GameQueue(
        seed=how.pop("seed"), generation=0, model=0, num_games=num_games
    )
    match = _core.make_match(NAME, *players, queue, **how)
    while not match.finished:
        for index in (0, 1):
            port = match.port(index)
            if num_rows := port.next():
                policy, value = evaluate(port.planes[:num_rows])
                port.policy[:num_rows], port.value[:num_rows] = policy, value
                port.done()
    return sorted(match.games(0), key=lambda game: game.index)


def minigo(num_leaves=4, **settings):
    # Values and penalty are binary fractions, so sums are exact in any order.
    exact = {"minigo_value_penalty": 0.25} | settings
    return SearchConfig(policy="minigo", minigo_virtual_losses=num_leaves, **exact)


def turned(planes):
    """An evaluation that is not symmetric, like a network's."""
    logits, value = evaluate_planes(planes)
    return logits + np.arange(logits.shape[1]) / 8, value


def test_games_are_those_of_the_reference():
    searches = [minigo(), minigo(1, minigo_c_init=2.0)]
    found = play([player(search, 30) for search in searches], 2)
    for game in found:
        a_moves_first = game.first_player == 0
        assert list(game.moves) == slow_match_game(NAME, searches, 30, a_moves_first)
    assert [game.first_player for game in found] == [0, 1]


def test_a_game_ends_where_every_point_is_settled():
    num_settled = 0
    both = [player(minigo(minigo_c_init=2.5), 40)] * 2
    for game in play(both, 8, evaluate=turned):
        moves = list(game.moves)
        for ply, move in enumerate(moves):
            assert move not in pass_alive_of(NAME, moves[:ply])
        position = _core.GoPosition(NAME, moves)
        state = games.make(NAME).new_state()
        for move in moves:
            state.apply(move)
        to_first = state.returns()[0] if state.is_terminal() else None
        if to_first is None:
            assert position.is_settled()
            num_settled += 1
            to_first = np.sign(position.pass_alive().sum() - 7.5)
        sign = 1 if game.first_player == 0 else -1
        assert game.value_of_player0 == sign * to_first
    assert num_settled > 0


def test_a_game_is_a_function_of_its_index_and_the_seed():
    """Slots do not matter; games with different indices or seeds differ."""
    both = [player(minigo(), 20)] * 2
    games_of = [
        [list(game.moves) for game in play(both, 6, evaluate=turned, num_slots=slots)]
        for slots in (1, 4, 6)
    ]
    assert games_of[0] == games_of[1] == games_of[2]
    assert len({tuple(moves) for moves in games_of[0]}) == 6
    other = [list(game.moves) for game in play(both, 6, evaluate=turned, seed=4)]
    assert other != games_of[0]
    # With PUCT all games between equal players are identical.
    puct = [player(SearchConfig(), 20)] * 2
    assert len({tuple(game.moves) for game in play(puct, 6, evaluate=turned)}) == 1


@pytest.mark.parametrize("place", [0, 1])
def test_against_another_kind_of_player(place):
    """The game ends when all points are settled, whichever player is to move."""
    random = _core.MatchPlayer()
    random.kind = _core.PlayerKind.RANDOM
    players = [player(minigo(), 20)] * 2
    players[place] = random
    found = play(players, 4, num_opening_plies=2)
    assert sum(game.value_of_player0 for game in found) == (-4 if place == 0 else 4)


def test_a_match_of_models_is_a_function_of_its_seed(hash_player):
    play = PlayConfig(search=minigo())
    a, b = (
        dataclasses.replace(hash_player("go/4", salt=salt), play=play)
        for salt in (0, 1)
    )
    rules = games.make("go/4")
    found = [
        play_match(
            rules, a, b, num_games=6, num_simulations=12, seed=2, num_threads=threads
        )
        for threads in (1, 2)
    ]
    assert found[0] == found[1]
    assert len({game.moves for game in found[0].games}) > 2


def test_what_a_player_by_minigo_does_not_read_is_refused():
    for field, value in (("keeps_tree", True), ("batch_rows", 4)):
        with refused(UsageError, f"{field} ({value})"):
            PlayConfig(search=minigo(), **{field: value})
    with refused(UsageError, "search.minigo_noise_alpha (0.5)"):
        PlayConfig(search=minigo(minigo_noise_alpha=0.5))
