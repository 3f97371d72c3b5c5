"""The native minigo search builds the same trees as the reference, node by node."""

import math
import random
from itertools import pairwise

import pytest

from tengen import _core, games
from tengen.search import SearchConfig
from tests.oracle.search.minigo import ReferenceMinigo
from tests.refusals import refused

NAMES = ("tictactoe", "connect4", "gomoku/7", "go/5/nosuicide")


class MinigoTwin:
    """Native and reference searches of one game, with the hash evaluator."""

    def __init__(
        self, name, config, moves=(), *, clears=False, may_pass=True, **request
    ):
        self.game = games.make(name)
        self.config = config
        self.moves = list(moves)
        self.clears = clears
        self.may_pass = may_pass
        self.request = {"num_simulations": 40, **request}
        self.search = ReferenceMinigo(config, self.evaluate, may_pass=may_pass)
        self.state = self.game.new_state()
        for move in self.moves:
            self.state.apply(move)
        self.then = []
        self.result = self.search.search(self.state, **self.request)

    def evaluate(self, state):
        return _core.hash_evaluate(*state.key(), self.game.num_actions)

    def play(self, action):
        """Plays a move and has the reference search the resulting position."""
        self.search.play(action)
        request = dict(self.request)
        if self.clears:
            request["num_simulations"] += self.search.clear()
        self.state.apply(action)
        self.then.append(action)
        if not self.state.is_terminal():
            self.result = self.search.search(self.state, **request)

    def check(self):
        """Asserts that the native search of the current position is equal."""
        request = _core.SearchRequest()
        for key, value in self.request.items():
            setattr(request, key, value)
        found, nodes = _core.minigo_hash_search(
            self.game.name,
            self.moves,
            self.config.to_native(),
            request,
            self.then,
            clears=self.clears,
            may_pass=self.may_pass,
        )
        assert tree_difference(nodes, self.search.root) == ""
        result = self.result
        assert found.num_simulations == result.num_simulations
        assert found.best_action == result.best_action
        assert found.root_value_to_play == pytest.approx(
            result.root_value_to_play, abs=1e-5
        )
        assert {a.action: a.visits for a in found.actions} == result.visits
        assert [a.value_to_play for a in found.actions] == pytest.approx(
            list(result.q.values()), abs=1e-5
        )
        total = sum(result.pruned.values())
        if total > 0:
            policy = {a.action: a.policy * total for a in found.actions}
            assert policy == pytest.approx(result.pruned, abs=1e-3)
        return found


def tree_difference(nodes, root):
    """Compares node by node; returns the first difference, or an empty string."""
    queue = [(nodes[0], root, ())]
    for native, node, path in queue:
        exact = [
            (native["visits"], node.visits),
            (native["to_play"], node.state.to_play),
            (native["num_legal"], len(node.prior)),
            ([edge[0] for edge in native["edges"]], list(node.children)),
        ]
        near = [(native["value_sum"], node.value_sum)]
        if node.prior:
            near.append((native["value_to_play"], node.value_to_play))
        for action, prior, visits, value_sum, child in native["edges"]:
            exact.append((visits, node.edge_visits[action]))
            near.append((prior, node.prior[action]))
            near.append((value_sum, node.edge_value_sum[action]))
            queue.append((nodes[child], node.children[action], (*path, action)))
        for ours, theirs in exact:
            if ours != theirs:
                return f"node {path}: {ours}, not {theirs}"
        for ours, theirs in near:
            if not math.isclose(ours, theirs, abs_tol=1e-4):
                return f"node {path}: {ours}, not {theirs}"
    return "" if len(queue) == len(nodes) else f"{len(nodes)} nodes, not {len(queue)}"


def minigo(num_leaves, **settings):
    return SearchConfig(policy="minigo", minigo_virtual_losses=num_leaves, **settings)


@pytest.mark.parametrize("num_leaves", [1, 4])
@pytest.mark.parametrize("num_simulations", [1, 2, 7, 120])
@pytest.mark.parametrize("name", NAMES)
def test_one_position(moves_to, name, num_simulations, num_leaves):
    for num_plies in (0, 3, 6):
        moves = moves_to(name, num_plies, num_simulations)
        twin = MinigoTwin(
            name,
            minigo(num_leaves, noise_weight=0.3),
            moves,
            num_simulations=num_simulations,
            explore=num_plies > 0,
            game=num_plies,
        )
        twin.check()


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize("num_leaves", [1, 4])
@pytest.mark.parametrize("name", [*NAMES, "go/7/nosuicide"])
def test_a_game(name, num_leaves, clears):
    """The tree is reused between moves, or its visits are repeated from scratch."""
    twin = MinigoTwin(
        name,
        minigo(num_leaves),
        num_simulations=24,
        clears=clears,
        explore=clears,
    )
    rng = random.Random(f"{name} {num_leaves} {clears}")
    num_checked = 0
    for ply in range(60):
        if ply % 4 == 0 or ply < 4:
            assert twin.check().num_simulations >= 24
            num_checked += 1
        legal = twin.state.legal_actions()
        # Sometimes plays a move that the search has not visited.
        is_best = rng.random() < 0.6
        twin.play(twin.result.best_action if is_best else rng.choice(legal))
        if twin.state.is_terminal():
            break
    assert num_checked > 3
    if not twin.state.is_terminal():
        twin.check()


@pytest.mark.parametrize("num_leaves", [1, 4])
def test_the_end_of_a_game_of_go(num_leaves):
    """Two passes end the game; a batch may reach a finished game several times."""
    name = "go/5/nosuicide"
    twin = MinigoTwin(name, minigo(num_leaves), num_simulations=150)
    twin.play(8)
    twin.play(25)
    found = twin.check()
    ended = next(a for a in found.actions if a.action == 25)
    assert ended.visits > 90  # Black owns the complete board


def test_many_leaves_of_a_narrow_tree(moves_to):
    """With fewer moves than leaves, most descents of a batch reach pending nodes."""
    moves = moves_to("tictactoe", 6, 2)
    for num_leaves in (8, 64):
        twin = MinigoTwin("tictactoe", minigo(num_leaves), moves, num_simulations=60)
        twin.check()


@pytest.mark.parametrize(
    "settings",
    [
        {"minigo_c_init": 0.3},
        {"minigo_c_base": 10.0},
        {"minigo_value_penalty": 0.0},
        {"minigo_value_penalty": 2.0},
        {"minigo_noise_alpha": 3.0, "noise_weight": 1.0},
        {"noise_weight": 0.0},
    ],
    ids=str,
)
def test_settings(settings):
    twin = MinigoTwin(
        "connect4", minigo(4, **settings), num_simulations=90, explore=True
    )
    twin.check()
    twin.play(twin.result.best_action)
    twin.check()


def test_nobody_passes_where_another_move_is_legal():
    name = "go/3/nosuicide"
    twins = [
        MinigoTwin(
            name, minigo(4, noise_weight=0.5), num_simulations=60, may_pass=may, **noise
        )
        for may in (False, True)
        for noise in ({}, {"explore": True})
    ]
    for twin in twins:
        twin.check()
    nodes = [twins[1].search.root]
    for node in nodes:
        assert 9 not in node.children or list(node.prior) == [9]
        nodes += node.children.values()
    assert len(nodes) > 40
    # The forbidden pass has a prior and a share of the noise, as if it were allowed.
    for barred, free in zip(twins[:2], twins[2:], strict=True):
        assert barred.search.root.prior == free.search.root.prior
    assert twins[0].search.root.prior[9] != twins[1].search.root.prior[9]


def test_a_pass_that_may_not_be_is_not_the_best():
    search = ReferenceMinigo(
        minigo(4), lambda state: ([0.0] * 9 + [5.0], 0.0), may_pass=False
    )
    state = games.make("go/3/nosuicide").new_state()
    assert search.search(state, 1).best_action == 0
    assert search.most_visited(range(9)) is None


def test_simulations_come_on_top_of_what_is_kept():
    twin = MinigoTwin("connect4", minigo(1), num_simulations=50)
    before = twin.result.visits[twin.result.best_action]
    assert before > 5
    twin.play(twin.result.best_action)
    assert twin.search.root.visits == before + 50
    twin.check()


def test_pruning_leaves_what_the_value_justifies():
    """Checks pruned visits against the formula; root noise creates visits to prune."""
    num_pruned = 0
    for game in range(8):
        config = minigo(4, noise_weight=0.5, minigo_noise_alpha=0.1)
        twin = MinigoTwin(
            "gomoku/7", config, num_simulations=200, explore=True, game=game
        )
        found = twin.check()
        policy = [a.policy for a in found.actions]
        assert sum(policy) == pytest.approx(1, abs=1e-5)
        best = max(found.actions, key=lambda a: a.visits)
        for action in found.actions:
            assert action.policy / best.policy <= action.visits / best.visits + 1e-6
        num_pruned += sum(twin.result.visits.values()) - sum(
            twin.result.pruned.values()
        )
    assert num_pruned > 20


def test_the_reference_by_hand():
    search = ReferenceMinigo(
        minigo(1), lambda state: ([0.0] * 9, 0.2 if state.ply else 0.5)
    )
    state = games.make("tictactoe").new_state()
    result = search.search(state, 3)
    assert result.visits == {a: int(a < 2) for a in range(9)}
    assert result.root_value_to_play == pytest.approx(0.1 / 4)
    assert result.pruned == result.visits
    search.play(1)
    assert search.root.value_sum == pytest.approx(-0.1)
    assert search.clear() == 1
    assert search.clear() == 0
    state.apply(1)
    again = search.search(state, 2)
    assert search.root.visits == 2
    assert again.root_value_to_play == pytest.approx(0.0)


def test_virtual_losses_spread_a_batch():
    """Sixteen leaves per batch spread over more root moves than one leaf does."""
    widths = []
    for num_leaves in (1, 16):
        twin = MinigoTwin("gomoku/7", minigo(num_leaves), num_simulations=64)
        found = twin.check()
        widths.append(sum(a.visits > 0 for a in found.actions))
    assert all(narrow < wide for narrow, wide in pairwise(widths))


def test_the_search_of_one_leaf_refuses_it():
    request = _core.SearchRequest()
    with refused(_core.CoreError, "search.policy (minigo)"):
        _core.hash_search("connect4", [], minigo(4).to_native(), request)
    request.left_out = [_core.LeftOut(0, 3, 1)]
    with refused(_core.CoreError, "request.left_out (1)"):
        _core.minigo_hash_search("connect4", [], minigo(4).to_native(), request)
