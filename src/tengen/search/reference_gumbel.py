"""The Gumbel policy of the reference search: a schedule at the root, no noise below.

Source: Danihelka et al. 2022, "Policy improvement by planning with Gumbel", ICLR.
Letters of the paper: m actions considered, n simulations, g Gumbel draws, q values.

Differs from the paper: an action proven lost is dropped, and its simulations go to
the best of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tengen._core import Rng
from tengen.search.reference_tree import Node
from tengen.search.settings import SearchConfig

__all__ = ["GumbelPolicy", "halving_phases"]

# The stream of random numbers, as numbered in core/base/rng.h.
_GUMBEL = 5


def halving_phases(m: int, n: int) -> Iterator[tuple[int, int]]:
    """Yields the phases of sequential halving: (actions, visits to each of them).

    Source: section 3.3 and appendix A of the paper, after Karnin et al. 2013. There
    are log2(m) phases of n / log2(m) simulations, each with half the actions of the
    one before; simulations left over go to the last two. Endless: the caller stops
    after n simulations, within a phase where they do not divide.

    Args:
        m: Actions considered, at least 1.
        n: Simulations, at least 1.
    """
    num_phases = max(1, math.ceil(math.log2(m)))
    num_actions = m
    while True:
        yield num_actions, max(1, n // (num_phases * num_actions))
        # Of one action there is no half, of two and three the last phase has two.
        num_actions = max(min(m, 2), num_actions // 2)


class GumbelPolicy:
    """Selects actions for `tengen.search.ReferenceSearch`.

    Args:
        config: The settings.
        number: As in `tengen.search.ReferenceSearch`.
    """

    def __init__(self, config: SearchConfig, number: Callable[[float], float]) -> None:
        self._config = config
        self._number = number
        self._logits: dict[int, float] = {}  # g + logit of every legal action
        self._rounds: Iterator[int] = iter(())

    def begin(
        self,
        root: Node,
        num_simulations: int,
        explore: bool,
        key: tuple[int, int, int, int],
    ) -> None:
        """Draws g for every legal action, in their order, and plans the visits.

        The m actions with the largest g + logit are considered: that is sampling m
        actions without replacement. Without ``explore`` every g is 0.
        """
        rng = Rng(*key, purpose=_GUMBEL)
        self._logits = {}
        for action, prior in root.prior.items():
            draw = rng.gumbel() if explore else 0.0
            # A log prior is a logit but for a constant, which moves no argmax.
            logit = math.log(max(prior, 1e-30))
            self._logits[action] = self._number(draw + logit)
        m = min(
            self._config.gumbel_considered, len(root.prior), max(num_simulations, 1)
        )
        self._rounds = self._visit_rounds(m, num_simulations)

    def select_root(self, root: Node) -> int:
        """Returns the action that the next simulation visits.

        A phase visits its actions in rounds: in each, those that took part in every
        round so far, the best first. When a phase has fewer rounds to give than
        actions, the worst are never reached again: this is the halving.
        """
        wanted = next(self._rounds)
        ready = [a for a in root.open_actions() if self._visits(root, a) == wanted]
        if not ready:  # the others are proven lost
            ready = [a for a in root.open_actions() if a in root.children]
        return self._best(root, ready or root.open_actions())

    def choose(self, root: Node) -> int:
        """Returns the action to play: the best of the most visited, none lost."""
        candidates = root.open_actions()
        most = max(self._visits(root, action) for action in candidates)
        return self._best(
            root, [a for a in candidates if self._visits(root, a) == most]
        )

    def select_below(self, node: Node) -> int:
        """Returns argmax improved policy(a) - N(a) / (1 + N), below the root.

        So visits follow the improved policy without noise (paper, section 5). Equal
        scores: as in PUCT.
        """
        policy = self.improved_policy(node)
        total = self._number(node.visits)  # 1 + N: its own evaluation counts too

        def order(action: int) -> tuple[float, bool, float]:
            is_visited = action in node.children
            visits = self._number(self._visits(node, action))
            prior = self._number(0.0) if is_visited else node.prior[action]
            return policy[action] - visits / total, is_visited, prior

        return max(node.open_actions(), key=order)

    def improved_policy(self, node: Node) -> dict[int, float]:
        """Returns softmax(logits + sigma(completed q)) over all legal actions.

        It is also the training target (paper, section 4). The softmax is written with
        the priors in place of the exponentials of the logits.
        """
        mixed = self.mixed_value(node)
        sigma = {
            action: self._scale(node)
            * (node.child_value(action) if action in node.children else mixed)
            for action in node.prior
        }
        top = max(sigma.values())
        weights = {
            action: node.prior[action] * self.exponential(sigma[action] - top)
            for action in node.prior
        }
        total = sum(weights.values(), start=self._number(0.0))
        return {action: weight / total for action, weight in weights.items()}

    def mixed_value(self, node: Node) -> float:
        """Returns the value that completes q: that of every unvisited action.

        The evaluator's value and the visited children's mean under the prior, the
        latter weighing as much as the children have visits (paper, appendix D).
        """
        if not node.children:
            return node.value_to_play
        zero = self._number(0.0)
        prior = sum((node.prior[a] for a in node.children), start=zero)
        weighted = sum(
            (node.prior[a] * node.child_value(a) for a in node.children), start=zero
        )
        visits = self._number(sum(child.visits for child in node.children.values()))
        return (node.value_to_play + visits * weighted / prior) / (1 + visits)

    def exponential(self, x: float) -> float:
        """Returns e^x, x <= 0."""
        return self._number(math.exp(x))

    def _scale(self, node: Node) -> float:
        """The factor of q in sigma: (c_visit + most visits of a child) * c_scale."""
        most = max((child.visits for child in node.children.values()), default=0)
        c_visit = self._number(self._config.gumbel_visit)
        return (c_visit + self._number(most)) * self._number(self._config.gumbel_scale)

    def _best(self, root: Node, actions: list[int]) -> int:
        """Returns argmax g + logit + sigma(q); the lowest action of equal ones."""
        scale = self._scale(root)

        def score(action: int) -> float:
            # Unvisited actions share one completed q, which moves no argmax; they
            # never meet visited ones here.
            if action not in root.children:
                return self._logits[action]
            return self._logits[action] + scale * root.child_value(action)

        return max(sorted(actions), key=score)

    @staticmethod
    def _visits(node: Node, action: int) -> int:
        return node.children[action].visits if action in node.children else 0

    @staticmethod
    def _visit_rounds(m: int, n: int) -> Iterator[int]:
        """Yields, for every simulation, how often its action was visited before."""
        num_rounds = 0
        for num_actions, num_visits in halving_phases(m, n):
            for _ in range(num_visits):
                yield from [num_rounds] * num_actions
                num_rounds += 1
