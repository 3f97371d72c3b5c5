from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from store_games import write_generation

from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.experience import (
    GameWindow,
    Manifest,
    SamplesPerInsertConfig,
    WindowConfig,
    predicted_window_bytes,
)
from tests.refusals import refused

KATAGO: dict[str, Any] = {
    "min_rows": 250_000,
    "max_rows": 10**9,
    "taper_exponent": 0.65,
    "taper_scale_rows": 250_000,
    "expand_per_row": 0.4,
}
SMALL = WindowConfig(
    min_rows=20,
    max_rows=1000,
    limiter=SamplesPerInsertConfig(samples_per_row=4.0, max_samples=10_000),
)
PASSES = dataclasses.replace(SMALL, with_replacement=False)


@pytest.mark.parametrize(
    ("num_rows", "expected"),
    [
        (0, 0),
        (100, 100),
        (250_000, 250_000),
        # 250000 * (1 + 0.4 * (x ** 0.65 - 1) / 0.65), x the multiple of 250000
        (500_000, 337_564),
        (1_000_000, 474_967),
        (25_000_000, 3_165_788),
        (250_000_000, 13_807_706),
    ],
)
def test_the_window_of_katago(num_rows, expected):
    assert WindowConfig(**KATAGO).window_rows(num_rows) == expected


def test_the_linear_window_and_the_cap():
    linear = {**KATAGO, "taper_exponent": 1.0, "expand_per_row": 0.5}

    def rows(num_rows, **changes):
        return WindowConfig(**{**linear, **changes}).window_rows(num_rows)

    assert rows(450_000) == 350_000
    assert rows(450_000, max_rows=300_000) == 300_000
    assert rows(450_000, expand_per_row=1.0) == 450_000


def test_the_taper_sets_in_over_min_rows_unless_told():
    rules = {**KATAGO, "taper_scale_rows": None}
    assert WindowConfig(**rules).window_rows(1_000_000) == 474_967


def test_the_window_never_reaches_back():
    rules = {**KATAGO, "min_rows": 10, "taper_scale_rows": 3, "expand_per_row": 1.0}
    config = WindowConfig(**rules)
    starts = [n - config.window_rows(n) for n in range(3000)]
    assert starts == sorted(starts)
    assert starts[0] == 0


def test_bad_windows_are_refused_by_field():
    with refused(UsageError, "max_rows (10)"):
        WindowConfig(max_rows=10)
    assert from_dict(WindowConfig, to_dict(SMALL)) == SMALL


def test_the_limiter_fills_drains_and_caps(tmp_path):
    limiter = SamplesPerInsertConfig(samples_per_row=0.5, max_samples=30)
    config = WindowConfig(min_rows=1, limiter=limiter)
    window = GameWindow("tictactoe", tmp_path, config, 0)
    assert window.available() == 0
    write_generation(tmp_path, 1, 3)
    num_rows = window.refresh()
    assert window.available() == num_rows // 2
    window.sample(num_rows // 2).ack()
    assert window.available() == 0
    restored = GameWindow("tictactoe", tmp_path, config, 0, window.state())
    write_generation(tmp_path, 2, 30)
    assert restored.refresh() > 2 * limiter.max_samples
    assert restored.available() == limiter.max_samples


def assert_same(first, second):
    np.testing.assert_array_equal(first.keys, second.keys)
    for name, column in first.columns.items():
        np.testing.assert_array_equal(column, second.columns[name], err_msg=name)


def test_batches_have_the_shapes_and_come_from_the_window(tmp_path):
    write_generation(tmp_path, 0, 30)
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    assert window.available() == 0
    num_new = window.refresh()
    assert num_new == window.num_rows
    assert window.refresh() == 0
    assert window.num_games == 30
    assert window.available() == 4 * num_new
    batch = window.sample(16)
    assert batch.lease == 0
    shapes = {name: column.shape for name, column in batch.columns.items()}
    assert shapes == {
        "planes": (16, batch.columns["planes"].shape[1], 3, 3),
        "legal": (16, 9),
        "policy": (16, 9),
        "policy_weight": (16,),
        "outcome": (16, 3),
        "search_value": (16,),
        "value_weight": (16,),
    }
    assert batch.probabilities.tolist() == [1 / window.window_rows] * 16
    assert window.available() == 4 * num_new - 16
    drawn = np.concatenate([window.sample(16).keys for _ in range(8)])
    assert drawn.min() >= window.num_rows - window.window_rows
    assert drawn.max() < window.num_rows
    assert window.window_rows < window.num_rows


def test_too_few_rows_and_too_much_use_are_run_errors(tmp_path):
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    with refused(RunError, "num_samples ("):
        window.sample(1)
    write_generation(tmp_path, 0, 10)
    window.refresh()
    window.sample(window.available())
    with refused(RunError, "num_samples ("):
        window.sample(1)


@pytest.mark.parametrize("config", [SMALL, PASSES])
def test_draws_depend_on_seed_and_step_alone(tmp_path, config):
    write_generation(tmp_path, 0, 10)
    windows = [GameWindow("tictactoe", tmp_path, config, seed) for seed in (1, 1, 2)]
    for window in windows:
        window.refresh()
    for _ in range(3):
        first, second, other = [window.sample(8) for window in windows]
        assert_same(first, second)
        assert first.keys.tolist() != other.keys.tolist()


def test_a_pass_has_each_row_once_and_the_next_has_another_order(tmp_path):
    write_generation(tmp_path, 0, 30)
    window = GameWindow("tictactoe", tmp_path, PASSES, seed=1)
    window.refresh()
    size, first = window.window_rows, window.num_rows - window.window_rows
    passes = [
        np.concatenate([window.sample(7).keys for _ in range(size // 7)])
        for _ in range(3)
    ]
    assert size % 7 != 0
    assert first > 0
    for keys in passes:
        assert len(set(keys.tolist())) == len(keys)
        assert keys.min() >= first
        assert keys.max() < window.num_rows
    assert passes[0].tolist() != passes[1].tolist() != passes[2].tolist()
    # What the last batches left out differs too: no row is left out for ever.
    assert len(set(np.concatenate(passes).tolist())) > len(passes[0])
    # With replacement, as many draws have some twice.
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    window.refresh()
    keys = np.concatenate([window.sample(7).keys for _ in range(size // 7)])
    assert len(set(keys.tolist())) < len(keys)


@pytest.mark.parametrize("max_rows", [1000, 40])
def test_a_pass_begins_anew_as_rows_arrive(tmp_path, max_rows):
    """Also where the window has its size for good."""
    config = dataclasses.replace(PASSES, max_rows=max_rows)
    write_generation(tmp_path, 0, 30)
    window = GameWindow("tictactoe", tmp_path, config, seed=1)
    window.refresh()
    before = window.sample(8).keys
    assert window.refresh() == 0
    goes_on = window.sample(8).keys
    assert not set(before.tolist()) & set(goes_on.tolist())
    write_generation(tmp_path, 1, 30)
    assert window.refresh() > 0
    first = window.num_rows - window.window_rows
    keys = np.concatenate(
        [window.sample(8).keys for _ in range(window.window_rows // 8 - 1)]
    )
    assert len(set(keys.tolist())) == len(keys)
    assert keys.min() >= first
    assert keys.max() >= window.num_rows - 60
    with refused(UsageError, "num_samples ("):
        window.sample(window.window_rows + 1)
    # Nothing was drawn by what was refused.
    after = window.sample(8).keys
    assert not set(keys.tolist()) & set(after.tolist())


def test_batches_are_acknowledged_in_order_and_once(tmp_path):
    write_generation(tmp_path, 0, 10)
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    window.refresh()
    first, second = window.sample(4), window.sample(4)
    with refused(UsageError, "lease (1)"):
        second.ack()
    first.ack()
    with refused(UsageError, "lease (0)"):
        first.ack()
    with refused(UsageError, "priorities"):
        second.ack(np.ones(4))
    second.ack()


@pytest.mark.parametrize("config", [SMALL, PASSES])
def test_a_restored_window_continues_as_the_uninterrupted_one(tmp_path, config):
    run = tmp_path / "experience"
    for generation in range(2):
        write_generation(run, generation, 30)
    window = GameWindow("tictactoe", run, config, seed=1)
    window.refresh()
    for _ in range(3):
        window.sample(8).ack()
    lost = window.sample(8)  # drawn ahead, lost with the process
    state = json.loads(json.dumps(window.state()))
    lost.ack()
    # Enough for a second pass.
    num_more = window.window_rows // 8
    batches = [lost, *(window.sample(8) for _ in range(num_more))]
    write_generation(run, 2, 30)
    window.refresh()
    batches += [window.sample(8) for _ in range(2)]

    resumed = GameWindow("tictactoe", run, config, seed=1, state=state)
    for expected in batches[: num_more + 1]:
        assert_same(resumed.sample(8), expected)
    resumed.refresh()
    for expected in batches[num_more + 1 :]:
        assert_same(resumed.sample(8), expected)
    assert resumed.available() == window.available()
    assert resumed.num_rows == window.num_rows
    assert resumed.window_rows == window.window_rows


def test_a_restored_window_opens_only_what_it_holds(tmp_path):
    config = WindowConfig(min_rows=20, max_rows=40)
    old = write_generation(tmp_path, 0, 30)
    for generation in (1, 2):
        write_generation(tmp_path, generation, 30)
    window = GameWindow("tictactoe", tmp_path, config, seed=1)
    window.refresh()
    old.unlink()
    resumed = GameWindow("tictactoe", tmp_path, config, seed=1, state=window.state())
    assert_same(resumed.sample(8), window.sample(8))
    assert resumed.num_rows == window.num_rows


def test_a_missing_or_changed_segment_is_named(tmp_path):
    sealed = write_generation(tmp_path, 0, 30)
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    window.refresh()
    state = window.state()
    content = sealed.read_bytes()
    sealed.unlink()
    with refused(RunError, "selfplay-0/0/000000.npz"):
        GameWindow("tictactoe", tmp_path, SMALL, seed=1, state=state)
    sealed.write_bytes(content)
    damaged = bytearray(content)
    damaged[-1] ^= 1
    sealed.write_bytes(damaged)
    with refused(RunError, "000000.npz"):
        GameWindow("tictactoe", tmp_path, SMALL, seed=1, state=state)


def test_a_segment_that_was_given_up_is_as_if_it_had_never_been(tmp_path):
    config = WindowConfig(min_rows=20, max_rows=1000, validation_share=0.2)
    paths = [write_generation(tmp_path, generation, 12) for generation in (1, 2, 3)]
    window = GameWindow("tictactoe", tmp_path, config, seed=1)
    window.refresh()
    window.lend(8)
    state = window.state()
    whole = paths[1].read_bytes()
    paths[1].write_bytes(b"")
    with refused(RunError, "000002.damaged"):
        GameWindow("tictactoe", tmp_path, config, seed=1, state=state)
    paths[1].rename(paths[1].with_suffix(".damaged"))
    assert predicted_window_bytes("tictactoe", tmp_path, config, state) > 0
    restored = GameWindow("tictactoe", tmp_path, config, seed=1, state=state)
    without = GameWindow("tictactoe", tmp_path, config, seed=1)
    assert restored.refresh() == 0
    without.refresh()
    assert restored.num_games == without.num_games == 24
    assert restored.describe() == without.describe()
    assert_same(restored.sample(8), without.sample(8))
    again = GameWindow("tictactoe", tmp_path, config, seed=1, state=restored.state())
    assert again.num_rows == restored.num_rows
    write_generation(tmp_path, 4, 12)
    assert again.refresh() > 0
    # It may stay beside, damaged; restored it comes back once the mark is gone.
    paths[1].write_bytes(b"")
    assert again.refresh() == 0
    assert restored.refresh() > 0
    paths[1].with_suffix(".damaged").rename(paths[1])
    paths[1].write_bytes(whole)
    assert again.refresh() == restored.refresh() > 0


def test_segments_of_another_game_are_refused(tmp_path):
    write_generation(tmp_path, 0, 3, name="connect4")
    with refused(UsageError, "tictactoe", "connect4"):
        GameWindow("tictactoe", tmp_path, SMALL, seed=1).refresh()
    with refused(UsageError, "chess"):
        GameWindow("chess", tmp_path, SMALL, seed=1)


def test_the_manifest_orders_by_generation_then_writer(tmp_path):
    write_generation(tmp_path, 1, 2, writer="b")
    write_generation(tmp_path, 0, 2, writer="z", incarnation=10)
    write_generation(tmp_path, 1, 2, writer="a")
    write_generation(tmp_path, 0, 2, writer="c", incarnation=2)
    manifest = Manifest(tmp_path)
    found = [(e.generation, e.writer) for e in manifest.discover()]
    assert found == [(0, "c"), (0, "z"), (1, "a"), (1, "b")]
    write_generation(tmp_path, 0, 2, writer="late")
    assert [e.writer for e in manifest.discover()] == ["late"]
    assert manifest.discover() == []
    restored = Manifest.from_dict(tmp_path, json.loads(json.dumps(manifest.to_dict())))
    assert list(restored) == list(manifest)
    assert restored.discover() == []
    assert (len(restored), restored.num_games) == (5, 10)


def test_a_segment_that_was_seen_counts_once(tmp_path):
    write_generation(tmp_path, 0, 5)
    window = GameWindow("tictactoe", tmp_path, SMALL, seed=1)
    assert window.refresh() == window.num_rows > 0
    num_rows, available = window.num_rows, window.available()
    assert window.refresh() == 0
    assert (window.num_rows, window.available()) == (num_rows, available)
