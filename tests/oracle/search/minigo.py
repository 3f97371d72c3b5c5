"""The search of the MLPerf benchmark minigo, in readable form.

Source: MLPerf training v2.1, minigo; the exploration formula is AlphaZero's (Silver
et al. 2018, supplement); the pruned target is from Wu 2019, "Accelerating self-play
learning in Go", section 3.2. The native search is
core/search/minigo/minigo_search.h; tests compare the two node by node.

Differences from PUCT (`tests.oracle.search.puct`):

* Each edge starts with a value, the node's own minus a penalty, which permanently
  counts as one visit: Q = W / (1 + N).
* Leaves are evaluated in batches. Each pending leaf puts a virtual loss on its path,
  so that the next descent takes another path.
* A finished game counts its result on every descent that reaches it; nothing is
  proven.
* If the tree is discarded, as at a full ply of self-play, the new root is empty and
  the search adds one simulation per visit that the old root had.
* A forbidden pass is never descended, but keeps its prior and its share of noise.

Differs from the benchmark: every leaf waits for its batch, even if it is cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from tengen._core import Rng
from tengen.games.protocol import State
from tengen.search import SearchConfig

Evaluate = Callable[[State], tuple[Sequence[float], float]]
"""See `tests.oracle.search.Evaluate`."""

_ROOT_NOISE = 2  # the random stream, as numbered in core/base/rng.h


@dataclass
class MinigoNode:
    """A position. W is for its side to play, an edge's W for the parent's side."""

    state: State
    visits: int = 0
    """N: the node's own evaluation and the descents through it."""
    value_sum: float = 0.0
    """W: the sum of their values and of the initial value from the parent."""
    value_to_play: float = 0.0
    """The value from the evaluation."""
    prior: dict[int, float] = field(default_factory=dict)
    """The prior of each legal action, in increasing order; empty before evaluation."""
    edge_visits: dict[int, int] = field(default_factory=dict)
    """N of each legal action."""
    edge_value_sum: dict[int, float] = field(default_factory=dict)
    """W of each legal action."""
    children: dict[int, MinigoNode] = field(default_factory=dict)
    """Child nodes by action, in the order of their first descents."""

    def q(self, action: int) -> float:
        """Returns W / (1 + N) of ``action``."""
        return self.edge_value_sum[action] / (1 + self.edge_visits[action])


@dataclass
class MinigoResult:
    """The result of a search. Dicts map every legal action, in increasing order."""

    visits: dict[int, int]
    q: dict[int, float]
    pruned: dict[int, int]
    """The visits that remain after those due to noise alone are removed."""
    best_action: int
    """The most visited action."""
    root_value_to_play: float
    """The root's W / (1 + N)."""
    num_simulations: int
    """The increase in the root's visits."""


class ReferenceMinigo:
    """Searches positions of one game; reuses the tree between moves.

    Args:
        config: The settings.
        evaluate: Called once per new position.
        may_pass: Whether the search may descend to, or choose, the last action while
            another is legal.

    Attributes:
        root: The tree; None before the first search.
    """

    def __init__(
        self, config: SearchConfig, evaluate: Evaluate, *, may_pass: bool = True
    ) -> None:
        self._config = config
        self._evaluate = evaluate
        self._may_pass = may_pass
        self._last_action = -1  # known after the first evaluation
        self.root: MinigoNode | None = None

    def search(
        self,
        state: State,
        num_simulations: int,
        *,
        explore: bool = False,
        seed: int = 0,
        generation: int = 0,
        game: int = 0,
    ) -> MinigoResult:
        """Searches ``state``; arguments as in `tests.oracle.search.ReferenceSearch`.

        The simulations are in addition to those of a reused tree. The root's own
        evaluation counts as one of them.
        """
        root = self.root = self.root or MinigoNode(state.clone())
        num_before = root.visits
        wanted = num_before + num_simulations
        rng = Rng(seed, generation, game, state.ply, purpose=_ROOT_NOISE)
        needs_noise = explore
        while root.visits < wanted:
            if not root.prior:
                self._expand(root)
                _back_up([root], [])
                continue
            if needs_noise:
                self._add_noise(root, rng)
                needs_noise = False
            self._search_batch(root, wanted)
        return self._result(root, root.visits - num_before)

    def play(self, action: int) -> None:
        """Advances the root to the node of ``action``."""
        if self.root is None or not self.root.prior:
            self.root = None
        elif action in self.root.children:
            self.root = self.root.children[action]
        else:
            self.root = _child_of(self.root, action)

    def clear(self) -> int:
        """Discards the tree; returns the visits of its root."""
        num_visits = 0 if self.root is None else self.root.visits
        self.root = None
        return num_visits

    def most_visited(self, out: Collection[int] = ()) -> int | None:
        """Returns the most visited action of the root; None if none is allowed.

        Ties go to the highest `_rank`, then to the lowest action.

        Args:
            out: Actions to exclude.
        """
        root = self.root
        assert root is not None
        left = [action for action in self._allowed(root) if action not in out]

        def order(action: int) -> tuple[int, float]:
            return root.edge_visits[action], self._rank(root, action)

        return max(left, key=order) if left else None  # the first among equals

    def _search_batch(self, root: MinigoNode, wanted: int) -> None:
        """Descends until the batch of leaves is full, then backs up all of them."""
        waiting: list[tuple[list[MinigoNode], list[int]]] = []
        while (
            len(waiting) < self._config.minigo_virtual_losses and root.visits < wanted
        ):
            path, actions = self._descend(root)
            if path[-1].state.is_terminal():
                leaf = path[-1]
                leaf.value_to_play = leaf.state.returns()[leaf.state.to_play]
                _back_up(path, actions)
                continue
            for node, action in zip(path, actions, strict=False):
                node.edge_value_sum[action] -= 1
            waiting.append((path, actions))
        for path, actions in waiting:
            for node, action in zip(path, actions, strict=False):
                node.edge_value_sum[action] += 1
            if not path[-1].prior:  # otherwise expanded earlier in the batch
                self._expand(path[-1])
                _back_up(path, actions)

    def _descend(self, root: MinigoNode) -> tuple[list[MinigoNode], list[int]]:
        """Returns the nodes from the root to one without priors, and the actions."""
        path, actions = [root], []
        while path[-1].prior:
            node = path[-1]
            action = self._select(node)
            if action not in node.children:
                node.children[action] = _child_of(node, action)
            path.append(node.children[action])
            actions.append(action)
        return path, actions

    def _select(self, node: MinigoNode) -> int:
        """Returns argmax Q + c(N) sqrt(max(1, N - 1)) P / (1 + N(a)), the lowest."""
        scale = self._exploration(node) * math.sqrt(max(1, node.visits - 1))

        def score(action: int) -> float:
            explored = scale * node.prior[action] / (1 + node.edge_visits[action])
            return node.q(action) + explored

        return max(self._allowed(node), key=score)  # the first among equals

    def _allowed(self, node: MinigoNode) -> list[int]:
        """Returns the actions that may be descended; the last is the pass."""
        actions = list(node.prior)
        may_pass = self._may_pass or len(actions) == 1
        return [a for a in actions if may_pass or a != self._last_action]

    def _exploration(self, node: MinigoNode) -> float:
        base = self._config.minigo_c_base
        growth = math.log((1 + node.visits + base) / base)
        return 2 * (growth + self._config.minigo_c_init)

    def _expand(self, node: MinigoNode) -> None:
        """Evaluates a node; sets its value and its edges' priors and values."""
        logits, node.value_to_play = self._evaluate(node.state)
        self._last_action = len(logits) - 1
        legal = node.state.legal_actions()
        top = max(logits[action] for action in legal)
        powers = {action: math.exp(logits[action] - top) for action in legal}
        total = sum(powers.values())
        first_value = self._first_value(node)
        for action, power in powers.items():
            node.prior[action] = _rounded(power / total)
            node.edge_visits[action] = 0
            node.edge_value_sum[action] = first_value

    def _first_value(self, node: MinigoNode) -> float:
        value = node.value_to_play - self._config.minigo_value_penalty
        return max(-1.0, min(1.0, value))

    def _add_noise(self, root: MinigoNode, rng: Rng) -> None:
        """Mixes noise into the priors: P <- (1 - w) P + w Dirichlet(alpha, ...)."""
        draws = [rng.gamma(self._config.minigo_noise_alpha) for _ in root.prior]
        total = sum(draws)
        if total <= 0:
            return
        weight = self._config.noise_weight
        for action, draw in zip(root.prior, draws, strict=True):
            mixed = (1 - weight) * root.prior[action] + weight * draw / total
            root.prior[action] = _rounded(mixed)

    def _rank(self, node: MinigoNode, action: int) -> float:
        """Returns Q plus exploration after the search, with N + 1 at the root."""
        scale = self._exploration(node) * math.sqrt(1 + node.visits)
        explored = scale * node.prior[action] / (1 + node.edge_visits[action])
        return node.q(action) + explored

    def _result(self, root: MinigoNode, num_simulations: int) -> MinigoResult:
        scale = self._exploration(root)
        best = self.most_visited()
        assert best is not None
        pruned = {}
        for action, visits in root.edge_visits.items():
            pruned[action] = visits
            if action == best:
                continue
            behind = self._rank(root, best) - root.q(action)
            justified = 0
            if behind > 0:
                sought = scale * root.prior[action] * math.sqrt(root.visits)
                justified = math.trunc(sought / behind)
            pruned[action] = min(visits, justified)
        return MinigoResult(
            visits=dict(root.edge_visits),
            q={action: root.q(action) for action in root.prior},
            pruned=pruned,
            best_action=best,
            root_value_to_play=root.value_sum / (1 + root.visits),
            num_simulations=num_simulations,
        )


def _rounded(prior: float) -> float:
    """Rounds a prior to float32, in which tiny noise makes priors equal."""
    return float(np.float32(prior))


def _child_of(node: MinigoNode, action: int) -> MinigoNode:
    """Returns a new child node for an action."""
    state = node.state.clone()
    state.apply(action)
    value = node.edge_value_sum[action]
    return MinigoNode(
        state, value_sum=value if state.to_play == node.state.to_play else -value
    )


def _back_up(path: list[MinigoNode], actions: list[int]) -> None:
    """Adds the leaf's visit to the leaf, and to every node and edge above it."""
    leaf = path[-1]
    value = leaf.value_to_play
    leaf.visits += 1
    leaf.value_sum += value
    for depth in range(len(actions) - 1, -1, -1):
        node, child = path[depth], path[depth + 1]
        if child.state.to_play != node.state.to_play:
            value = -value
        node.edge_visits[actions[depth]] += 1
        node.edge_value_sum[actions[depth]] += value
        node.visits += 1
        node.value_sum += value
