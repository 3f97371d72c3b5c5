"""The training target and the best action of a finished reference search."""

from __future__ import annotations

import math

from tengen.search import SearchConfig
from tests.oracle.search.tree import Node, Proof


def training_target(root: Node, weights: dict[int, float]) -> dict[int, float]:
    """Returns the normalised training target; proven results decide first.

    A won root trains only on its winning moves, and a drawn root only on its drawing
    moves. Any other root excludes moves that are proven lost, unless all are. If no
    remaining move has weight, the target is proportional to their priors.
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
    """Returns the visits that the search would have made without forced playouts.

    Every action except the most visited keeps at most as many visits as make its PUCT
    score, Q + scale * P / (1 + visits), equal to that of the most visited action. Then
    single visits are removed if the most visited action has 64 or more. Noise thus
    explores without being learned (Wu 2019, section 3.2).

    Differs from the paper, as in KataGo: all visits that the value does not justify are
    removed, not only the forced ones.

    Args:
        root: An unsettled root.
        visits: Visits of every legal action.
        scale: The scale of the root's exploration term.
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
    """Returns the mean value minus ``stdevs`` of its standard errors.

    A variance of 1, weighted as 1 / visits^2 visits, is mixed in, so that a value with
    few visits is not treated as certain. Source: KataGo's LCB.
    """
    variance = max(0.0, mean_square - mean**2) + 1 / (visits**3 + 1)
    return mean - stdevs * math.sqrt(variance / visits)


def best_by_lower_bound(config: SearchConfig, root: Node) -> int | None:
    """Returns the action with the highest lower bound; None if all lose.

    Only actions with at least 15 % of the maximum visit count are considered. The
    bound of a settled action is its exact value.
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
