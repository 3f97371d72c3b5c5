"""The native search of a game in Python builds the reference's trees, node by node."""

from pathlib import Path

import pytest

from tengen.search import SearchConfig

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("policy", ["puct", "gumbel"])
@pytest.mark.parametrize(("num_plies", "num_simulations"), [(0, 40), (6, 100)])
def test_hex(twin, moves_to, monkeypatch, num_plies, num_simulations, policy, explore):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    moves = moves_to("own_game:Hex", num_plies + 1, 0)
    twin(
        "own_game:Hex",
        moves[:num_plies],
        SearchConfig(policy=policy),
        then=moves[num_plies:],  # a second search, on the subtree that is left
        num_simulations=num_simulations,
        explore=explore,
        seed=3,
    ).check()
