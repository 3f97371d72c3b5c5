"""Wins in one move, and the only moves against them, whatever the evaluation says."""

import random

import pytest

from tengen import games
from tengen.search import SearchConfig
from tests.oracle.search import Proof
from tests.oracle.search.decisive import decisive_actions

NAMES = ["tictactoe", "connect4", "gomoku/7", "gomoku/9/exact"]


def crowded_moves(name, rng):
    """Returns moves of random play on few cells, so that rows come about."""
    state = games.make(name).new_state()
    moves = []
    for _ in range(rng.randrange(4, 40)):
        action = rng.choice(state.legal_actions()[:20])
        after = state.clone()
        after.apply(action)
        if after.is_terminal():
            break
        moves.append(action)
        state = after
    return moves, state


def decided(name, count):
    """Yields ``count`` positions in which few of the moves are right, with these."""
    rng = random.Random(name)
    while count:
        moves, state = crowded_moves(name, rng)
        right, proof = decisive_actions(state, name.split("/")[0])
        if len(right) < len(state.legal_actions()):
            count -= 1
            yield moves, right, proof


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "count", [30, pytest.param(2500, marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_sixteen_simulations_are_enough(twin, name, policy, count):
    config = SearchConfig(policy=policy)
    kinds = set()
    for moves, right, proof in decided(name, count):
        search = twin(name, moves, config, num_simulations=16)
        result, _ = search.native()
        assert result.best_action in right
        share = sum(a.policy for a in result.actions if a.action in right)
        assert share == pytest.approx(1.0)
        if proof == Proof.WIN:
            assert result.proof == Proof.WIN
        kinds.add(proof)
    assert Proof.WIN in kinds
    assert Proof.UNKNOWN in kinds


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
def test_the_trees_are_those_of_the_reference(twin, policy):
    for name in NAMES:
        for moves, _, _ in decided(name, 3):
            twin(name, moves, SearchConfig(policy=policy)).check()


def test_the_only_move_of_a_game_against_an_engine(twin):
    # (x, y) 1,8 8,0 0,8 4,4 3,8 5,3 2,8: the side to move must take 4,8.
    places = [(1, 8), (8, 0), (0, 8), (4, 4), (3, 8), (5, 3), (2, 8)]
    moves = [9 * y + x for x, y in places]
    for num_simulations in (0, 1, 64):
        result, _ = twin("gomoku/9", moves, num_simulations=num_simulations).native()
        assert [a.action for a in result.actions] == [9 * 8 + 4]


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
def test_a_lost_side_takes_one_of_the_threatened_cells(twin, policy):
    # Four in the middle of a row, with both ends open.
    moves = [39, 0, 40, 80, 41, 8, 42]
    search = twin("gomoku/9", moves, SearchConfig(policy=policy), num_simulations=16)
    result, _ = search.native()
    assert result.best_action in (38, 43)
    assert result.proof == Proof.LOSS


def test_surprise_is_that_over_all_legal_actions(twin):
    result, _ = twin("gomoku/9", [72, 4, 73, 5, 74, 6, 75]).native()
    assert [a.prior for a in result.actions] == [1.0]
    assert 0.0 < result.considered_prior < 0.1
    result, _ = twin("gomoku/9", [72, 4]).native()
    assert result.considered_prior == 1.0


def test_all_actions_are_considered_if_the_request_says_so(twin):
    moves = [72, 4, 73, 5, 74, 6, 75]
    result, _ = twin("gomoku/9", moves, considers_all=True, num_simulations=1).native()
    assert len(result.actions) == 81 - len(moves)
