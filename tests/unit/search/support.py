"""Holds native trees to the reference: the same search twice, and a comparison."""

import dataclasses
import math

import numpy as np

from tengen import _core, games
from tengen.search import Node, Proof, ReferenceSearch, SearchConfig


def config(**settings) -> SearchConfig:
    """A config whose numbers are float32, as they are in the native settings."""
    made = SearchConfig(**settings)
    rounded = {
        f.name: float(np.float32(getattr(made, f.name)))
        for f in dataclasses.fields(made)
        if isinstance(getattr(made, f.name), float)
    }
    return dataclasses.replace(made, **rounded)


def hash_evaluator(game):
    def evaluate(state):
        return _core.hash_evaluate(*state.key(), game.num_actions)

    return evaluate


class Float32Search(ReferenceSearch):
    """The reference in the core's arithmetic, so that near ties break alike."""

    def __init__(self, settings, evaluate):
        super().__init__(settings, evaluate, number=np.float32)

    def softmax(self, logits):
        values = _core.kernel_softmax("baseline", np.array(logits, np.float32))
        return [np.float32(value) for value in values]


def state_after(game, moves):
    state = game.new_state()
    for move in moves:
        state.apply(move)
    return state


def native_search(name, moves, settings, then=(), **request):
    asked = _core.SearchRequest()
    for key, value in request.items():
        setattr(asked, key, value)
    return _core.hash_search(
        name, list(moves), settings.to_native(), asked, list(then)
    )


def reference_search(name, moves, settings, then=(), kind=Float32Search, **request):
    """Returns (search, result) of the last search."""
    game = games.make(name)
    search = kind(settings, hash_evaluator(game))
    state = state_after(game, moves)
    request = dict(request)
    num_simulations = request.pop("num_simulations")
    result = search.search(state, num_simulations, **request)
    for move in then:
        search.play(move)
        state.apply(move)
        result = search.search(state, num_simulations, **request)
    return search, result


def same_tree(dump, root: Node, tolerance=1e-4) -> str:
    """Compares node by node; returns the first difference, or nothing."""
    queue = [(0, root, ())]
    num_nodes = 0
    while queue:
        index, node, path = queue.pop(0)
        num_nodes += 1
        native = dump[index]
        where = f"node {path}: "
        if native["visits"] != node.visits:
            return where + f"visits {native['visits']} != {node.visits}"
        if native["proof"] != node.proof:
            return where + f"proof {native['proof']} != {node.proof}"
        if native["to_play"] != node.state.to_play:
            return where + "to_play"
        if native["num_legal"] != len(node.prior):
            return where + f"num_legal {native['num_legal']} != {len(node.prior)}"
        for name in ("value_sum", "value_to_play"):
            if not math.isclose(
                native[name],
                getattr(node, name),
                abs_tol=tolerance * max(1, node.visits),
            ):
                return where + f"{name} {native[name]} != {getattr(node, name)}"
        actions = [edge[0] for edge in native["edges"]]
        if actions != list(node.children):
            return where + f"edges {actions} != {list(node.children)}"
        for action, prior, visits, value_sum, child in native["edges"]:
            edge = f"{where}edge {action}: "
            if visits != node.children[action].visits:
                return edge + f"visits {visits}"
            if not math.isclose(prior, node.prior[action], abs_tol=1e-6):
                return edge + f"prior {prior} != {node.prior[action]}"
            if node.child_proof(action) == Proof.LOSS:
                expected = -math.inf
            else:
                expected = node.child_value(action) * visits
            if not math.isclose(value_sum, expected, abs_tol=tolerance * visits):
                return edge + f"value_sum {value_sum} != {expected}"
            queue.append((child, node.children[action], (*path, action)))
    if num_nodes != len(dump):
        return f"{len(dump)} nodes != {num_nodes}"
    return ""
