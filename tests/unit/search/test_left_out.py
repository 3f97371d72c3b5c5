"""Searches that exclude actions, and the standard errors of their values."""

import math

import pytest

from tengen import _core, games
from tengen.search import SearchConfig
from tests.oracle.search import Proof

GAMES = ["tictactoe", "connect4", "gomoku/5", "go/5"]


def drawn(name, seed, count):
    """Returns random excluded actions of both players, up to various depths."""
    rng = _core.Rng(seed, 0, 0, 0, purpose=1)
    num_actions = games.make(name).num_actions
    return [
        _core.LeftOut(rng.below(2), rng.below(num_actions), 1 + rng.below(4))
        for _ in range(count)
    ]


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
@pytest.mark.parametrize("name", GAMES)
def test_both_searches_leave_the_same_out(twin, moves_to, name, policy):
    config = SearchConfig(policy=policy)
    for seed in range(4):
        moves = moves_to(name, seed, seed)
        twin(name, moves, config, left_out=drawn(name, seed, 8)).check()


def nodes_by_path(nodes):
    """Returns (depth, node) for every node of a native tree."""
    depths = {0: 0}
    for index, node in enumerate(nodes):
        for edge in node["edges"]:
            depths[edge[4]] = depths[index] + 1
    return [(depths[index], node) for index, node in enumerate(nodes)]


def test_what_is_left_out_is_not_in_the_tree(twin):
    left_out = [_core.LeftOut(0, 12, 1), _core.LeftOut(1, 6, 2), _core.LeftOut(0, 8, 9)]
    result, nodes = twin("go/5", left_out=left_out, num_simulations=400).native()
    assert {a.action for a in result.actions} == set(range(26)) - {12, 8}
    assert sum(a.prior for a in result.actions) == pytest.approx(1)
    seen = {
        (node["to_play"], edge[0], depth)
        for depth, node in nodes_by_path(nodes)
        for edge in node["edges"]
    }
    for player, action, depth in seen:
        for out in left_out:
            assert not (
                (player, action) == (out.player, out.action) and depth < out.depth
            )
    # Deeper in the tree, and for the other side, the actions are allowed.
    assert (0, 12, 2) in seen
    assert (1, 8, 1) in seen


def test_where_nothing_is_left_all_stay(twin):
    everything = [_core.LeftOut(0, action, 1) for action in range(9)]
    result, _ = twin("tictactoe", left_out=everything).native()
    assert [a.action for a in result.actions] == list(range(9))
    twin("tictactoe", left_out=everything).check()
    result, _ = twin("tictactoe", left_out=everything[1:]).native()
    assert [a.action for a in result.actions] == [0]


def test_a_subtree_of_a_search_with_less_is_not_kept(twin):
    left_out = [_core.LeftOut(0, 12, 1)]
    again = twin("go/5", left_out=left_out, then=[7])
    again.check()
    assert again.native()[0].num_simulations == 64


@pytest.mark.parametrize("name", GAMES)
def test_standard_errors_are_those_of_the_reference(twin, moves_to, name):
    both = twin(name, moves_to(name, 2, 5), num_simulations=200)
    _, root = both.reference()
    both.request["keep_squares"] = True
    result, _ = both.native()
    for action in result.actions:
        child = root.children.get(action.action)
        expected = 0.0
        if child is not None and child.proof == Proof.UNKNOWN:
            mean = root.child_value(action.action)
            variance = max(0.0, child.mean_square - mean**2)
            variance += 1 / (child.visits**3 + 1)
            expected = math.sqrt(variance / child.visits)
        assert action.standard_error == pytest.approx(expected, abs=1e-4)
    assert any(action.standard_error > 0 for action in result.actions)


def test_no_squares_no_standard_errors(twin):
    result, _ = twin("go/5").native()
    assert all(action.standard_error == 0 for action in result.actions)
