"""The native search builds the same trees as the reference, node by node."""

import random
from pathlib import Path

import pytest

from tengen import _core
from tengen.search import SearchConfig

POLICIES = ("puct", "gumbel")
EXAMPLES = Path(__file__).parents[3] / "examples"


SMALL = [
    ("tictactoe", num_plies, num_simulations)
    for num_plies in (0, 1, 4)
    for num_simulations in (0, 1, 2, 5, 33, 150, 800)
] + [
    ("connect4", num_plies, num_simulations)
    for num_plies in (0, 7, 20)
    for num_simulations in (1, 16, 200)
]


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("name", "num_plies", "num_simulations"), SMALL)
def test_small_games(twin, moves_to, name, num_plies, num_simulations, policy, explore):
    for seed in range(2 if num_simulations < 800 else 1):
        twin(
            name,
            moves_to(name, num_plies, seed),
            SearchConfig(policy=policy),
            num_simulations=num_simulations,
            explore=explore,
            seed=seed,
            generation=5,
            game=seed,
        ).check()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["gomoku/9", "gomoku/9/exact", "gomoku/15"])
@pytest.mark.parametrize(
    ("num_plies", "num_simulations"), [(0, 60), (12, 120), (40, 64)]
)
def test_gomoku(twin, moves_to, name, num_plies, num_simulations, policy):
    twin(
        name,
        moves_to(name, num_plies, 0),
        SearchConfig(policy=policy),
        num_simulations=num_simulations,
        explore=True,
        game=num_plies,
    ).check()


@pytest.mark.parametrize("policy", POLICIES)
def test_800_simulations_of_connect4(twin, policy):
    twin("connect4", [3, 3], SearchConfig(policy=policy), num_simulations=800).check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "policy", "explore"),
    [
        ("connect4", "gumbel", True),
        ("gomoku/9", "puct", False),
        ("gomoku/9", "gumbel", False),
        ("gomoku/15", "puct", True),
    ],
)
def test_800_simulations(twin, moves_to, name, policy, explore):
    twin(
        name,
        moves_to(name, 8, 1),
        SearchConfig(policy=policy),
        num_simulations=800,
        explore=explore,
    ).check()


PUCT_SETTINGS = [
    {"cpuct": 0.0, "cpuct_log": 0.0},
    {"cpuct": 3.0, "cpuct_log": 1.0, "cpuct_base": 20.0},
    {"fpu_reduction": 0.0},
    {"fpu_reduction": 1.0, "root_fpu_reduction": 0.5},
    {"root_temperature": 1.4},
    {"root_temperature": 0.5, "noise_weight": 0.0},
    {"noise_alpha_total": 0.3, "noise_weight": 1.0},
]
GUMBEL_SETTINGS = [
    {"gumbel_considered": 1},
    {"gumbel_considered": 3},
    {"gumbel_considered": 100},
    {"gumbel_visit": 0.0, "gumbel_scale": 0.1},
    {"gumbel_visit": 10.0, "gumbel_scale": 5.0},
]


@pytest.mark.parametrize(
    "settings",
    [{"policy": "puct", **s} for s in PUCT_SETTINGS]
    + [{"policy": "gumbel", **s} for s in GUMBEL_SETTINGS],
    ids=str,
)
def test_settings(twin, moves_to, settings):
    for name in ("tictactoe", "connect4"):
        twin(
            name,
            moves_to(name, 2, 3),
            SearchConfig(**settings),
            num_simulations=120,
            explore=True,
        ).check()


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["tictactoe", "connect4", "gomoku/9"])
def test_reuse(twin, name, policy, explore):
    # Follows the search's own moves, then a random one that may be unvisited.
    game = twin(name, config=SearchConfig(policy=policy), explore=explore)
    for _ in range(3):
        game.then.append(game.check().best_action)
    state = game.state()
    for move in game.then:
        state.apply(move)
    game.then.append(random.Random(name).choice(state.legal_actions()))
    game.check()


def test_reuse_counts_what_is_kept():
    request = _core.SearchRequest()
    request.num_simulations = 100
    native = SearchConfig().to_native()
    first, nodes = _core.hash_search("connect4", [], native, request)
    best = next(edge for edge in nodes[0]["edges"] if edge[0] == first.best_action)
    second, nodes = _core.hash_search(
        "connect4", [], native, request, [first.best_action]
    )
    kept = best[2] - 1  # the first of the edge's visits is the child's own evaluation
    assert 10 < kept < 100
    assert second.num_simulations == 100 - kept
    assert nodes[0]["visits"] == 101


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("num_plies", "num_simulations"), [(0, 40), (6, 100)])
def test_a_game_in_python(
    twin, moves_to, monkeypatch, num_plies, num_simulations, policy, explore
):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    moves = moves_to("own_game:Hex", num_plies + 1, 0)
    twin(
        "own_game:Hex",
        moves[:num_plies],
        SearchConfig(policy=policy),
        then=moves[num_plies:],  # a second search, on the remaining subtree
        num_simulations=num_simulations,
        explore=explore,
        seed=3,
    ).check()
