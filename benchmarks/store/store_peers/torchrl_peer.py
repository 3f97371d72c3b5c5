"""TorchRL: its tensor buffer, in one process.

Storage is allocated contiguously up front (``LazyTensorStorage``), sampling uses the
C++ trees of ``PrioritizedSampler``, and ``extend`` adds blocks. Each batch is a new
tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peer import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Columns, Drawn, Table
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.samplers import PrioritizedSampler, RandomSampler


class InProcess:
    """``TensorDictReplayBuffer``."""

    def __init__(self, table: Table) -> None:
        # More threads cost more CPU seconds than they save.
        torch.set_num_threads(1)
        self._table = table
        sampler = RandomSampler()
        if table.is_prioritized:
            sampler = PrioritizedSampler(
                table.num_items, alpha=PRIORITY_EXPONENT, beta=IMPORTANCE_EXPONENT
            )
        self._buffer = TensorDictReplayBuffer(
            storage=LazyTensorStorage(table.num_items),
            sampler=sampler,
            batch_size=table.batch_size,
        )

    def insert(self, columns: Columns) -> None:
        tensors = {name: torch.as_tensor(array) for name, array in columns.items()}
        count = len(next(iter(tensors.values())))
        self._buffer.extend(TensorDict(tensors, batch_size=[count]))

    def flush(self) -> None:
        pass

    def sample(self) -> Drawn:
        batch: Any = self._buffer.sample()
        columns = {name: batch[name].numpy() for name in self._table.columns}
        if not self._table.is_prioritized:
            return Drawn(columns, None, lambda _: None)
        places = batch["index"]

        def update(priorities: NDArray[np.float64] | None) -> None:
            self._buffer.update_priority(
                places, torch.as_tensor(priorities, dtype=torch.float32)
            )

        return Drawn(columns, batch["priority_weight"].numpy(), update)

    def close(self) -> None:
        pass
