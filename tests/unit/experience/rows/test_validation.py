"""Games that are kept from learning."""

import numpy as np
from store_games import num_rows, random_game, write_generation

from tengen.experience import (
    GameWindow,
    SamplesPerInsertConfig,
    SegmentReader,
    WindowConfig,
)
from tengen.experience.games.segment import GAME_COLUMNS
from tengen.experience.rows.derived_rows import is_validation, select_games


def test_the_hash_is_splitmix64():
    """Its first outputs from seed 0, as published with the algorithm."""
    golden = 0x9E3779B97F4A7C15
    first = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
    for index, output in enumerate(first):
        state = (index * golden) % 2**64
        generation, game = state >> 32, np.array([state % 2**32], np.uint32)
        share = (output >> 11) / 2**53
        assert not is_validation(generation, game, share)[0]
        assert is_validation(generation, game, share + 2**-53)[0]


def test_the_share_is_the_asked_one_and_the_same_in_any_order():
    games = np.arange(20_000, dtype=np.uint32)
    chosen = is_validation(3, games, 0.05)
    assert abs(chosen.mean() - 0.05) < 0.005
    np.testing.assert_array_equal(is_validation(3, games[::-1], 0.05), chosen[::-1])
    assert (is_validation(4, games, 0.05) != chosen).any()
    assert not is_validation(3, games, 0.0).any()


def test_chosen_games_are_whole(tmp_path):
    """Against segments that had only those games from the start."""
    path = write_generation(tmp_path / "all", 5, 12, name="go/5")
    with SegmentReader(path) as reader:
        columns = reader.game_columns()
    rng = np.random.default_rng(0)
    for _ in range(5):
        chosen = rng.random(12) < 0.5
        found = select_games(columns, chosen)
        assert found.keys() == GAME_COLUMNS.keys()
        games = np.flatnonzero(chosen)
        records = [random_game("go/5", int(i), 5) for i in games]
        assert found["game_index"].tolist() == games.tolist()
        actions = [p.action for record in records for p in record.plies]
        assert found["action"].tolist() == actions
        opening = [move for record in records for move in record.opening]
        assert found["opening"].tolist() == opening
        policy = [e for r in records for p in r.plies for e in p.policy]
        mass = list(zip(found["policy_action"], found["policy_mass"], strict=True))
        assert mass == policy


def test_they_are_never_drawn_and_a_restored_window_agrees(tmp_path):
    config = WindowConfig(
        min_rows=30,
        max_rows=150,
        validation_share=0.25,
        limiter=SamplesPerInsertConfig(samples_per_row=1.0),
    )

    def opened(state=None):
        return GameWindow("tictactoe", tmp_path, config, 1, state)

    window = opened()
    learned = kept = 0
    for generation in range(1, 6):
        write_generation(tmp_path, generation, 40)
        chosen = is_validation(generation, np.arange(40, dtype=np.uint32), 0.25)
        rows = [num_rows(random_game("tictactoe", i, generation)) for i in range(40)]
        learned += sum(r for r, c in zip(rows, chosen, strict=True) if not c)
        kept += sum(r for r, c in zip(rows, chosen, strict=True) if c)
        window.refresh()
        assert window.num_rows == learned
        assert window.validation_rows.num_rows == kept
        restored = opened(window.state())
        assert restored.num_rows == learned
        assert restored.describe() == window.describe()
        assert restored.validation_rows.oldest_row == window.validation_rows.oldest_row
        batch = window.sample(8)
        for one, other in (
            (restored.validation(20), window.validation(20)),
            (restored.sample(8).columns, batch.columns),
        ):
            for name, column in other.items():
                np.testing.assert_array_equal(one[name], column)
        batch.ack()
    assert window.validation_rows.oldest_row > 0  # the window has left some behind


def test_a_window_without_such_games_has_none(tmp_path):
    write_generation(tmp_path, 1, 10)
    window = GameWindow("tictactoe", tmp_path, WindowConfig(min_rows=1), 0)
    window.refresh()
    assert window.validation(4) is None
