"""Bools lie in the table eight to a byte, and batches have the same bits as without."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tengen.experience.steps.item_layout
from tengen.experience import ItemLayout, ReplayConfig, StepClient, StepTable
from tengen.experience.steps.item_layout import pack_steps, packed_columns, unpack
from tengen.store import Column
from tengen.tensors import FRAMES, TensorSpec

BATCH = 8
COLUMNS = {
    "observation/planes": Column(dtype="bool", shape=(4, 10, 10)),
    "observation/odd": Column(dtype="bool", shape=(5, 13)),
    "observation/few": Column(dtype="bool", shape=(7, 9)),
    "observation/grey": Column(dtype="uint8", shape=(65,)),
    "is_reset": Column(dtype="uint8"),
    "truncated": Column(dtype="uint8"),
    "model_version": Column(dtype="int64"),
}
PACKED = {"observation/planes": (50,), "observation/odd": (9,)}
HIDDEN = {"hidden": TensorSpec(dtype="bool", shape=(3, 100))}
PAST = {FRAMES + "observation/planes": TensorSpec(dtype="bool", shape=(3, 4, 10, 10))}
LAYOUTS = {
    "single": ItemLayout(num_steps=3, period=1, state=PAST),
    "overlapping": ItemLayout(num_steps=9, period=4, state=HIDDEN),
    "closed": ItemLayout(num_steps=5, period=4, is_closed=True, state=PAST),
}


@pytest.fixture
def short_path():
    """A folder whose name is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        yield Path(folder)


@contextmanager
def without_packing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tengen.experience.steps.item_layout, "_LEAST_PACKED", 10**9)
        yield


@pytest.mark.parametrize("shape", [(64,), (65,), (4, 10, 10), (5, 13), (1, 8, 8)])
def test_bools_come_back(shape):
    bools = np.random.default_rng(1).random((3, 6, *shape)) < 0.3
    stored = packed_columns({"planes": Column(dtype="bool", shape=shape)})
    packed = pack_steps({"planes": bools}, stored)["planes"]
    assert packed.shape == (3, 6, *stored["planes"].shape)
    assert packed.nbytes <= bools.nbytes / 8 + 18
    again = unpack(packed, shape)
    assert again.dtype == np.bool_
    np.testing.assert_array_equal(again, bools)


def open_table(folder, layout, sampler, directory):
    return StepTable(
        folder / "steps",
        COLUMNS,
        layout,
        ReplayConfig(
            sampler=sampler,
            max_items=60,
            samples_per_item=1.0 if sampler == "fifo" else 1e6,
            timeout_s=300.0,
        ),
        seed=7,
        num_slots=8,
        batch_size=BATCH,
        directory=directory,
    )


def blocks(layout, num_slots, seed):
    """Random blocks of steps, with resets, and the states before them."""
    rng = np.random.default_rng(seed)
    num_rows = layout.block_steps(4) + layout.is_closed * (1 + layout.num_before)

    def some(column, *shape):
        drawn = rng.integers(0, 200, (*shape, *column.shape))
        return (drawn % 2 if column.dtype == "bool" else drawn).astype(column.dtype)

    while True:
        steps = {
            name: some(column, num_slots, num_rows) for name, column in COLUMNS.items()
        }
        steps["is_reset"] = (steps["is_reset"] < 20).astype(np.uint8)
        steps["model_version"][:] = 0
        yield steps, {n: some(spec, num_slots) for n, spec in layout.memory.items()}


def drawn(table, layout, directory):
    """Fills a table one and a half times and draws as it goes."""
    client, num_slots = None, 2
    if directory is not None:
        # Which of two slots of another process comes first, nobody says.
        client, num_slots = StepClient(str(directory), layout, table.config), 1
    writer = (client or table).writer("actor-0", num_slots)
    priorities = np.random.default_rng(3)
    batches = []
    num_items = 0
    for steps, state in blocks(layout, num_slots, seed=1):
        num_items += writer.append(steps, state)
        while table.available() >= BATCH and len(batches) < num_items // BATCH:
            batches.append(table.sample(BATCH))
            batches[-1].ack(priorities.random(BATCH))
        if num_items >= 90:
            break
    if client is not None:
        client.close()
    return batches


def check_alike(batches, others):
    assert len(batches) == len(others) >= 8
    for one, other in zip(batches, others, strict=True):
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        assert one.columns.keys() == other.columns.keys()
        for name, column in one.columns.items():
            assert column.dtype == other.columns[name].dtype
            np.testing.assert_array_equal(column, other.columns[name], name)


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("sampler", ["fifo", "prioritized"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_are_those_of_a_table_that_packs_nothing(
    tmp_path, short_path, layout, sampler, is_shared
):
    found = []
    stored = []
    for name in ("whole", "packed"):
        folder = tmp_path / name
        folder.mkdir()
        directory = short_path / name if is_shared else None
        if name == "whole":
            with without_packing():
                table = open_table(folder, LAYOUTS[layout], sampler, directory)
        else:
            table = open_table(folder, LAYOUTS[layout], sampler, directory)
            shapes = {name: table.stored[name].shape for name in PACKED}
            assert shapes == PACKED
        found.append(drawn(table, LAYOUTS[layout], directory))
        stored.append(sum(np.prod(c.shape, dtype=int) for c in table.stored.values()))
        table.close()
    check_alike(*found)
    assert stored[0] - stored[1] == 400 - 50 + 65 - 9


def test_a_replay_of_before_it_goes_on_as_it_was(tmp_path):
    layout = LAYOUTS["single"]
    with without_packing():
        table = open_table(tmp_path, layout, "prioritized", None)
        drawn(table, layout, None)
        num_items = table.describe()["num_items"]
        table.close()
    table = open_table(tmp_path, layout, "prioritized", None)
    assert table.stored["observation/planes"] == COLUMNS["observation/planes"]
    assert table.describe()["num_items"] == num_items
    planes = table.sample(BATCH).columns["observation/planes"]
    assert planes.dtype == np.bool_
    writer = table.writer("actor-1", 2)
    made = blocks(layout, 2, seed=2)
    assert sum(writer.append(*next(made)) for _ in range(4)) > 0
    table.close()
