import numpy as np
from store_games import random_game, write_generation

from tengen import games
from tengen.experience import sample_positions


def sampled(experience, generation, count=1000, seed=0):
    return sample_positions("tictactoe", experience, generation, count, seed)


def test_positions_are_those_of_the_generation_and_no_two_are_equal(tmp_path):
    write_generation(tmp_path, 1, 6)
    write_generation(tmp_path, 2, 20)
    # So many draws find every row.
    planes, legal = sampled(tmp_path, 1)
    possible = []
    for record in (random_game("tictactoe", index, 1) for index in range(6)):
        state = games.make("tictactoe").new_state()
        for action in record.opening:
            state.apply(action)
        for ply in record.plies:
            if ply.policy_weight > 0 or ply.value_weight > 0:
                possible.append({state.observation(s).tobytes() for s in range(8)})
            state.apply(ply.action)
    found = {position.tobytes() for position in planes}
    assert len(found) == len(planes) == len(legal) <= len(possible)
    assert found <= set.union(*possible)
    assert all(found & images for images in possible)
    # A cell is legal where neither side has a stone.
    stones = planes[:, 1:3].sum(axis=1).reshape(len(planes), 9)
    np.testing.assert_array_equal(legal, stones == 0)


def test_a_seed_draws_the_same_again(tmp_path):
    write_generation(tmp_path, 1, 6)
    first, again, other = (sampled(tmp_path, 1, 9, seed)[0] for seed in (1, 1, 2))
    assert 0 < len(first) <= 9
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_a_generation_without_games_has_no_positions(tmp_path):
    write_generation(tmp_path, 1, 6)
    assert sampled(tmp_path, 2) is None
