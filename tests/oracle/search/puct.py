"""The PUCT policy of the reference search, and its exploration at the root.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge"
(AlphaGo Zero), Methods; the growing constant is from Silver et al. 2018 (AlphaZero),
supplement, and the other changes are KataGo's (Wu 2019, "Accelerating self-play
learning in Go", and the documents of lightvector/KataGo).
"""

from __future__ import annotations

import math

from tengen._core import Rng
from tengen.search import SearchConfig
from tests.oracle.search.tree import Node, Proof

_STDEV_PRIOR = 0.4  # assumed for a node with unknown values
_STDEV_PRIOR_VISITS = 2.0  # the weight of this assumption, in visits


def select_puct(config: SearchConfig, node: Node, is_root: bool) -> int:
    """Returns argmax Q(a) + c(N) P(a) sqrt(N) / (1 + N(a)), N over all children.

    Differs from the paper: sqrt(N + 0.01), so that the prior decides the first
    descent; c grows with N; Q of an unvisited child is the node's own value, reduced
    by the visited prior mass (first-play urgency). Ties: the child visited first, then
    the larger prior, then the lower action.

    Args:
        config: The settings.
        node: An evaluated position with a move that is not proven lost.
        is_root: Whether the node is the root of the search.
    """
    scale = exploration_scale(config, node)
    reduction = config.root_fpu_reduction if is_root else config.fpu_reduction
    visited_prior = sum(node.prior[action] for action in node.children)
    fpu = node.mean_value - reduction * math.sqrt(visited_prior)

    def order(action: int) -> tuple[float, bool, float]:
        prior = node.prior[action]
        if action not in node.children:
            return fpu + scale * prior, False, prior
        num_visits = node.children[action].visits
        return node.child_value(action) + scale * prior / (1 + num_visits), True, 0.0

    return max(node.open_actions(), key=order)  # the first among equals


def exploration_scale(config: SearchConfig, node: Node) -> float:
    """Returns c(N) sqrt(N + 0.01), times ``stdev_factor``."""
    visits = node.visits - 1  # the node's own evaluation is not a visit of a child
    growth = math.log((visits + config.cpuct_base) / config.cpuct_base)
    scale = (config.cpuct + config.cpuct_log * growth) * math.sqrt(visits + 0.01)
    return scale * stdev_factor(config, node)


def stdev_factor(config: SearchConfig, node: Node) -> float:
    """Returns 1 + s (stdev / prior - 1), where s is ``cpuct_stdev_scale``.

    If values differ, exploring other moves may gain more than it costs. The
    standard deviation is that of all values backed up through the node, mixed with a
    prior for it; up to one visit, the prior alone. Source: KataGo's dynamic
    variance-scaled cPUCT.
    """
    if node.visits <= 1:
        return 1.0
    square = node.mean_value**2
    prior = (square + _STDEV_PRIOR**2) * _STDEV_PRIOR_VISITS
    mean_square = max(square, node.mean_square)
    weight = _STDEV_PRIOR_VISITS + node.visits - 1
    second_moment = (prior + mean_square * node.visits) / weight
    stdev = math.sqrt(max(0.0, second_moment - square))
    return 1 + config.cpuct_stdev_scale * (stdev / _STDEV_PRIOR - 1)


def forced_action(config: SearchConfig, root: Node) -> int | None:
    """Returns the first visited root move that still needs forced visits, or None.

    A visited move gets at least sqrt(k P(a) N) visits, N over all children (Wu 2019,
    section 3.2), so that a move found by noise gets enough visits to be judged.

    Differs from the paper: a settled move is never forced.
    """
    owed = config.forced_playouts * (root.visits - 1)
    for action, child in root.children.items():
        is_owed = child.visits**2 < owed * root.prior[action]
        if is_owed and child.proof == Proof.UNKNOWN:
            return action
    return None


def apply_root_temperature(config: SearchConfig, root: Node) -> None:
    """Sharpens or flattens the root priors: P <- P^(1/T), normalised."""
    powers = {a: p ** (1 / config.root_temperature) for a, p in root.prior.items()}
    total = sum(powers.values())
    root.prior = {action: power / total for action, power in powers.items()}


def add_root_noise(config: SearchConfig, root: Node, rng: Rng) -> None:
    """Mixes noise into the root: P <- (1 - w) P + w Dirichlet(total s_1, ..., s_n).

    The shares s over n legal moves are all 1 / n, or `noise_shares`. A Dirichlet
    sample is a vector of gamma samples, normalised.

    Differs from the paper: the concentration is a total over the legal moves, which
    makes it independent of the board size.
    """
    weight = config.noise_weight
    shares = [1 / len(root.prior) for _ in root.prior]
    if config.noise_shaped:
        shares = noise_shares(list(root.prior.values()))
    draws = [rng.gamma(config.noise_alpha_total * share) for share in shares]
    total = sum(draws)
    if total <= 0:
        return
    for action, draw in zip(root.prior, draws, strict=True):
        noise = draw / total
        root.prior[action] = (1 - weight) * root.prior[action] + weight * noise


def noise_shares(priors: list[float]) -> list[float]:
    """Returns each move's share of the noise concentration; the shares sum to 1.

    Half is uniform. Half is proportional to how far ln(min(P, 0.01)) exceeds its mean
    over the legal moves: among moves with small priors, those with higher priors are
    more often good. Source: KataGo's shaped Dirichlet noise.
    """
    logs = [math.log(min(prior, 0.01) + 1e-20) for prior in priors]
    mean = sum(logs) / len(logs)
    above = [max(0.0, log - mean) for log in logs]
    even = 1 / len(priors)
    if sum(above) <= 0:
        return [even for _ in priors]
    return [0.5 * (even + height / sum(above)) for height in above]
