"""Properties of every search, native and reference."""

import pytest

from tengen import _core
from tengen.search import SearchConfig
from tests.oracle.search import Proof, ReferenceSearch
from tests.refusals import refused

POLICIES = ("puct", "gumbel")


# The second player is to move and must block a row of two or three.
BLOCKS = [
    ("tictactoe", [0, 4, 1], 2),
    ("connect4", [0, 5, 0, 5, 0], 0),
    ("gomoku/7", [22, 8, 23, 21, 24, 36, 25], 26),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("name", "moves", "winning", "num_simulations"),
    [
        ("tictactoe", [0, 3, 1, 4], {2}, 20),
        ("connect4", [1, 1, 2, 2, 3, 3], {0, 4}, 30),
        # Two stones side by side on the bottom row, open at both ends.
        ("connect4", [2, 6, 3, 3], {1, 4}, 3000),
        # A fork: three corners.
        ("tictactoe", [0, 4, 8, 6], {2}, 600),
        # Four in a row, open at both ends.
        ("gomoku/7", [23, 8, 24, 9, 25, 36, 26, 40], {22, 27}, 200),
    ],
)
def test_a_forced_win_is_proven_and_played(
    twin, name, moves, winning, num_simulations, policy
):
    considered = {"gumbel_considered": 64} if policy == "gumbel" else {}
    search = twin(
        name,
        moves,
        SearchConfig(policy=policy, **considered),
        num_simulations=num_simulations,
    )
    result, _ = search.native()
    assert result.best_action in winning
    if policy == "puct" or num_simulations <= 200:
        assert result.proof == Proof.WIN
        assert result.root_value_to_play == 1.0
        assert {a.action for a in result.actions if a.policy > 0} <= winning
        assert result.num_simulations < num_simulations


@pytest.mark.parametrize(("name", "moves", "block"), BLOCKS)
def test_block_or_lose(twin, name, moves, block):
    num_simulations = 40_000 if name == "gomoku/7" else 3000
    search = twin(name, moves, num_simulations=num_simulations)
    assert search.state().to_play == 1
    result, _ = search.native()
    assert result.best_action == block
    # The others lose at once and are not considered, or are proven lost.
    lost = [a for a in result.actions if a.proof == Proof.LOSS]
    assert lost or [a.action for a in result.actions] == [block]
    assert all(a.policy == 0.0 for a in lost)


@pytest.mark.parametrize(("name", "moves", "block"), BLOCKS[:2])
def test_gumbel_blocks(twin, name, moves, block):
    position = twin(name, moves).state()
    search = ReferenceSearch(
        SearchConfig(policy="gumbel"), lambda state: ([0.0] * 9, 0.0)
    )
    result = search.search(position, num_simulations=600)
    assert result.best_action == block
    assert max(result.policy, key=result.policy.get) == block


@pytest.mark.parametrize("moves", [[4, 0, 8], [0, 4, 8], [0, 4, 1]])
def test_tictactoe_is_proven_a_draw(twin, moves):
    # The search alone proves the result, as the evaluator does not know the game. (From
    # the empty board, that takes millions of simulations: they revisit drawn moves.)
    config = SearchConfig(cpuct=4.0)
    result, _ = twin("tictactoe", moves, config, num_simulations=20000).native()
    assert result.proof == Proof.DRAW
    assert result.root_value_to_play == 0.0
    assert result.num_simulations < 20000
    drawn = {a.action for a in result.actions if a.proof == Proof.DRAW}
    assert result.best_action in drawn
    assert {a.action for a in result.actions if a.policy > 0} == drawn


@pytest.mark.parametrize("policy", POLICIES)
def test_one_legal_move(twin, policy):
    # X . O / O X X / X O O with one cell left.
    moves = [0, 2, 4, 3, 5, 7, 6, 8]
    search = twin(
        "tictactoe",
        moves,
        SearchConfig(policy=policy),
        num_simulations=10,
        explore=True,
    )
    result = search.check()
    assert result.best_action == 1
    assert [a.policy for a in result.actions] == [1.0]
    assert result.proof == Proof.DRAW
    assert result.num_simulations == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_draws_depend_on_the_stream_and_on_nothing_else(twin, policy):
    def priors(**key):
        search = twin(
            "gomoku/9",
            key.pop("moves", ()),
            SearchConfig(policy=policy),
            num_simulations=16,
            explore=True,
            **key,
        )
        return [(a.prior, a.visits) for a in search.native()[0].actions]

    base = priors(seed=1, generation=2, game=3)
    assert base == priors(seed=1, generation=2, game=3)
    assert base != priors(seed=2, generation=2, game=3)
    assert base != priors(seed=1, generation=3, game=3)
    assert base != priors(seed=1, generation=2, game=4)
    many = {tuple(priors(game=game)) for game in range(20)}
    assert len(many) == 20


def test_noise_is_off_unless_exploring(twin):
    noisy = SearchConfig(noise_weight=1.0, root_temperature=3.0)
    quiet = SearchConfig(noise_weight=0.0)
    first = twin("connect4", config=noisy, seed=1).native()
    assert first[1] == twin("connect4", config=quiet, seed=2).native()[1]


def test_noise_draws_differ_by_ply(twin):
    # With the same noise at every root, nothing would be explored. With weight 1 the
    # prior equals the noise; all six positions have seven moves.
    config = SearchConfig(noise_weight=1.0)
    priors = set()
    for ply in range(6):
        search = twin("connect4", [3] * ply, config, explore=True, num_simulations=4)
        if len(search.state().legal_actions()) == 7:
            priors.add(tuple(a.prior for a in search.native()[0].actions))
    assert len(priors) == 6


@pytest.mark.parametrize("policy", POLICIES)
def test_finished_positions_and_bad_budgets_are_refused(twin, policy):
    config = SearchConfig(policy=policy)
    with refused(_core.CoreError, "finished"):
        twin("tictactoe", [0, 3, 1, 4, 2], config).native()
    with refused(_core.CoreError, "num_simulations (-1)"):
        twin("tictactoe", [], config, num_simulations=-1).native()


def test_gumbel_finds_more_than_its_prior(twin):
    # Over many positions, even 4 simulations improve the policy: relative to uniformly
    # random evaluations, the chosen move has a high q.
    gains = []
    for seed in range(40):
        search = twin(
            "gomoku/9",
            [seed, 80 - seed],
            SearchConfig(policy="gumbel"),
            num_simulations=4,
            explore=True,
            game=seed,
        )
        result, _ = search.native()
        visited = [a for a in result.actions if a.visits]
        chosen = next(a for a in visited if a.action == result.best_action)
        mean = sum(a.value_to_play for a in visited) / len(visited)
        gains.append(chosen.value_to_play - mean)
    assert sum(gains) / len(gains) > 0.3
