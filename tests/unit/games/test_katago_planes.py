"""The planes of /planes=katago equal the inputs of KataGo's own networks."""

import numpy as np
import pytest
from katago_golden import golden_games

from tengen.games import Framed, make

GAMES = list(golden_games())


@pytest.mark.parametrize("golden", GAMES, ids=lambda golden: golden.game)
def test_planes_are_katagos(golden):
    height, width = golden.size
    state = make(golden.game + "/planes=katago").new_state()
    played = 0
    for row, ply in enumerate(golden.plies):
        for action in golden.moves[played:ply]:
            state.apply(action)
        played = ply
        planes = state.observation()
        assert planes.shape == (29, height, width)
        np.testing.assert_array_equal(planes[:18], golden.points[row])
        constants = golden.constants[row][:, None, None]
        wanted = np.broadcast_to(constants, (11, height, width))
        np.testing.assert_allclose(planes[18:], wanted, atol=1e-6)


def test_a_game_is_the_same_but_for_its_planes():
    golden = GAMES[0]
    plain, shown = make(golden.game), make(golden.game + "/planes=katago")
    states = plain.new_state(), shown.new_state()
    for action in golden.moves:
        assert list(states[0].legal_actions()) == list(states[1].legal_actions())
        for state in states:
            state.apply(action)
    framed = Framed.corner(plain, shown)
    planes = framed.new_state(golden.moves).observation()
    np.testing.assert_array_equal(planes, states[1].observation())


@pytest.mark.parametrize("name", ["go/3", "go/4/simple", "go/5"])
def test_positions_with_one_key_have_the_same_planes(name):
    """The evaluation cache treats positions with equal keys as equal."""
    game = make(f"{name}/planes=katago")
    shown = {}
    rng = np.random.default_rng(0)
    for _ in range(60):
        state = game.new_state()
        while not state.is_terminal():
            planes = state.observation().tobytes()
            assert shown.setdefault(state.key(), planes) == planes
            state.apply(int(rng.choice(state.legal_actions())))
    assert len(shown) > 100
