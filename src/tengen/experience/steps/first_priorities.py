"""The priorities of new items, computed from the answers that the actor acted by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.experience.steps.item_layout import ItemLayout

__all__ = ["FirstPriorities", "PriorityWindow"]

_STORED = ("reward", "terminated", "is_reset")


@dataclass(frozen=True)
class FirstPriorities:
    """How an agent computes a new item's priority without another evaluation."""

    columns: tuple[str, ...]
    """Columns of a step that only this needs, and that are not stored."""
    of: Callable[[dict[str, NDArray[Any]]], NDArray[np.float64]]
    """Returns priorities ``[B]``, at least 0, from ``columns``, reward, terminated and
    is_reset, ``[B, num_steps, ...]`` each."""


class PriorityWindow:
    """Keeps the last steps of every slot that items ending later may have.

    Legend: N slots, K steps of a block.
    """

    def __init__(self, first: FirstPriorities, layout: ItemLayout) -> None:
        """Begins without steps.

        Args:
            first: How the agent computes priorities.
            layout: Layout of the agent's items.
        """
        self._first = first
        self._layout = layout
        self._before: dict[str, NDArray[Any]] = {}

    def of(
        self, columns: Mapping[str, NDArray[Any]], ends: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Returns ``[N, K]``, the priorities of the items that end with each step.

        Args:
            columns: ``[N, K, ...]`` each, the next steps of every slot.
            ends: ``[N, K]``, which steps are an item's last; the others get priority 0.
        """
        reach = self._layout.num_stored - 1
        priorities = np.zeros(ends.shape)
        items: dict[str, NDArray[Any]] = {}
        for name in (*_STORED, *self._first.columns):
            column = columns[name]
            before = self._before.get(name)
            if before is None:
                before = np.zeros((len(column), reach, *column.shape[2:]), column.dtype)
            steps = np.concatenate([before, column], axis=1)
            self._before[name] = steps[:, column.shape[1] :]
            windows = np.lib.stride_tricks.sliding_window_view(steps, reach + 1, axis=1)
            # [items, ..., num_stored], where the first steps only give their inputs.
            chosen = np.moveaxis(windows[ends], -1, 1)
            items[name] = chosen[:, self._layout.num_before :]
        if ends.any():
            priorities[ends] = self._first.of(items)
        return priorities
