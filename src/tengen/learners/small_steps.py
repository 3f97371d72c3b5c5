"""Learner steps of small networks, which are recorded once and then replayed."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen.learners.config import AdamWConfig
from tengen.learners.optimizer import Optimizer
from tengen.learners.replay import Replayed
from tengen.learners.shards import Shards, joined_priorities
from tengen.learners.update import Update
from tengen.nets import Net

__all__ = ["SmallSteps"]

# Maximum number of trained parameters. In larger networks, arithmetic takes most of the
# time of a step.
_MOST_PARAMETERS = 1 << 19


class SmallSteps:
    """Performs optimizer steps with `Replayed` functions.

    The functions are those of the learner loop: loss, gradients and clipping in one,
    and the optimizer's update with all that follows from it in another, because between
    them the learner checks that the gradient is finite. Not thread-safe.

    Args:
        net: The network in training.
        shards: The network's only copy.
        optimizer: The network's optimizer.
        update: The agent's update.
    """

    def __init__(
        self, net: Net, shards: Shards, optimizer: Optimizer, update: Update
    ) -> None:
        self._net = net
        self._shards = shards
        self._optimizer = optimizer
        self._update = update
        self._names: list[str] = []
        self._gradients = Replayed(self._compute)
        self._application = Replayed(self._apply)

    @staticmethod
    def support(net: Net, shards: Shards, optimizer: Optimizer, update: Update) -> bool:
        """Returns whether steps can be replayed, given the constructor's arguments.

        The network must be small and consist of matrices and vectors without a state,
        on the CPU, in one part, with AdamW; and the update must be traceable.
        """
        parameters = [*net.parameters(), *update.parameters()]
        return (
            update.is_traceable
            and shards.num_parts == 1
            and isinstance(optimizer.config, AdamWConfig)
            and not net.signature.state
            and all(p.dim() <= 2 and p.device.type == "cpu" for p in parameters)
            and sum(p.numel() for p in parameters) <= _MOST_PARAMETERS
        )

    @property
    def num_programs(self) -> int:
        """Number of recorded programs."""
        return self._gradients.num_programs + self._application.num_programs

    def step(
        self, columns: dict[str, Tensor], remaining: float | None, asked: float | None
    ) -> tuple[dict[str, float], NDArray[np.float64] | None]:
        """Performs the optimizer step of a minibatch, except ``Update.stepped``.

        Args:
            columns: The minibatch, tensors ``[rows, ...]``.
            remaining: As in ``learning_rate_at``.
            asked: As in ``learning_rate_at``.

        Returns:
            The metrics, and the priorities of the items if the agent has any.

        Raises:
            RunError: The gradient is not finite; no parameter was changed.
        """
        found = self._gradients(columns)
        *values, norm = found.pop("numbers").tolist()
        priorities = joined_priorities(list(found.values()))
        rate = self._optimizer.begin(norm, remaining, asked)
        self._application({})
        if not self._averages:
            self._optimizer.update_average()
        metrics = dict(zip(self._names, values, strict=True))
        return {**metrics, "grad_norm": norm, "learning_rate": rate}, priorities

    @property
    def _averages(self) -> bool:
        """Whether the weight of the average is constant, so that it can be recorded."""
        return self._optimizer.config.average_decay == 0

    def _compute(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        parts = self._shards.compute(columns)
        self._shards.add_gradients(parts)
        norm = self._optimizer.clip(self._shards.gradients)
        (part,) = parts
        self._names = list(part.metrics)
        numbers = torch.stack([*part.metrics.values(), norm])
        found = {} if part.priorities is None else {"priorities": part.priorities}
        return {"numbers": numbers, **found}

    def _apply(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        self._optimizer.apply()
        self._shards.merge_statistics()
        if self._averages:
            self._optimizer.update_average()
        self._update.follow(self._net)
        return {}
