"""How the steps of a slot are cut into items, and where recurrent state lies in them.

An item begins every ``period`` steps and has ``num_steps`` of them, so that items
overlap where ``num_steps`` is greater than ``period``; a step lies in the store once.

The recurrent state that a network had before an item's first step is stored with the
item: in ``period`` pieces of equal size, one a step. Each item so has exactly one
state, that of its own first step, at the cost of one state an item and not one a step.

What a network keeps of past inputs is not stored: an item begins as many steps earlier,
which give the inputs again. An image so lies in the store once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_range
from tengen.store import Column
from tengen.tensors import FRAMES, TensorSpec

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
    """The state of a network before an item's first step, by name. Of those that begin
    with ``FRAMES`` the inputs of the steps before tell, ``num_before`` of them."""

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

    @property
    def num_before(self) -> int:
        """Steps before an item's first that lie in it for their inputs alone."""
        return max((spec.shape[0] for spec in self.frames.values()), default=0)

    @property
    def num_stored(self) -> int:
        """Steps of the store that an item has, those before its first included."""
        return self.num_before + self.num_steps

    @property
    def memory(self) -> dict[str, TensorSpec]:
        """The recurrent state, which is stored."""
        return {n: spec for n, spec in self.state.items() if not n.startswith(FRAMES)}

    @property
    def frames(self) -> dict[str, TensorSpec]:
        """Past inputs, by the input's name."""
        return {
            name.removeprefix(FRAMES): spec
            for name, spec in self.state.items()
            if name.startswith(FRAMES)
        }

    def state_columns(self) -> dict[str, Column]:
        """Returns the columns of a step that hold the pieces of the state."""
        return {
            STATE + name: Column(dtype=spec.dtype, shape=(self._piece(spec),))
            for name, spec in self.memory.items()
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
        is_single = self.period == 1 and not self.is_closed and not self.memory
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
        for name, spec in self.memory.items():
            num_slots = len(state[name])
            flat = np.zeros((num_slots, num_rows * self._piece(spec)), spec.dtype)
            flat[:, : spec.num_entries] = state[name].reshape(num_slots, -1)
            pieces[STATE + name] = flat.reshape(num_slots, num_rows, -1)
        return pieces

    def join(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the columns of B items with their states in one piece.

        Args:
            columns: ``[B, num_stored, ...]`` each, by flat names.

        Returns:
            The same ``[B, num_steps, ...]``, and the states ``[B, ...]``.
        """
        first = self.num_before
        joined = {name: column[:, first:] for name, column in columns.items()}
        if first:
            # An image is of this episode where no step from it on resets.
            is_reset = columns["is_reset"][:, :first] != 0
            is_old = np.logical_or.accumulate(is_reset[:, ::-1], axis=1)[:, ::-1]
        for name, spec in self.frames.items():
            kept = columns[name][:, first - spec.shape[0] : first].copy()
            kept[is_old[:, first - spec.shape[0] :]] = 0
            joined[STATE + FRAMES + name] = kept
        for name, spec in self.memory.items():
            pieces = joined[STATE + name][:, : self.period]
            flat = pieces.reshape(len(pieces), -1)[:, : spec.num_entries]
            joined[STATE + name] = flat.reshape(len(pieces), *spec.shape)
        return joined

    def ends(self, first_step: int, is_reset: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns which steps of a block are an item's last.

        An item of period 1 is one transition and what follows it, so none begins with a
        step that is a reset.

        Args:
            first_step: The number of the block's first step, of its slot, from 0.
            is_reset: ``[num_stored - 1 + K]``, of the steps before the block and of
                the block, False where there were none.

        Returns:
            ``[K]``.
        """
        reach = self.num_stored - 1
        num_rows = len(is_reset) - reach
        if self.is_closed:
            # Every block is an item, whatever the steps before it.
            ends = np.zeros(num_rows, np.bool_)
            ends[-1] = True
            return ends
        steps = np.arange(first_step, first_step + num_rows)
        first = steps - (self.num_steps - 1)
        ends = (first >= self.num_before) & (first % self.period == 0)
        if self.period == 1:
            ends &= ~is_reset[self.num_before : self.num_before + num_rows]
        return np.asarray(ends, np.bool_)

    def _piece(self, spec: TensorSpec) -> int:
        """Entries of a state that one step holds."""
        return -(-spec.num_entries // self.period)
