"""How the steps of a slot are cut into items, and where recurrent state lies in them.

An item begins every ``period`` steps and has ``num_steps`` of them, so that items
overlap where ``num_steps`` is greater than ``period``; a step lies in the store once.

The recurrent state that a network had before an item's first step is stored with the
item: in ``period`` pieces of equal size, one a step. Each item so has exactly one
state, that of its own first step, at the cost of one state an item and not one a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_range
from tengen.store import Column
from tengen.tensors import TensorSpec

__all__ = ["STATE", "ItemLayout"]

STATE = "state/"
"""What the names of state columns begin with."""


@dataclass(frozen=True, kw_only=True)
class ItemLayout:
    """Which steps of a slot an item has.

    Legend: K steps of a block, P the period, B items, N slots.
    """

    num_steps: int
    """Steps T of an item, at least 2: a transition and what follows it."""
    period: int
    """Steps from an item's first to the next one's, 1 to ``num_steps``."""
    is_closed: bool = False
    """Whether an item's last step stands there for its observation alone, and is the
    next item's first step once more: the item is complete without waiting for what is
    done in it, as learning on the newest policy needs it. ``num_steps`` is then
    ``period + 1``."""
    state: dict[str, TensorSpec] = field(default_factory=dict)
    """The recurrent state of an item's first step, by name."""

    def __post_init__(self) -> None:
        """Checks the fields against each other.

        Raises:
            UsageError: They do not fit.
        """
        check_range("num_steps", self.num_steps, 2, 2**31)
        check(
            1 <= self.period <= self.num_steps,
            "period",
            self.period,
            f"must be 1 to num_steps ({self.num_steps}); lower it",
        )
        check(
            not self.is_closed or self.num_steps == self.period + 1,
            "num_steps",
            self.num_steps,
            f"must be {self.period + 1} where items are closed; correct it",
        )

    def state_columns(self) -> dict[str, Column]:
        """Returns the columns of a step that hold the pieces of the state."""
        return {
            STATE + name: Column(dtype=spec.dtype, shape=(self._piece(spec),))
            for name, spec in self.state.items()
        }

    def block_steps(self, turn_steps: int) -> int:
        """Returns the steps K of a block, of which each slot has one after another.

        A block has the steps of one period, as a state is known where a block begins
        and a closing step where it ends, and nowhere else; where every step begins an
        item that has neither, it has as many as an actor likes. A closing step comes on
        top.

        Args:
            turn_steps: What the actor likes, at least 1.
        """
        is_single = self.period == 1 and not self.is_closed and not self.state
        return turn_steps if is_single else self.period

    def cut(
        self, state: Mapping[str, NDArray[Any]], num_rows: int
    ) -> dict[str, NDArray[Any]]:
        """Returns the pieces of N states, ``[N, num_rows, piece]`` each.

        Args:
            state: ``[N, ...]`` each, before the first step of a block.
            num_rows: Steps of the block, a closing one included; its piece is zero.
        """
        pieces: dict[str, NDArray[Any]] = {}
        for name, spec in self.state.items():
            num_slots = len(state[name])
            flat = np.zeros((num_slots, num_rows * self._piece(spec)), spec.dtype)
            flat[:, : spec.num_entries] = state[name].reshape(num_slots, -1)
            pieces[STATE + name] = flat.reshape(num_slots, num_rows, -1)
        return pieces

    def join(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the columns of B items with their states in one piece.

        Args:
            columns: ``[B, num_steps, ...]`` each, by flat names.

        Returns:
            The same, but for the states, which are ``[B, ...]``.
        """
        joined = dict(columns)
        for name, spec in self.state.items():
            pieces = columns[STATE + name][:, : self.period]
            flat = pieces.reshape(len(pieces), -1)[:, : spec.num_entries]
            joined[STATE + name] = flat.reshape(len(pieces), *spec.shape)
        return joined

    def ends(self, first_step: int, is_reset: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns which steps of a block are an item's last.

        An item of period 1 is one transition and what follows it, so none begins with a
        step that is a reset.

        Args:
            first_step: The number of the block's first step, of its slot, from 0.
            is_reset: ``[num_steps - 1 + K]``, of the steps before the block and of the
                block, False where there were none.

        Returns:
            ``[K]``.
        """
        num_before = self.num_steps - 1
        num_rows = len(is_reset) - num_before
        if self.is_closed:
            # Every block is an item, whatever the steps before it.
            ends = np.zeros(num_rows, np.bool_)
            ends[-1] = True
            return ends
        first = np.arange(first_step, first_step + num_rows) - num_before
        ends = (first >= 0) & (first % self.period == 0)
        if self.period == 1:
            ends &= ~is_reset[:num_rows]
        return np.asarray(ends, np.bool_)

    def _piece(self, spec: TensorSpec) -> int:
        """Entries of a state that one step holds."""
        return -(-spec.num_entries // self.period)
