"""Native and reference searches of the same positions, compared node by node."""

import math
import random

import pytest

from tengen import _core, games
from tengen.search import SearchConfig
from tests.oracle.search import Proof, ReferenceSearch


class Recorded:
    """A position that records the moves that led to it."""

    def __init__(self, state, moves=()):
        self.state = state
        self.moves = list(moves)

    def __getattr__(self, name):
        return getattr(self.state, name)

    def apply(self, action):
        self.state.apply(action)
        self.moves.append(action)

    def clone(self):
        return Recorded(self.state.clone(), self.moves)


class Twin:
    """One search of one position by both implementations, with the hash evaluator."""

    def __init__(self, name, moves=(), config=None, then=(), **request):
        self.game = games.make(name)
        self.moves = list(moves)
        self.config = config or SearchConfig()
        self.then = list(then)
        self.request = {"num_simulations": 64, **request}

    def state(self):
        state = Recorded(self.game.new_state())
        for move in self.moves:
            state.apply(move)
        return state

    def native(self):
        """Returns (result, nodes) of the native search."""
        request = _core.SearchRequest()
        for key, value in self.request.items():
            setattr(request, key, value)
        native = self.config.to_native()
        game = games.core_game(self.game)
        return _core.hash_search(game, self.moves, native, request, self.then)

    def reference(self):
        """Returns (result, root) of the reference search."""
        search = ReferenceSearch(
            self.config,
            self.evaluate,
            estimate_score=self.estimate_score,
            final_score=self.final_score,
            board_side=math.sqrt(self.game.height * self.game.width),
            kind=self.game.name.split("/")[0],
        )
        state = self.state()
        result = search.search(state, **self.request)
        for move in self.then:
            search.play(move)
            state.apply(move)
            result = search.search(state, **self.request)
        return result, search.root

    def evaluate(self, state):
        return _core.hash_evaluate(*state.key(), self.game.num_actions)

    def estimate_score(self, state):
        _, value = self.evaluate(state)
        return _core.hash_score(*state.key(), value)

    def final_score(self, state):
        """Returns the score of a finished game of Go, from its moves; else 0."""
        if self.game.max_score == 0:
            return 0.0
        return _core.GoPosition(self.game.name, state.moves).score()

    def check(self):
        """Asserts that both trees and results are equal."""
        native_result, nodes = self.native()
        result, root = self.reference()
        assert tree_difference(nodes, root) == ""
        assert native_result.num_simulations == result.num_simulations
        assert native_result.proof == result.proof
        assert native_result.best_action == result.best_action
        assert native_result.root_value_to_play == pytest.approx(
            result.root_value_to_play, abs=1e-4
        )
        if native_result.has_scores:
            assert native_result.root_score_to_play == pytest.approx(
                result.root_score_to_play, abs=1e-3
            )
            assert score_difference(nodes, root) == ""
        actions = native_result.actions
        assert [a.action for a in actions] == list(result.policy)
        assert [a.visits for a in actions] == list(result.visits.values())
        assert [a.policy for a in actions] == pytest.approx(
            list(result.policy.values()), abs=1e-4
        )
        return native_result


def tree_difference(nodes, root):
    """Compares node by node; returns the first difference, or an empty string."""
    queue = [(nodes[0], root, ())]
    for native, node, path in queue:
        differences = [
            name
            for name, ours, theirs in (
                ("visits", native["visits"], node.visits),
                ("proof", native["proof"], node.proof),
                ("to_play", native["to_play"], node.state.to_play),
                ("num_legal", native["num_legal"], len(node.prior)),
                ("edges", [e[0] for e in native["edges"]], list(node.children)),
            )
            if ours != theirs
        ]
        near = [("value_to_play", native["value_to_play"], node.value_to_play, 1)]
        near.append(("value_sum", native["value_sum"], node.value_sum, node.visits))
        if not differences:
            for action, prior, visits, value_sum, child in native["edges"]:
                value = node.child_value(action)
                if node.child_proof(action) == Proof.LOSS:
                    value = -math.inf  # the native search excludes lost moves this way
                near.append((f"prior of {action}", prior, node.prior[action], 0.01))
                near.append((f"sum of {action}", value_sum, value * visits, visits))
                if visits != node.children[action].visits:
                    differences.append(f"visits of {action}")
                queue.append((nodes[child], node.children[action], (*path, action)))
        for name, ours, theirs, scale in near:
            if not math.isclose(ours, theirs, abs_tol=1e-4 * max(0.01, scale)):
                differences.append(f"{name}: {ours}, not {theirs}")
        if differences:
            return f"node {path}: " + ", ".join(differences)
    return "" if len(queue) == len(nodes) else f"{len(nodes)} nodes, not {len(queue)}"


def score_difference(nodes, root):
    """Like `tree_difference`, for the scores that a tree may keep."""
    queue = [(nodes[0], root)]
    for native, node in queue:
        wanted = (node.win_loss_sum, node.score_sum, node.score[0])
        if native["score"] != pytest.approx(wanted, rel=1e-4, abs=1e-3 * node.visits):
            return f"{native['score']}, not {wanted}"
        queue += [(nodes[edge[-1]], node.children[edge[0]]) for edge in native["edges"]]
    return ""


def random_moves(name, num_plies, seed):
    """Returns random moves that lead to an unfinished position."""
    rng = random.Random(f"{name} {num_plies} {seed}")
    while True:
        state = games.make(name).new_state()
        moves = []
        while len(moves) < num_plies and not state.is_terminal():
            moves.append(rng.choice(state.legal_actions()))
            state.apply(moves[-1])
        if not state.is_terminal():
            return moves


@pytest.fixture(scope="session")
def twin():
    return Twin


@pytest.fixture(scope="session")
def moves_to():
    return random_moves
