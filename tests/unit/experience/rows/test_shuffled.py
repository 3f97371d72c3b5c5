"""What the role shuffle writes is what the learner would have drawn, to the bit."""

import dataclasses
import shutil
import threading

import numpy as np
import pytest
from store_games import write_generation

from tengen.errors import DiskFullError, RunError, TengenWarning, UsageError
from tengen.experience import (
    GameWindow,
    SamplesPerInsertConfig,
    ShuffledRows,
    Shuffler,
    ShufflingStopped,
    WindowConfig,
)
from tengen.experience.rows.shuffled_files import pack_columns, unpack_columns
from tengen.run import NumberedFolder
from tests.refusals import refused
from tests.unit.conftest import fill

BATCH = 16
CONFIG = WindowConfig(
    min_rows=20,
    validation_share=0.2,
    limiter=SamplesPerInsertConfig(samples_per_row=2.0),
)


class SmallShards(Shuffler):
    shard_bytes = 10_000


def window(path, state=None, game="tictactoe", config=CONFIG):
    auxiliary = game.startswith("go/")
    return GameWindow(game, path / "experience", config, 7, state, auxiliary)


def shuffler(path, num_threads=1, game="tictactoe", config=CONFIG):
    folder = NumberedFolder(path / "shuffled")

    def open_window(state):
        return window(path, state, game, config)

    return SmallShards(folder, open_window, BATCH, num_threads)


def play(path, generation, game="tictactoe", games=40):
    write_generation(path / "experience", generation, games, name=game)


def assert_same(one, other):
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.table_size == other.table_size
    assert one.columns.keys() == other.columns.keys()
    for name, column in other.columns.items():
        assert one.columns[name].dtype == column.dtype, name
        np.testing.assert_array_equal(one.columns[name], column, err_msg=name)


@pytest.mark.parametrize(
    ("game", "with_replacement"),
    [
        ("tictactoe", True),
        ("tictactoe", False),
        ("go/4x5", True),
        ("go/5/komi=-1.5", True),
    ],
)
def test_batches_are_those_of_the_window(tmp_path, game, with_replacement):
    config = dataclasses.replace(CONFIG, with_replacement=with_replacement)
    direct = window(tmp_path, None, game, config)
    drawn = shuffler(tmp_path, 2, game, config)
    rows = ShuffledRows(game, NumberedFolder(tmp_path / "shuffled"))
    assert rows.refresh() == rows.available() == 0
    assert drawn.turn(threading.Event()) is None
    for generation in range(1, 4):
        play(tmp_path, generation, game)
        num_new = direct.refresh()
        turn = drawn.turn(threading.Event())
        assert turn.generation == generation
        assert len(turn.shard_rows) > 1
        assert rows.refresh() == turn.num_new == num_new
        assert rows.generation == generation
        num_batches = direct.available() // BATCH
        assert rows.available() == num_batches * BATCH > 0
        assert rows.describe() == direct.describe()
        for _ in range(num_batches):
            one, other = rows.sample(BATCH), direct.sample(BATCH)
            assert_same(one, other)
            one.ack()
            other.ack()
        with refused(RunError, "num_samples"):
            rows.sample(1)
    one_validation, other_validation = rows.validation(9), direct.validation(1024)
    for name, column in other_validation.items():
        np.testing.assert_array_equal(one_validation[name], column[:9])


def test_a_restored_learner_goes_on_with_the_next_row(tmp_path):
    """Across shards and turns, with batches of another size, some not acknowledged."""
    drawn, folder = shuffler(tmp_path), NumberedFolder(tmp_path / "shuffled")
    for generation in (1, 2):
        play(tmp_path, generation)
        drawn.turn(threading.Event())
    whole = ShuffledRows("tictactoe", folder)
    whole.refresh()
    total = whole.available()
    everything = whole.sample(total).keys.tolist()
    assert len(folder.numbers()) == 2
    rows = ShuffledRows("tictactoe", folder)
    rows.refresh()
    learned = []
    while len(learned) + 53 <= total:
        batch = rows.sample(53)
        rows.sample(11)  # under way when the learner is killed
        batch.ack()
        learned += batch.keys.tolist()
        rows = ShuffledRows("tictactoe", folder, rows.state())
        assert rows.refresh() == 0
        assert rows.available() == total - len(learned)
    assert learned == everything[: len(learned)]


def test_a_restored_shuffler_writes_the_same_bytes_by_any_threads(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    steady = None
    for generation in (1, 2, 3):
        for path in (one, other):
            play(path, generation)
        steady = steady or shuffler(one, num_threads=3)
        steady.turn(threading.Event())
        shuffler(other).turn(threading.Event())
    files = sorted(p.relative_to(one) for p in one.glob("shuffled/*/*"))
    assert sum(f.name == "validation.npz" for f in files) == 3
    for file in files:
        assert (one / file).read_bytes() == (other / file).read_bytes(), file
    assert len(files) == len(list(other.glob("shuffled/*/*")))


def test_rows_that_were_too_few_are_new_to_the_turn_that_draws(tmp_path):
    drawn = shuffler(tmp_path)
    play(tmp_path, 1, games=1)
    assert drawn.turn(threading.Event()) is None
    play(tmp_path, 2)
    turn = drawn.turn(threading.Event())
    assert turn.num_new == turn.num_rows


def test_a_stopped_turn_leaves_nothing(tmp_path):
    play(tmp_path, 1)
    stop = threading.Event()
    stop.set()
    with pytest.raises(ShufflingStopped):
        shuffler(tmp_path).turn(stop)
    assert not any((tmp_path / "shuffled").glob("[0-9]*"))


def test_what_is_missing_or_damaged_is_named(tmp_path):
    folder = NumberedFolder(tmp_path / "shuffled")
    drawn = shuffler(tmp_path)
    for generation in (1, 2, 3):
        play(tmp_path, generation)
        drawn.turn(threading.Event())
    with refused(UsageError, "connect4", "tictactoe"):
        ShuffledRows("connect4", folder).refresh()
    shard = folder.entry(0) / "shard-0000.npz"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    rows = ShuffledRows("tictactoe", folder)
    rows.refresh()
    with refused(RunError, "shard-0000.npz"):
        rows.sample(1)
    (folder.entry(1) / "turn.json").unlink()
    folder.entry(1).joinpath("turn.json").write_text("{}")
    with refused(RunError, "turn.json", "schema"):
        ShuffledRows("tictactoe", folder).refresh()


def test_a_turn_that_was_removed_is_stepped_over(tmp_path):
    folder = NumberedFolder(tmp_path / "shuffled")
    drawn = shuffler(tmp_path)
    keys = []
    for generation in (1, 2, 3):
        play(tmp_path, generation)
        drawn.turn(threading.Event())
        whole = ShuffledRows("tictactoe", folder)
        whole.refresh()
        keys.append(whole.sample(whole.available()).keys.tolist())
    first, third = keys[0], keys[2][len(keys[1]) :]
    rows = ShuffledRows("tictactoe", folder)
    rows.refresh()
    rows.sample(len(first) - 7).ack()
    state = rows.state()
    shutil.rmtree(folder.entry(1))
    rows = ShuffledRows("tictactoe", folder)
    with pytest.warns(TengenWarning) as told:
        rows.refresh()
    assert "shuffled turn (2)" in str(told[0].message)
    assert rows.available() == len(first) + len(third)
    # The turn in which a learner stands, too.
    shutil.rmtree(folder.entry(0))
    with pytest.warns(TengenWarning) as told:
        rows = ShuffledRows("tictactoe", folder, state)
    assert "shuffled turn (2)" in str(told[0].message)
    assert rows.available() == len(third)
    assert rows.sample(len(third)).keys.tolist() == third


def test_numbers_go_on_where_all_turns_were_removed(tmp_path):
    """Else a learner that has seen them would take the new ones for old."""
    play(tmp_path, 1)
    folder = NumberedFolder(tmp_path / "shuffled")

    def open_window(state):
        return window(tmp_path, state)

    drawn = SmallShards(folder, open_window, BATCH, 1, first_turn=5)
    assert drawn.newest == 4
    drawn.turn(threading.Event())
    assert folder.numbers() == [5]


def test_a_disk_without_room_for_a_turn_is_told_before_it_is_filled(small_disk):
    play(small_disk, 1)
    drawn = shuffler(small_disk)
    fill(small_disk)
    with refused(DiskFullError, "room") as full:
        drawn.turn(threading.Event())
    assert full.value.needed_bytes > 1000
    assert not any((small_disk / "shuffled").iterdir())


def test_who_has_used_nothing_begins_with_the_oldest_turn_left(tmp_path):
    folder = NumberedFolder(tmp_path / "shuffled")
    drawn = shuffler(tmp_path)
    for generation in (1, 2, 3):
        play(tmp_path, generation)
        drawn.turn(threading.Event())
    folder.retire_before(2)
    rows = ShuffledRows("tictactoe", folder)
    rows.refresh()
    assert rows.available() > 0
    assert rows.state()["turn"] == 2


@pytest.mark.parametrize("seed", range(5))
def test_packed_columns_come_back_as_they_were(seed):
    rng = np.random.default_rng(seed)
    num_rows, board, num_actions = 1 + int(rng.integers(40)), (3, 5), 16
    planes = rng.integers(0, 2, (num_rows, 6, *board)).astype(np.float32)
    planes[:, 1] = rng.random((num_rows, 1, 1))  # one number a plane
    planes[:, 3] = 0
    planes[:, 4] = -0.25
    is_native = seed % 2 == 0
    if not is_native:
        planes[:, 2] = rng.random((num_rows, *board))
    policy = rng.random((num_rows, num_actions)).astype(np.float32)
    policy[rng.random(policy.shape) < 0.8] = 0
    columns = {
        "planes": planes,
        "legal": rng.integers(0, 2, (num_rows, num_actions)).astype(np.uint8),
        "policy": policy,
        "reply": np.zeros((num_rows, num_actions), np.float32),
        "ownership": rng.integers(-1, 2, (num_rows, *board)).astype(np.float32),
        "policy_weight": rng.random(num_rows).astype(np.float32),
        "outcome": rng.random((num_rows, 3)).astype(np.float32),
    }
    if seed == 0:
        columns["ownership"] *= np.float32(0.5)  # a game of another kind
    packed = pack_columns(columns, is_native)
    found = unpack_columns(packed, (6, *board), num_actions, is_native)
    assert found.keys() == columns.keys()
    for name, column in columns.items():
        assert found[name].dtype == column.dtype
        np.testing.assert_array_equal(found[name], column, err_msg=name)
