from __future__ import annotations

from pathlib import Path

import numpy as np
from store_games import num_rows, random_game, write_generation

from tengen import games
from tengen.store import sample_positions


def sampled(experience: Path, generation: int, count: int = 1000, seed: int = 0):
    return sample_positions("tictactoe", experience, generation, count, seed)


def test_positions_are_those_of_the_generation(tmp_path: Path) -> None:
    write_generation(tmp_path, 1, 6)
    records = [random_game("tictactoe", index, 1) for index in range(6)]
    write_generation(tmp_path, 2, 20)
    planes, legal = sampled(tmp_path, 1)
    assert len(planes) == len(legal) == sum(map(num_rows, records))
    possible = set()
    for record in records:
        state = games.make("tictactoe").new_state()
        for action in [*record.opening, *(ply.action for ply in record.plies)]:
            possible.update(state.observation(s).tobytes() for s in range(8))
            state.apply(action)
    assert {position.tobytes() for position in planes} <= possible
    # A cell is legal where neither side has a stone.
    stones = planes[:, 1:3].sum(axis=1).reshape(len(planes), 9)
    np.testing.assert_array_equal(legal, stones == 0)


def test_a_seed_draws_the_same_again(tmp_path: Path) -> None:
    write_generation(tmp_path, 1, 6)
    first, again, other = (sampled(tmp_path, 1, 9, seed)[0] for seed in (1, 1, 2))
    assert len(first) == 9
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_a_generation_without_games_has_no_positions(tmp_path: Path) -> None:
    write_generation(tmp_path, 1, 6)
    assert sampled(tmp_path, 2) is None
