"""A table of made-up board rows whose rule can be learnt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SIDE = 5
NUM_PLANES = 3


@dataclass
class FakeBatch:
    columns: dict[str, NDArray[np.generic]]
    table: FakeTable

    @property
    def keys(self):
        return np.arange(len(next(iter(self.columns.values()))))

    def ack(self, priorities=None):
        assert priorities is None
        self.table.num_acks += 1


@dataclass
class FakeTable:
    """Draws from a seeded generator; ``num_drawn`` is all of its state.

    Rule: whoever has more stones wins, and the move is the emptiest row's first cell.
    """

    num_drawn: int = 0
    num_acks: int = 0
    sizes: list[int] = field(default_factory=list)

    def sample(self, num_rows, /):
        rng = np.random.default_rng([12, self.num_drawn])
        self.num_drawn += 1
        self.sizes.append(num_rows)
        stones = rng.integers(0, 3, size=(num_rows, SIDE, SIDE))
        planes = np.ones((num_rows, NUM_PLANES, SIDE, SIDE), dtype=np.float32)
        planes[:, 1], planes[:, 2] = stones == 1, stones == 2
        lead = planes[:, 1].sum((1, 2)) - planes[:, 2].sum((1, 2))
        outcome = np.stack([lead > 0, lead == 0, lead < 0], axis=1)
        policy = np.zeros((num_rows, SIDE * SIDE), dtype=np.float32)
        emptiest = (stones == 0).sum(2).argmax(1)
        policy[np.arange(num_rows), emptiest * SIDE] = 1.0
        columns: dict[str, NDArray[np.generic]] = {
            "planes": planes,
            "legal": np.ones((num_rows, SIDE * SIDE), dtype=np.uint8),
            "policy": policy,
            "policy_weight": np.ones(num_rows, dtype=np.float32),
            "outcome": outcome.astype(np.float32),
            "search_value": np.sign(lead).astype(np.float32),
            "value_weight": np.ones(num_rows, dtype=np.float32),
        }
        return FakeBatch(columns, self)
