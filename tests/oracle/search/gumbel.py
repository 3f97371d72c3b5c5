"""The Gumbel policy of the reference search: sequential halving at the root only.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel", ICLR.
Letters of the paper: m actions considered, n simulations, g Gumbel noise, q values.

Differs from the paper: an action proven lost is dropped, and its simulations go to
the best remaining actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tengen._core import Rng
from tengen.search import SearchConfig
from tests.oracle.search.tree import Node, Proof


def halving_phases(m: int, n: int) -> Iterator[tuple[int, int]]:
    """Yields the phases of sequential halving: (actions, visits per action).

    Source: section 3 of the paper, after Karnin et al. 2013. There are log2(m) phases
    of n / log2(m) simulations, each with half the actions of the one before.
    Remaining simulations go to the last two actions. The iterator is endless: the
    caller stops after n simulations, possibly within a phase.

    Args:
        m: Actions considered, at least 1.
        n: Simulations, at least 1.
    """
    num_phases = max(1, math.ceil(math.log2(m)))
    num_actions = m
    while True:
        yield num_actions, max(1, n // (num_phases * num_actions))
        num_actions = max(min(m, 2), num_actions // 2)


def mixed_value(node: Node, own: float, q: Callable[[int], float]) -> float:
    """Returns the value that replaces q for every unvisited action.

    It averages the evaluator's value (weight 1) and the prior-weighted mean of the
    visited children (weight: their visits); see appendix D of the paper.

    Args:
        node: The node.
        own: The evaluator's value for the node.
        q: Returns q of a visited action.
    """
    if not node.children:
        return own
    prior = sum(node.prior[action] for action in node.children)
    weighted = sum(node.prior[a] * q(a) for a in node.children)
    visits = sum(child.visits for child in node.children.values())
    return (own + visits * weighted / prior) / (1 + visits)


def improved_policy(config: SearchConfig, node: Node) -> dict[int, float]:
    """Returns softmax(logits + sigma(completed q)) over all legal actions.

    This is also the training target (paper, section 4). sigma(q) is (c_visit + the
    maximum visits of a child) * c_scale * q. The log prior replaces the logit: they
    differ by a constant, which does not change a softmax.
    """
    scale = _sigma_scale(config, node)

    def q(action: int) -> float:
        # A lost action has the minimum value, by however many points it loses.
        is_lost = node.child_proof(action) == Proof.LOSS
        return -1 - config.score_weight if is_lost else node.child_value(action)

    mixed = mixed_value(node, node.value_to_play, q)
    sigma = {
        action: scale * (q(action) if action in node.children else mixed)
        for action in node.prior
    }
    top = max(sigma.values())
    weights = {a: p * math.exp(sigma[a] - top) for a, p in node.prior.items()}
    total = sum(weights.values())
    return {action: weight / total for action, weight in weights.items()}


def target_mean(
    root: Node, target: dict[int, float], own: float, q: Callable[[int], float]
) -> float:
    """Returns the mean of q under the training target, for an unsettled root.

    Differs from the paper, which trains on returns, and from the authors' programs,
    which average over all visits. Halving also spends visits on worse actions, so
    the mean under the target predicts the outcome better (benchmarks/results).

    Args:
        root: The root.
        target: The probability of every legal action.
        own: See ``mixed_value``.
        q: See ``mixed_value``.
    """
    mixed = mixed_value(root, own, q)
    return sum(
        share * (q(action) if action in root.children else mixed)
        for action, share in target.items()
    )


def select_below(config: SearchConfig, node: Node) -> int:
    """Returns argmax improved policy(a) - N(a) / (1 + N), for a node below the root.

    Visits thus follow the improved policy without randomness (paper, section 5). Ties:
    the child visited first, then the larger prior, then the lower action.
    """
    policy = improved_policy(config, node)

    def order(action: int) -> tuple[float, bool, float]:
        if action not in node.children:
            return policy[action], False, node.prior[action]
        # 1 + N counts the node's own evaluation and the visits of its children.
        share = node.children[action].visits / node.visits
        return policy[action] - share, True, 0.0

    return max(node.open_actions(), key=order)  # the first among equals


class GumbelRoot:
    """The plan of one search: the Gumbel noise and the halving schedule.

    The m actions with the largest g + logit are considered. They are a sample of m
    actions from the prior, without replacement.

    Args:
        config: The settings.
        root: The evaluated root, without children.
        num_simulations: n.
        rng: Samples g for every legal action, in order; None: every g is 0.
    """

    def __init__(
        self, config: SearchConfig, root: Node, num_simulations: int, rng: Rng | None
    ) -> None:
        self._config = config
        self._root = root
        self._logits = {
            action: math.log(max(prior, 1e-30)) + (rng.gumbel() if rng else 0.0)
            for action, prior in root.prior.items()
        }
        m = min(config.gumbel_considered, len(root.prior), max(num_simulations, 1))
        self._rounds = _visit_rounds(m, num_simulations)

    def select(self) -> int:
        """Returns the action that the next simulation visits.

        A phase visits its actions in rounds. Each round visits, best first, actions
        that took part in every round so far. A round shorter than the previous one
        drops the worst actions; this is the halving.
        """
        wanted = next(self._rounds)
        open_actions = self._root.open_actions()
        ready = [a for a in open_actions if self._visits(a) == wanted]
        if not ready:  # all ready actions are proven lost
            ready = [a for a in open_actions if a in self._root.children]
        return self._best(ready or open_actions)

    def choose(self) -> int:
        """Returns the action to play: the best of the most visited that is not lost."""
        open_actions = self._root.open_actions()
        most = max(map(self._visits, open_actions))
        return self._best([a for a in open_actions if self._visits(a) == most])

    def _best(self, actions: list[int]) -> int:
        """Returns argmax g + logit + sigma(q); ties go to the lowest action."""
        scale = _sigma_scale(self._config, self._root)

        def score(action: int) -> float:
            # Unvisited actions share one completed q, which does not affect the argmax;
            # they are never compared with visited ones here.
            if action not in self._root.children:
                return self._logits[action]
            return self._logits[action] + scale * self._root.child_value(action)

        return max(sorted(actions), key=score)

    def _visits(self, action: int) -> int:
        child = self._root.children.get(action)
        return child.visits if child else 0


def _sigma_scale(config: SearchConfig, node: Node) -> float:
    most = max((child.visits for child in node.children.values()), default=0)
    return (config.gumbel_visit + most) * config.gumbel_scale


def _visit_rounds(m: int, n: int) -> Iterator[int]:
    """Yields, for every simulation, how often its action has been visited before."""
    num_rounds = 0
    for num_actions, num_visits in halving_phases(m, n):
        for _ in range(num_visits):
            yield from [num_rounds] * num_actions
            num_rounds += 1
