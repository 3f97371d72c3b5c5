"""KataGo's search methods: worked examples, and native against reference searches."""

import math
import random
from dataclasses import dataclass

import pytest

from tengen import _core
from tengen.search import SearchConfig
from tests.oracle.search import Node, Proof
from tests.oracle.search.puct import (
    add_root_noise,
    exploration_scale,
    forced_action,
    noise_shares,
    stdev_factor,
)
from tests.oracle.search.target import (
    best_by_lower_bound,
    lower_bound,
    prune_forced_playouts,
)


@dataclass
class Position:
    to_play: int


def root_with(priors, children):
    """Returns a root whose children have (visits, Q) or (visits, Q, mean square)."""
    root = Node(Position(0), prior=dict(enumerate(priors)))
    for action, (visits, q, *square) in children.items():
        root.children[action] = Node(
            Position(1),
            visits=visits,
            value_sum=-q * visits,
            value_square_sum=visits * (square[0] if square else q * q),
        )
    root.visits = 1 + sum(child.visits for child in root.children.values())
    return root


def test_stdev_factor_by_hand():
    node = Node(Position(0), visits=4, value_sum=2.0, value_square_sum=2.0)
    # Mean 0.5, mean square 0.5. With the prior's two visits, minus one: (2 * (0.25 +
    # 0.16) + 4 * 0.5) / 5 - 0.25 = 0.314; its root is 0.560357.
    config = SearchConfig(cpuct_stdev_scale=0.85)
    assert stdev_factor(config, node) == pytest.approx(
        1 + 0.85 * (0.560357 / 0.4 - 1), abs=1e-6
    )
    # All values equal: (2 * 0.41 + 4 * 0.25) / 5 - 0.25 = 0.114.
    node.value_square_sum = 1.0
    assert stdev_factor(config, node) == pytest.approx(
        1 + 0.85 * (math.sqrt(0.114) / 0.4 - 1), abs=1e-6
    )
    assert stdev_factor(SearchConfig(), node) == 1
    # A single value has no spread, so the prior alone counts.
    node = Node(Position(0), visits=1, value_sum=0.8, value_square_sum=0.64)
    assert stdev_factor(config, node) == 1


def test_forced_action_by_hand():
    root = root_with([0.6, 0.3, 0.1], {0: (8, 0.0), 1: (2, 0.0)})
    # N = 10, k = 2: the first two moves are owed sqrt(12) = 3.5 and sqrt(6) = 2.4
    # visits; the third is unvisited and owed none.
    config = SearchConfig(forced_playouts=2.0)
    assert forced_action(config, root) == 1
    assert forced_action(SearchConfig(forced_playouts=1.0), root) is None
    root.children[1].proof = Proof.DRAW
    assert forced_action(config, root) is None


def test_pruning_by_hand():
    root = root_with([0.4, 0.3, 0.2, 0.1], {0: (70, 0.5), 1: (20, 0.3), 2: (9, -0.6)})
    root.children[3] = Node(Position(1), visits=1, value_sum=0.9)
    visits = {0: 70, 1: 20, 2: 9, 3: 1}
    # The best move scores 0.5 + 11 * 0.4 / 71 = 0.56197. Visits of the others for that:
    # 11 * 0.3 / 0.26197 - 1 = 11.6, 11 * 0.2 / 1.16197 - 1 = 0.9, and below 0.
    assert prune_forced_playouts(root, visits, 11.0) == {0: 70, 1: 12, 2: 0, 3: 0}
    # If the best move has fewer than 64 visits, single visits remain.
    root.children[0] = Node(Position(1), visits=40, value_sum=-20.0)
    # 0.5 + 11 * 0.4 / 41 = 0.60732: 11 * 0.3 / 0.30732 - 1 = 9.7 and 0.8.
    pruned = prune_forced_playouts(root, {**visits, 0: 40}, 11.0)
    assert pruned == {0: 40, 1: 10, 2: 1, 3: 0}


def test_a_better_action_is_never_pruned():
    root = root_with([0.9, 0.1], {0: (80, 0.0), 1: (30, 0.9)})
    assert prune_forced_playouts(root, {0: 80, 1: 30}, 1.0) == {0: 80, 1: 30}


def test_lower_bound_by_hand():
    # Variance 0.5 - 0.25 and 1 / (8 + 1).
    bound = 0.5 - 3 * math.sqrt((0.25 + 1 / 9) / 2)
    assert lower_bound(0.5, 0.5, 2, 3.0) == pytest.approx(bound)
    # With many similar values, the mean is certain.
    assert lower_bound(0.5, 0.25, 10_000, 5.0) == pytest.approx(0.5, abs=1e-3)


def test_best_by_lower_bound():
    config = SearchConfig(lcb_stdevs=5.0)
    # The second has fewer visits but is surely better; the third has too few to count.
    root = root_with(
        [0.5, 0.3, 0.2],
        {0: (100, 0.1, 0.1), 1: (60, 0.5, 0.5), 2: (14, 0.9, 0.9)},
    )
    assert best_by_lower_bound(config, root) == 1
    assert best_by_lower_bound(SearchConfig(lcb_stdevs=1e6), root) == 0
    root.children[1].proof = Proof.WIN  # a win for the opponent
    assert best_by_lower_bound(config, root) == 0
    root.children[0].proof = root.children[2].proof = Proof.WIN
    assert best_by_lower_bound(config, root) is None


def test_the_bound_of_a_settled_action_is_its_value():
    # 0.05 minus 5 standard errors of 0.07 is less than a certain draw.
    root = root_with([0.5, 0.5], {0: (100, 0.05, 0.5), 1: (20, 0.0, 0.9)})
    config = SearchConfig(lcb_stdevs=5.0)
    assert best_by_lower_bound(config, root) == 0
    root.children[1].proof = Proof.DRAW
    assert best_by_lower_bound(config, root) == 1


def test_noise_shares_by_hand():
    # Priors above 0.01 count as 0.01: logs -4.605, -4.605, -6.908, mean -5.373.
    assert noise_shares([0.9, 0.099, 0.001]) == pytest.approx([5 / 12, 5 / 12, 1 / 6])
    assert noise_shares([0.25] * 4) == [0.25] * 4
    assert sum(noise_shares([0.5, 0.3, 1e-3, 1e-9, 0.0])) == pytest.approx(1)


def test_shaped_noise_follows_its_shares():
    config = SearchConfig(noise_weight=1.0, noise_alpha_total=10.0, noise_shaped=True)
    priors = [0.9, 0.099, 0.001]
    total = [0.0] * 3
    for game in range(400):
        node = root_with(priors, {})
        add_root_noise(config, node, _core.Rng(1, 0, game, 0, 2))
        total = [a + b for a, b in zip(total, node.prior.values(), strict=True)]
    # The standard deviation of each mean is under 0.008.
    mean = [x / 400 for x in total]
    assert mean == pytest.approx(noise_shares(priors), abs=0.04)


METHODS = {
    "stdev": {"cpuct_stdev_scale": 0.85},
    "stdev, all of it": {"cpuct_stdev_scale": 1.0, "cpuct": 3.0},
    "shaped": {"noise_shaped": True},
    "shaped, alone": {"noise_shaped": True, "noise_weight": 1.0},
    "forced": {"forced_playouts": 2.0},
    "forced, often": {"forced_playouts": 8.0, "noise_weight": 0.5},
    "lcb": {"lcb_stdevs": 5.0},
    "lcb, bold": {"lcb_stdevs": 0.5},
    "all": {
        "cpuct_stdev_scale": 0.85,
        "noise_shaped": True,
        "forced_playouts": 2.0,
        "lcb_stdevs": 2.0,
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_native_builds_the_same_trees(twin, moves_to, name):
    rng = random.Random(name)
    for seed in range(60):
        game, limit = rng.choice(
            [("tictactoe", 5), ("connect4", 24), ("connect4", 8), ("gomoku/7", 20)]
        )
        twin(
            game,
            moves_to(game, rng.randrange(limit), seed),
            SearchConfig(policy="puct", **METHODS[name]),
            num_simulations=rng.choice([3, 20, 40, 70, 120]),
            explore=rng.random() < 0.8,
            seed=seed,
        ).check()


@pytest.mark.parametrize("name", METHODS)
def test_native_reuses_the_same_trees(twin, name):
    search = twin("connect4", config=SearchConfig(**METHODS[name]), explore=True)
    for _ in range(4):
        search.then.append(search.check().best_action)


def test_native_plays_the_same_settled_moves(twin, moves_to):
    num_drawn = 0
    for seed in range(150):
        moves = moves_to("tictactoe", 2 + seed % 3, seed)
        config = SearchConfig(lcb_stdevs=5.0)
        result = twin("tictactoe", moves, config, num_simulations=90).check()
        best = next(a for a in result.actions if a.action == result.best_action)
        num_drawn += best.proof == Proof.DRAW and not result.proof
    assert num_drawn >= 5


def test_scale_is_the_paper_s_without_a_spread():
    root = root_with([1.0], {0: (9, 0.3)})
    config = SearchConfig(cpuct=2.0, cpuct_log=0.0)
    assert exploration_scale(config, root) == pytest.approx(2.0 * math.sqrt(9.01))
