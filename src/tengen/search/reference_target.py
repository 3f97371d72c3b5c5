"""What the reference search learns and plays of a finished search."""

from __future__ import annotations

import math

from tengen.search.reference_tree import Node, Proof
from tengen.search.settings import SearchConfig

__all__ = [
    "best_by_lower_bound",
    "lower_bound",
    "prune_forced_playouts",
    "training_target",
]


def training_target(root: Node, weights: dict[int, float]) -> dict[int, float]:
    """Normalises; proven results decide where there are any.

    A won root trains on its winning moves and a drawn one on its drawing moves only,
    any other on no move that is proven lost (unless all are). Where none of the moves
    left has any weight, their priors stand in.
    """

    def is_out(action: int) -> bool:
        proof = Proof.UNKNOWN
        if action in root.children:
            proof = root.child_proof(action)
        if root.proof in (Proof.WIN, Proof.DRAW):
            return proof != root.proof
        return root.proof != Proof.LOSS and proof == Proof.LOSS

    target = {a: 0.0 if is_out(a) else weight for a, weight in weights.items()}
    if sum(target.values()) <= 0:
        target = {a: 0.0 if is_out(a) else prior for a, prior in root.prior.items()}
    total = sum(target.values())
    return {action: weight / total for action, weight in target.items()}


def prune_forced_playouts(
    root: Node, visits: dict[int, int], scale: float
) -> dict[int, float]:
    """Returns the visits that the search would have made of its own accord.

    Of every action but the most visited, those are left at which its PUCT score,
    Q + scale * P / (1 + visits), would have been that of the most visited. Then single
    visits go, where the most visited has 64 or more. So noise explores without being
    learned (Wu 2019, section 3.2).

    Differs from the paper: all visits that the value does not justify go, not only as
    many as were forced; as KataGo does.

    Args:
        root: An unsettled root.
        visits: Of every legal action.
        scale: The factor of its exploration term.
    """
    pruned = {action: float(count) for action, count in visits.items()}
    candidates = [a for a in root.prior if a in root.open_actions() and visits[a]]
    if not candidates:
        return pruned
    best = max(candidates, key=lambda a: (visits[a], root.prior[a]))
    best_score = root.child_value(best) + scale * root.prior[best] / (1 + visits[best])
    for action in root.children:
        if action == best:
            continue
        gap = best_score - root.child_value(action)
        if gap > 0:
            wanted = max(0.0, scale * root.prior[action] / gap - 1)
            pruned[action] = min(pruned[action], float(math.ceil(wanted)))
        if pruned[action] <= min(1.0, visits[best] / 64):
            pruned[action] = 0.0
    return pruned


def lower_bound(mean: float, mean_square: float, visits: int, stdevs: float) -> float:
    """Returns a mean value less so many standard errors of it.

    A variance of 1 weighs in as 1 / visits^2 visits, so that few visits are not taken
    for certain. Source: KataGo's LCB.
    """
    variance = max(0.0, mean_square - mean**2) + 1 / (visits**3 + 1)
    return mean - stdevs * math.sqrt(variance / visits)


def best_by_lower_bound(config: SearchConfig, root: Node) -> int | None:
    """Returns the action with the highest lower bound; None where all lose.

    Only actions with 15 % of the most visits stand for election. A settled action has
    its exact value.
    """
    visited = [a for a in root.open_actions() if a in root.children]
    if not visited:
        return None
    most = max(root.children[action].visits for action in visited)

    def bound(action: int) -> float:
        child = root.children[action]
        mean = root.child_value(action)
        if child.proof != Proof.UNKNOWN:
            return mean
        return lower_bound(mean, child.mean_square, child.visits, config.lcb_stdevs)

    able = [a for a in visited if 20 * root.children[a].visits >= 3 * most]
    return max(able, key=bound)
