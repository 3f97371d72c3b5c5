"""What packing bools costs and saves in a table of steps, in this process's CPU time.

    python benchmarks/store/packing.py [--items 20000] [--json]

For the observations of each suite with bools: a prioritized replay of items of four
steps, as DQN's, is filled and drawn from in batches of 64, with the column as bools and
eight to a byte. One thread writes and draws; the store's own threads count too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

from tengen.experience import ItemLayout, ReplayConfig, StepTable
from tengen.run import machine_line
from tengen.store import Column

OBSERVATIONS = {
    "minatar": (4, 10, 10),
    "minigrid": (20, 7, 7),
    "football": (4, 72, 96),
}
LAYOUT = ItemLayout(num_steps=4, period=1)
NUM_SLOTS = 16
BLOCK = 64
BATCH = 64
NUM_BATCHES = 2_000


def measure(shape: tuple[int, ...], num_items: int, least: int) -> dict[str, float]:
    """Returns bytes and CPU-microseconds of a step written and of an item drawn.

    Args:
        shape: Of the observation.
        num_items: Of the table.
        least: Bools from which on a column is packed.
    """
    columns = {
        "observation": Column(dtype="bool", shape=shape),
        "action": Column(dtype="int64"),
        "reward": Column(dtype="float32"),
        "truncated": Column(dtype="uint8"),
        "is_reset": Column(dtype="uint8"),
        "model_version": Column(dtype="int64"),
    }
    rng = np.random.default_rng(1)
    block = {
        name: np.zeros((NUM_SLOTS, BLOCK, *column.shape), column.dtype)
        for name, column in columns.items()
    }
    block["observation"] = rng.random(block["observation"].shape) < 0.1
    config = ReplayConfig(
        sampler="prioritized", max_items=num_items, samples_per_item=1e6
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("tengen.experience.steps.packing._LEAST", least),
    ):
        table = StepTable(
            Path(folder) / "steps",
            columns,
            LAYOUT,
            config,
            seed=1,
            num_slots=NUM_SLOTS,
            batch_size=BATCH,
        )
        writer = table.writer("actor-0", NUM_SLOTS)
        num_steps = 0
        begun = time.process_time()
        while table.describe()["num_items"] < num_items:
            writer.append(block, {})
            num_steps += NUM_SLOTS * BLOCK
        written = time.process_time()
        for _ in range(NUM_BATCHES):
            batch = table.sample(BATCH)
            batch.ack(np.ones(BATCH))
        drawn = time.process_time()
        step_bytes = sum(
            np.dtype(one.dtype).itemsize * int(np.prod(one.shape))
            for one in table.stored.values()
        )
        table.close()
    return {
        "step_bytes": step_bytes,
        "step_us": 1e6 * (written - begun) / num_steps,
        "item_us": 1e6 * (drawn - written) / (NUM_BATCHES * BATCH),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = {
        name: {
            kind: measure(shape, args.items, least)
            for kind, least in (("bools", 10**9), ("packed", 64))
        }
        for name, shape in OBSERVATIONS.items()
    }
    if args.json:
        print(json.dumps({**found, "machine": machine_line()}))
        return
    for name, kinds in found.items():
        for kind, values in kinds.items():
            print(name, kind, {key: round(value, 2) for key, value in values.items()})


if __name__ == "__main__":
    main()
