"""The search, written to be read: start here, then core/search/search.h.

One search looks at one position. It begins with the root alone and makes
``num_simulations`` descents. Each walks from the root along the moves that its policy
selects, adds one new position to the tree, has it evaluated, and adds the value to
every position on the way back. Two policies select moves:

* PUCT (Silver et al. 2017, "Mastering the game of Go without human knowledge",
  Methods), for hundreds of simulations a move.
* Gumbel (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"), for a
  few; see `tengen.search.reference_gumbel`.

Differs from the papers: results of finished games are proven up the tree. A position
is won where one move is, and settled where every move is; a settled position has its
exact value, is not searched further, and a move proven lost is not tried again.

The native search is far faster and must build the very same tree: tests hold it to
this one node by node. A node here lists all its legal moves and scores each of them;
the native one scores the visited moves and the best of the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tengen._core import Rng
from tengen.games.protocol import State
from tengen.search.reference_gumbel import GumbelPolicy
from tengen.search.reference_tree import Node, Proof, prove
from tengen.search.settings import SearchConfig

__all__ = ["Evaluate", "ReferenceSearch", "SearchResult"]

Evaluate = Callable[[State], tuple[Sequence[float], float]]
"""A position's evaluation: logits ``[A]`` of any scale, of which those of legal moves
count, and ``value_to_play`` in [-1, 1]."""

# Streams of random numbers, as numbered in core/base/rng.h.
_ROOT_NOISE = 2


@dataclass
class SearchResult:
    """What a search found. Dicts map every legal action, in increasing order."""

    visits: dict[int, int]
    policy: dict[int, float]
    """The training target; sums to 1."""
    root_value_to_play: float
    """In [-1, 1]; exact where proven."""
    proof: Proof
    best_action: int
    """The strongest by this search."""
    num_simulations: int
    """Descents made; fewer than asked for where the root was proven or reused."""


class ReferenceSearch:
    """Searches positions of one game; keeps the tree between moves.

    ::

        search = ReferenceSearch(SearchConfig(), evaluate)
        result = search.search(state, num_simulations=200)
        state.apply(result.best_action)
        search.play(result.best_action)  # the next search goes on with its subtree

    Args:
        config: The settings.
        evaluate: Called once a new position; a network, or anything else.
        number: The type of every stored number and of all arithmetic. Tests pass
            ``numpy.float32`` to break near ties as the native search does.
    """

    def __init__(
        self,
        config: SearchConfig,
        evaluate: Evaluate,
        number: Callable[[float], float] = float,
    ) -> None:
        self.config = config
        self.root: Node | None = None
        self._evaluate = evaluate
        self._number = number
        self._gumbel = GumbelPolicy(config, number)

    def search(
        self,
        state: State,
        num_simulations: int,
        *,
        explore: bool = False,
        seed: int = 0,
        generation: int = 0,
        game: int = 0,
    ) -> SearchResult:
        """Searches ``state``, which must not be finished and is left alone.

        Args:
            state: The position; after `play`, the one that the moves led to.
            num_simulations: Descents; those that a reused subtree holds count towards
                it. A Gumbel search starts afresh, because its schedule must.
            explore: Root temperature and noise on, or the Gumbel draws.
            seed: With ``generation``, ``game`` and the position's ply, names the
                stream of random numbers: equal names give equal searches.
            generation: See ``seed``.
            game: See ``seed``.
        """
        if self.config.policy == "gumbel" or self.root is None:
            self.root = Node(state.clone())
            self._expand(self.root)
        root = self.root
        # The root's own evaluation is no descent.
        num_left = num_simulations - (root.visits - 1)
        key = (seed, generation, game, state.ply)
        if self.config.policy == "gumbel":
            self._gumbel.begin(root, num_simulations, explore, key)
        elif explore:
            self._apply_root_temperature(root)
            self._add_root_noise(root, Rng(*key, purpose=_ROOT_NOISE))
        num_made = 0
        while num_made < num_left and root.proof == Proof.UNKNOWN:
            self._simulate(root)
            num_made += 1
        return self._result(root, num_made)

    def play(self, action: int) -> None:
        """The game went on with ``action``: keeps its subtree, if there is one."""
        child = self.root.children.get(action) if self.root else None
        self.root = child if child is not None and child.prior else None

    def softmax(self, logits: Sequence[float]) -> list[float]:
        """Returns ``exp(logits)`` normalised; shifted so that nothing overflows."""
        top = max(logits)
        powers = [self._number(math.exp(logit - top)) for logit in logits]
        total = sum(powers)
        return [power / total for power in powers]

    def _simulate(self, root: Node) -> None:
        """One descent: select to a new or settled position, evaluate, back up."""
        path = [root]
        while True:
            node = path[-1]
            action = self._select(node, is_root=node is root)
            is_new = action not in node.children
            if is_new:
                state = node.state.clone()
                state.apply(action)
                node.children[action] = Node(state)
            leaf = node.children[action]
            path.append(leaf)
            if is_new or leaf.proof != Proof.UNKNOWN:
                break
        if not is_new:
            value = leaf.proof.value
        elif leaf.state.is_terminal():
            value = leaf.state.returns()[leaf.state.to_play]
            leaf.proof = {1: Proof.WIN, -1: Proof.LOSS}.get(int(value), Proof.DRAW)
        else:
            value = self._expand(leaf)
        self._back_up(path, self._number(value))

    def _expand(self, node: Node) -> float:
        """Evaluates a node: gives it its priors; returns the value to play."""
        logits, value = self._evaluate(node.state)
        legal = node.state.legal_actions()
        prior = self.softmax([self._number(logits[action]) for action in legal])
        node.prior = dict(zip(legal, prior, strict=True))
        node.value_to_play = self._number(value)
        if node is self.root:  # any other node gets its first visit by back-up
            node.visits = 1
            node.value_sum = node.value_to_play
        return value

    def _back_up(self, path: list[Node], value: float) -> None:
        """Adds the leaf's value, of its side to play, to every node of the path."""
        path[-1].visits += 1
        path[-1].value_sum += value
        for child, node in itertools.pairwise(reversed(path)):
            if child.state.to_play != node.state.to_play:
                value = -value
            if child.proof != Proof.UNKNOWN:
                node.proof = prove(node)
                if node.proof != Proof.UNKNOWN:
                    value = self._number(node.proof.value)
            node.visits += 1
            node.value_sum += value

    def _select(self, node: Node, is_root: bool) -> int:
        if self.config.policy == "puct":
            return self._select_puct(node, is_root)
        if is_root:
            return self._gumbel.select_root(node)
        return self._gumbel.select_below(node)

    def _select_puct(self, node: Node, is_root: bool) -> int:
        """Returns argmax Q(a) + c(N) P(a) sqrt(N) / (1 + N(a)), N over all children.

        Differs from the paper: sqrt(N + 0.01), so that the prior decides the first
        descent; c grows with N (AlphaZero, as KataGo writes it); Q of an unvisited
        child is the node's own value, lower the more prior mass was visited (FPU).
        Equal scores: the child visited first, then the larger prior, then the lower
        action.
        """
        config, number = self.config, self._number
        visits = node.visits - 1
        growth = math.log((visits + config.cpuct_base) / config.cpuct_base)
        c = config.cpuct + config.cpuct_log * growth
        scale = number(c * math.sqrt(visits + 0.01))
        reduction = config.root_fpu_reduction if is_root else config.fpu_reduction
        visited_prior = sum((node.prior[a] for a in node.children), start=number(0.0))
        fpu = node.mean_value - number(reduction) * number(math.sqrt(visited_prior))

        def score(action: int) -> float:
            if action not in node.children:
                return fpu + scale * node.prior[action]
            n = number(node.children[action].visits)
            return node.child_value(action) + scale * node.prior[action] / (n + 1)

        def order(action: int) -> tuple[float, bool, float]:
            is_visited = action in node.children
            prior = number(0.0) if is_visited else node.prior[action]
            return score(action), is_visited, prior

        return max(node.open_actions(), key=order)  # the first of equal ones

    def _apply_root_temperature(self, root: Node) -> None:
        """P <- P^(1/T), normalised."""
        temperature = self.config.root_temperature
        if temperature == 1.0:
            return
        powers = [
            self._number(float(p) ** (1 / temperature)) for p in root.prior.values()
        ]
        total = sum(map(float, powers))
        for action, power in zip(root.prior, powers, strict=True):
            root.prior[action] = self._number(power / total)

    def _add_root_noise(self, root: Node, rng: Rng) -> None:
        """P <- (1 - w) P + w Dirichlet(total / n, ..., total / n).

        Source: AlphaGo Zero, Methods, "Self-play". Differs from the paper: the
        concentration is a total over the n legal moves, as in KataGo, so that it
        needs no constant a board size. A Dirichlet draw is normalised gamma draws.
        """
        weight = self.config.noise_weight
        alpha = self._number(self.config.noise_alpha_total) / len(root.prior)
        draws = [rng.gamma(float(alpha)) for _ in root.prior]
        total = sum(draws)
        if total <= 0:
            return
        for action, draw in zip(root.prior, draws, strict=True):
            prior = (1 - weight) * float(root.prior[action]) + weight * (draw / total)
            root.prior[action] = self._number(prior)

    def _result(self, root: Node, num_simulations: int) -> SearchResult:
        if self.config.policy == "gumbel":
            weights = self._gumbel.improved_policy(root)
        else:
            weights = {
                a: self._number(root.children[a].visits if a in root.children else 0)
                for a in root.prior
            }
        policy = self._training_target(root, weights)
        if self.config.policy == "gumbel" and root.children and not root.proof:
            best_action = self._gumbel.choose(root)
        else:
            best_action = max(policy, key=lambda a: (policy[a], root.prior[a]))
        return SearchResult(
            visits={
                a: root.children[a].visits if a in root.children else 0
                for a in root.prior
            },
            policy=policy,
            root_value_to_play=root.proof.value if root.proof else root.mean_value,
            proof=root.proof,
            best_action=best_action,
            num_simulations=num_simulations,
        )

    def _training_target(
        self, root: Node, weights: dict[int, float]
    ) -> dict[int, float]:
        """Normalises; proven results decide where there are any.

        A won root trains on its winning moves and a drawn one on its drawing moves
        only, any other on no move that is proven lost (unless all are). Where none
        of the moves left was visited, their priors stand in.
        """

        def allowed(action: int) -> bool:
            proof = root.child_proof(action) if action in root.children else None
            if root.proof in (Proof.WIN, Proof.DRAW):
                return proof == root.proof
            return root.proof == Proof.LOSS or proof != Proof.LOSS

        target = {a: w if allowed(a) else 0 * w for a, w in weights.items()}
        if sum(target.values()) <= 0:
            target = {a: p if allowed(a) else 0 * p for a, p in root.prior.items()}
        total = sum(target.values())
        return {action: weight / total for action, weight in target.items()}
