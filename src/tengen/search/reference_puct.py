"""The PUCT policy of the reference search, and its exploration at the root.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge"
(AlphaGo Zero), Methods; the growing constant is from Silver et al. 2018 (AlphaZero),
supplement, and the other changes are KataGo's (Wu 2020).
"""

from __future__ import annotations

import math

from tengen._core import Rng
from tengen.search.reference_tree import Node
from tengen.search.settings import SearchConfig

__all__ = ["add_root_noise", "apply_root_temperature", "select_puct"]


def select_puct(config: SearchConfig, node: Node, is_root: bool) -> int:
    """Returns argmax Q(a) + c(N) P(a) sqrt(N) / (1 + N(a)), N over all children.

    Differs from the paper: sqrt(N + 0.01), so that the prior decides the first
    descent; c grows with N; Q of an unvisited child is the node's own value, lower
    the more prior mass was visited (first play urgency). Equal scores: the child
    visited first, then the larger prior, then the lower action.

    Args:
        config: The settings.
        node: An evaluated position with a move that is not proven lost.
        is_root: Whether it is where the search began.
    """
    visits = node.visits - 1  # its own evaluation is no visit of a child
    growth = math.log((visits + config.cpuct_base) / config.cpuct_base)
    scale = (config.cpuct + config.cpuct_log * growth) * math.sqrt(visits + 0.01)
    reduction = config.root_fpu_reduction if is_root else config.fpu_reduction
    visited_prior = sum(node.prior[action] for action in node.children)
    fpu = node.mean_value - reduction * math.sqrt(visited_prior)

    def order(action: int) -> tuple[float, bool, float]:
        prior = node.prior[action]
        if action not in node.children:
            return fpu + scale * prior, False, prior
        num_visits = node.children[action].visits
        return node.child_value(action) + scale * prior / (1 + num_visits), True, 0.0

    return max(node.open_actions(), key=order)  # the first of equal ones


def apply_root_temperature(config: SearchConfig, root: Node) -> None:
    """P <- P^(1/T), normalised."""
    powers = {a: p ** (1 / config.root_temperature) for a, p in root.prior.items()}
    total = sum(powers.values())
    root.prior = {action: power / total for action, power in powers.items()}


def add_root_noise(config: SearchConfig, root: Node, rng: Rng) -> None:
    """P <- (1 - w) P + w Dirichlet(total / n, ..., total / n), n legal moves.

    Differs from the paper: the concentration is a total over the legal moves, so that
    it needs no constant a board size. A Dirichlet draw is gamma draws, normalised.
    """
    weight = config.noise_weight
    alpha = config.noise_alpha_total / len(root.prior)
    draws = [rng.gamma(alpha) for _ in root.prior]
    total = sum(draws)
    if total <= 0:
        return
    for action, draw in zip(root.prior, draws, strict=True):
        noise = draw / total
        root.prior[action] = (1 - weight) * root.prior[action] + weight * noise
