"""Steps whose numbers say where they come from, and tables of them."""

from __future__ import annotations

import numpy as np

from tengen.experience import ReplayConfig, StepClient, StepTable
from tengen.store import Column
from tengen.tensors import TensorSpec

FLAGS = ("terminated", "truncated", "is_reset")
COLUMNS = {
    "model_version": Column(dtype="int64"),
    "observation/number": Column(dtype="int64"),
    "observation/pair": Column(dtype="float32", shape=(2,)),
    "reward": Column(dtype="float32"),
    **dict.fromkeys(FLAGS, Column(dtype="uint8")),
}
# Two tensors, of which neither divides by 2, 3 or 4, of other types than float32 too.
STATE = {
    "lstm/hidden": TensorSpec(shape=(5,)),
    "lstm/count": TensorSpec(dtype="int16", shape=(7, 1)),
}


def numbers_of(num_slots, first_step, num_steps):
    """1000 * slot + step, ``[N, K]``."""
    steps = np.arange(first_step, first_step + num_steps)
    return 1000 * np.arange(num_slots)[:, None] + steps


def block(numbers, is_reset=None):
    """Steps of these numbers ``[N, K]``; an episode ends before each reset."""
    resets = np.zeros(numbers.shape, np.uint8)
    if is_reset is not None:
        resets[:] = is_reset
    ended = np.zeros_like(resets)
    ended[:, :-1] = resets[:, 1:]
    return {
        "observation/number": numbers,
        "observation/pair": np.stack([numbers, -numbers], -1).astype(np.float32),
        "reward": (numbers / 2).astype(np.float32),
        "terminated": ended,
        "truncated": np.zeros_like(resets),
        "is_reset": resets,
    }


def state_of(specs, numbers):
    """A state before steps of these numbers ``[N]``, no two alike, ``[N, ...]``."""
    return {
        name: np.stack(
            [
                np.random.default_rng([int(number), place])
                .integers(-99, 99, spec.shape)
                .astype(spec.dtype)
                for number in numbers
            ]
        )
        for place, (name, spec) in enumerate(specs.items())
    }


class Steps:
    """A table of numbered steps and its one writer.

    Where the table has a directory, the writer comes to it as from another process.
    """

    def __init__(
        self,
        folder,
        layout,
        *,
        num_slots=1,
        batch_size=8,
        columns=COLUMNS,
        state=None,
        directory=None,
        **config,
    ):
        self.table = StepTable(
            folder / "steps",
            columns,
            layout,
            ReplayConfig(**{"max_items": 1000, "timeout_s": 20.0, **config}),
            seed=3,
            state=state,
            num_slots=num_slots,
            batch_size=batch_size,
            directory=directory,
        )
        self._client: StepClient | None = None
        if directory is not None:
            self._client = StepClient(str(directory), layout, self.table.config)
        self.writer = (self._client or self.table).writer("actor-0", num_slots)
        self._num_slots = num_slots
        self.num_steps = 0

    def append(self, num_steps, version=0, is_reset=None):
        """Appends the next so many steps of every slot, and their closing steps."""
        layout = self.table.layout
        numbers = numbers_of(
            self._num_slots, self.num_steps, num_steps + layout.is_closed
        )
        self.num_steps += num_steps
        return self.writer.append(
            {
                **block(numbers, is_reset),
                "model_version": np.full(numbers.shape, version, np.int64),
            },
            state_of(layout.state, numbers[:, 0]),
        )

    def all_items(self):
        """Every item of a queue, oldest first."""
        batch = self.table.sample(self.table.available())
        batch.ack()
        return dict(batch.columns)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._client is not None:
            self._client.close()
        self.table.close()


def check_states(layout, columns, first_numbers):
    """Each item has the state of its own first step."""
    expected = state_of(layout.state, first_numbers)
    for name, spec in layout.state.items():
        found = columns[f"state/{name}"]
        assert found.dtype == spec.dtype
        np.testing.assert_array_equal(found, expected[name])
