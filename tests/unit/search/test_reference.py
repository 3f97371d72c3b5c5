"""The reference search against arithmetic by hand."""

from dataclasses import dataclass

import pytest

from tengen import _core, games
from tengen.search import SearchConfig
from tests.oracle.search import Node, Proof, ReferenceSearch
from tests.oracle.search.gumbel import (
    halving_phases,
    improved_policy,
    mixed_value,
    select_below,
    target_mean,
)
from tests.oracle.search.puct import (
    add_root_noise,
    apply_root_temperature,
    select_puct,
)
from tests.oracle.search.tree import prove


@dataclass
class Position:
    to_play: int


def node_with(priors, children, *, value_to_play=0.0, mean_value=0.0):
    """Returns a node whose children have (visits, Q), Q for the node's own player."""
    node = Node(Position(0), prior=dict(enumerate(priors)), value_to_play=value_to_play)
    for action, (visits, q) in children.items():
        child = Node(Position(1), visits=visits, value_sum=-q * visits)
        node.children[action] = child
    node.visits = 1 + sum(visits for visits, _ in children.values())
    node.value_sum = mean_value * node.visits
    return node


def test_puct_by_hand():
    # sqrt(4.01) = 2.0025: 0.2 + 2.0025 * 0.5 / 4 = 0.450 against
    # -0.4 + 2.0025 * 0.3 / 2 = -0.100 and, unvisited,
    # 0.1 - 0.5 * sqrt(0.8) + 2.0025 * 0.2 = 0.053.
    node = node_with([0.5, 0.3, 0.2], {0: (3, 0.2), 1: (1, -0.4)}, mean_value=0.1)
    config = SearchConfig(cpuct=1.0, cpuct_log=0.0, fpu_reduction=0.5)
    assert select_puct(config, node, is_root=False) == 0
    # At the root, without a reduction, the unvisited move has 0.1 + 0.4005 = 0.5005.
    assert select_puct(config, node, is_root=True) == 2
    # Twice the constant and no reduction: 0.7006 against 0.1 + 0.8010 = 0.9010.
    twice = SearchConfig(cpuct=2.0, cpuct_log=0.0, fpu_reduction=0.0)
    assert select_puct(twice, node, is_root=False) == 2


def test_the_prior_decides_the_first_descent():
    node = node_with([0.2, 0.5, 0.3], {}, mean_value=-1.0)
    assert select_puct(SearchConfig(), node, is_root=False) == 1
    assert select_below(SearchConfig(), node) == 1
    tied = node_with([0.25, 0.375, 0.375], {})
    assert select_puct(SearchConfig(), tied, is_root=False) == 1


def test_the_constant_grows_with_the_visits():
    node = node_with([0.1, 0.9], {0: (500, 0.0), 1: (500, -0.9)})
    # c = 0.5: 0.5 * 31.6 * 0.9 / 501 = 0.028 does not compensate for Q = -0.9.
    assert select_puct(SearchConfig(cpuct=0.5, cpuct_log=0.0), node, False) == 0
    # c = 0.5 + 25 * ln(3) = 28: 1.56 - 0.9 = 0.66 against 0.17.
    assert select_puct(SearchConfig(cpuct=0.5, cpuct_log=25.0), node, False) == 1


def test_mixed_value_by_hand():
    node = node_with([0.5, 0.3, 0.2], {0: (3, 0.5), 1: (1, -0.5)}, value_to_play=0.1)
    # (0.1 + 4 * (0.5 * 0.5 - 0.3 * 0.5) / 0.8) / 5.
    assert mixed_value(node, 0.1, node.child_value) == pytest.approx(0.12)
    bare = node_with([1.0], {})
    assert mixed_value(bare, 0.3, bare.child_value) == 0.3


def test_improved_policy_by_hand():
    node = node_with([0.5, 0.3, 0.2], {0: (3, 0.5), 1: (1, -0.5)}, value_to_play=0.1)
    config = SearchConfig(policy="gumbel", gumbel_visit=1.0, gumbel_scale=0.5)
    # sigma = (1 + 3) * 0.5 * q: 1, -1 and, for the completed q, 0.24. Weights 0.5 e,
    # 0.3 / e and 0.2 e^0.24 = 1.359141, 0.110364, 0.254250; their sum is 1.723755.
    policy = improved_policy(config, node)
    assert list(policy.values()) == pytest.approx([0.788477, 0.064025, 0.147498], 1e-5)
    # 0.788 - 3 / 5, 0.064 - 1 / 5, 0.147: the first is largest.
    assert select_below(config, node) == 0


def test_target_mean_by_hand():
    node = node_with([0.5, 0.3, 0.2], {0: (3, 0.5), 1: (1, -0.5)}, value_to_play=0.1)
    # The unvisited action is worth the mixed value, 0.12.
    target = {0: 0.75, 1: 0.05, 2: 0.2}
    found = target_mean(node, target, 0.1, node.child_value)
    assert found == pytest.approx(0.375 - 0.025 + 0.024)
    bare = node_with([1.0], {})
    assert target_mean(bare, {0: 1.0}, 0.3, bare.child_value) == 0.3


def test_improved_policy_without_visits_is_the_prior():
    node = node_with([0.5, 0.3, 0.2], {}, value_to_play=0.9)
    policy = improved_policy(SearchConfig(), node)
    assert list(policy.values()) == pytest.approx([0.5, 0.3, 0.2])


def considered_visits(m, n):
    visits, rounds = [], 0
    for num_actions, num_visits in halving_phases(m, n):
        for _ in range(num_visits):
            visits += [rounds] * num_actions
            rounds += 1
        if len(visits) >= n:
            return visits[:n]


@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [
        # 4 phases of 16: 16 x 1, 8 x 2, 4 x 4, 2 x 8.
        (
            16,
            64,
            [0] * 16
            + [1] * 8
            + [2] * 8
            + [k for k in range(3, 7) for _ in range(4)]
            + [k for k in range(7, 15) for _ in range(2)],
        ),
        (16, 16, [0] * 16),
        (16, 20, [0] * 16 + [1] * 4),
        # 2 phases of 5: 4 x 1, 2 x 2, and the rest to the same two actions.
        (4, 10, [0, 0, 0, 0, 1, 1, 2, 2, 3, 3]),
        # 3 actions halve to 2.
        (3, 8, [0, 0, 0, 1, 1, 2, 2, 3]),
        (2, 5, [0, 0, 1, 1, 2]),
        (1, 4, [0, 1, 2, 3]),
        (5, 3, [0, 0, 0]),
    ],
)
def test_halving_by_hand(m, n, expected):
    assert considered_visits(m, n) == expected
    assert list(_core.considered_visits(m, n)) == expected


def test_native_halving_is_the_same():
    for m in (*range(1, 34), 64, 100, 225):
        for n in (1, 2, 3, 7, 16, 50, 64, 200, 801):
            assert list(_core.considered_visits(m, n)) == considered_visits(m, n)


def test_long_schedules_do_not_wrap():
    assert _core.considered_visits(2, 140000)[-1] == 69999


def test_prove():
    def proof_of(*children, num_legal=3):
        node = node_with([1 / num_legal] * num_legal, {})
        for action, proof in enumerate(children):
            node.children[action] = Node(Position(1), proof=proof)
        return prove(node)

    # The children's proofs are for the opponent: a child's loss is the node's win.
    assert proof_of(Proof.LOSS) == Proof.WIN
    assert proof_of(Proof.WIN, Proof.WIN) == Proof.UNKNOWN
    assert proof_of(Proof.WIN, Proof.WIN, Proof.WIN) == Proof.LOSS
    assert proof_of(Proof.WIN, Proof.DRAW, Proof.WIN) == Proof.DRAW
    assert proof_of(Proof.WIN, Proof.DRAW, Proof.UNKNOWN) == Proof.UNKNOWN
    assert proof_of(Proof.UNKNOWN, Proof.LOSS, Proof.WIN) == Proof.WIN


def test_a_player_who_moves_again_keeps_the_value():
    node = node_with([0.5, 0.5], {})
    node.children[0] = Node(Position(0), visits=2, value_sum=1.0)
    node.children[1] = Node(Position(0), visits=1, proof=Proof.LOSS)
    assert node.child_value(0) == 0.5
    assert node.child_proof(1) == Proof.LOSS
    assert node.open_actions() == [0]


def test_root_noise():
    config = SearchConfig(noise_weight=0.25, noise_alpha_total=10.0)
    draws = {}
    for game in range(200):
        node = node_with([0.7, 0.1, 0.1, 0.1], {})
        add_root_noise(config, node, _core.Rng(1, 0, game, 0, 2))
        assert sum(node.prior.values()) == pytest.approx(1)
        assert node.prior[0] >= 0.75 * 0.7
        draws[game] = tuple(node.prior.values())
    assert len(set(draws.values())) == 200
    # The mean of the noise is uniform: 0.75 P + 0.25 / 4. Its standard deviation over
    # 200 samples of Dirichlet(2.5, ...) is under 0.004.
    mean = [sum(column) / 200 for column in zip(*draws.values(), strict=True)]
    assert mean == pytest.approx([0.5875, 0.1375, 0.1375, 0.1375], abs=0.02)


def test_root_temperature_by_hand():
    node = node_with([0.64, 0.36], {})
    apply_root_temperature(SearchConfig(root_temperature=2.0), node)
    assert list(node.prior.values()) == pytest.approx([0.8 / 1.4, 0.6 / 1.4])


def test_read_this_first_example():
    state = games.make("tictactoe").new_state()
    search = ReferenceSearch(SearchConfig(), lambda state: ([0.0] * 9, 0.0))
    while not state.is_terminal():
        result = search.search(state, num_simulations=200)
        assert sum(result.policy.values()) == pytest.approx(1)
        state.apply(result.best_action)
        search.play(result.best_action)
    assert state.ply >= 5
