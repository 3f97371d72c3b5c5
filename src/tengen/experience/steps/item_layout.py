"""Defines how a slot's steps are divided into items, and how items store their state.

An item begins every ``period`` steps and has ``num_steps`` steps, so items overlap if
``num_steps`` is greater than ``period``. Each step is stored once.

The recurrent state before an item's first step is split into ``period`` parts of equal
size, which are stored with the item's steps. So the table stores one state per item
instead of one per step.

The past inputs in a network's state, such as stacked frames, are not stored. Instead,
an item also contains the steps before it that provide the past inputs. So each image is
stored once.

A table stores eight bools in a byte. Writers pack steps and clients unpack batches, so
callers see only bools. Unpacking takes about as long as the copying that it saves
(`benchmarks/results/packing.md`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_range
from tengen.store import Column
from tengen.tensors import FRAMES, TensorSpec

STATE = "state/"
"""Prefix of the names of columns that hold recurrent states."""

# Minimum number of bools in a packed column, because packing fewer would save little.
_LEAST_PACKED = 64


@dataclass(frozen=True, kw_only=True)
class ItemLayout:
    """The layout of a table's items: which steps of a slot form an item.

    Legend: K steps of a block, P the period, B items, N slots.
    """

    num_steps: int
    """Number T of steps in an item, at least 2: a transition and the step after it."""
    period: int
    """Number of steps between the starts of two items, 1 to ``num_steps``."""
    is_closed: bool = False
    """Whether an item ends with a closing step, which only provides an observation and
    is stored again as the next item's first step. So items are complete before the
    action of this step is chosen, as on-policy learning requires. ``num_steps`` must
    be ``period + 1``."""
    state: dict[str, TensorSpec] = field(default_factory=dict)
    """The network's state before an item's first step, by name. States whose name
    begins with ``FRAMES`` are computed from the inputs of the ``num_before`` steps
    before the item."""

    def __post_init__(self) -> None:
        """Checks that ``num_steps``, ``period`` and ``is_closed`` are consistent.

        Raises:
            UsageError: The fields are inconsistent.
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
        """Number of steps stored before an item's first, only for their inputs."""
        return max((spec.shape[0] for spec in self.frames.values()), default=0)

    @property
    def num_stored(self) -> int:
        """Number of steps that an item stores, including ``num_before``."""
        return self.num_before + self.num_steps

    @property
    def memory(self) -> dict[str, TensorSpec]:
        """The tensors of ``state`` that items store: those without past inputs."""
        return {n: spec for n, spec in self.state.items() if not n.startswith(FRAMES)}

    @property
    def frames(self) -> dict[str, TensorSpec]:
        """The tensors of ``state`` that hold past inputs, by the name of the input."""
        return {
            name.removeprefix(FRAMES): spec
            for name, spec in self.state.items()
            if name.startswith(FRAMES)
        }

    def state_columns(self) -> dict[str, Column]:
        """Returns the columns of a step that hold parts of the recurrent state."""
        return {
            STATE + name: Column(dtype=spec.dtype, shape=(self._piece(spec),))
            for name, spec in self.memory.items()
        }

    def block_steps(self, turn_steps: int) -> int:
        """Returns the number K of steps in a writer's block, without a closing step.

        A block has the steps of one period, because the state is known only at the
        start of a block and a closing step only at its end. If every step begins an
        item and items have neither a state nor a closing step, a block has
        ``turn_steps`` steps.

        Args:
            turn_steps: Number of steps in an actor's turn, at least 1.
        """
        is_single = self.period == 1 and not self.is_closed and not self.memory
        return turn_steps if is_single else self.period

    def cut(
        self, state: Mapping[str, NDArray[Any]], num_slots: int, num_rows: int
    ) -> dict[str, NDArray[Any]]:
        """Splits N recurrent states into parts, arrays ``[N, num_rows, part]``.

        Args:
            state: Arrays ``[N, ...]``, the states before the first step of a block; or
                ``[N * n, ...]`` if a slot has the states of n agents.
            num_slots: Number N of slots.
            num_rows: Number of steps in the block; the part in a closing step is zero.
        """
        pieces: dict[str, NDArray[Any]] = {}
        for name, spec in self.memory.items():
            flat = np.zeros((num_slots, num_rows * self._piece(spec)), spec.dtype)
            flat[:, : spec.num_entries] = state[name].reshape(num_slots, -1)
            pieces[STATE + name] = flat.reshape(num_slots, num_rows, -1)
        return pieces

    def join(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the columns of B items, with their recurrent states joined again.

        Args:
            columns: Arrays ``[B, num_stored, ...]`` by flat name.

        Returns:
            The same columns ``[B, num_steps, ...]``, and the states ``[B, ...]``.
        """
        first = self.num_before
        joined = dict(columns)
        if first:
            joined = {name: column[:, first:] for name, column in columns.items()}
            # An input is from an earlier episode if its own step, or a later step
            # before the item, is a reset step.
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
        """Returns a mask ``[K]`` of the steps in a block with which an item ends.

        With period 1, no item begins with a reset step, which is not a transition.

        Args:
            first_step: Index of the block's first step in its slot, from 0.
            is_reset: ``[num_stored - 1 + K]``, whether each step before and in the
                block is a reset step; False before the slot's first step.
        """
        reach = self.num_stored - 1
        num_rows = len(is_reset) - reach
        if self.is_closed:
            # A block of closed items is exactly one item.
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
        """Returns the number of entries of a state that each step stores."""
        return -(-spec.num_entries // self.period)


def packed_columns(
    columns: Mapping[str, Column], whole: Container[str] = ()
) -> dict[str, Column]:
    """Returns a table's columns for ``columns``, with large bool columns packed.

    Args:
        columns: Columns of a step, by flat name.
        whole: Names of columns that must not be packed.
    """
    return {
        name: Column(dtype="uint8", shape=(-(-math.prod(column.shape) // 8),))
        if column.dtype == "bool"
        and math.prod(column.shape) >= _LEAST_PACKED
        and name not in whole
        else column
        for name, column in columns.items()
    }


def pack_steps(
    steps: Mapping[str, NDArray[Any]], stored: Mapping[str, Column]
) -> dict[str, NDArray[Any]]:
    """Packs the bool columns of steps, eight bools to a byte, as a table stores them.

    Args:
        steps: Arrays of shape ``[N, K, ...]``, by column.
        stored: The table's columns, by flat name.
    """
    return {
        name: np.packbits(array.reshape(*array.shape[:2], -1), axis=-1)
        if array.dtype == np.bool_ and stored[name].dtype == "uint8"
        else array
        for name, array in steps.items()
    }


def unpack_batch(
    drawn: Mapping[str, Any], packed: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Unpacks a batch from a table; returns its columns by flat name.

    Args:
        drawn: The sampled columns, nested.
        packed: The shapes of the columns to unpack, by flat name.
    """
    flat = dict(_flat(drawn))
    for name, shape in packed.items():
        flat[name] = unpack(flat[name], shape)
    return flat


def _flat(columns: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the flat name and the array of each nested column."""
    for name, column in columns.items():
        if isinstance(column, Mapping):
            yield from _flat(column, f"{where}{name}/")
        else:
            yield f"{where}{name}", column


def unpack(packed: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Returns the bools that ``packed`` contains, ``[B, T, *shape]``.

    Args:
        packed: ``[B, T, num_bytes]``, eight bools in each byte.
        shape: Shape of the column in one step.
    """
    bits = np.unpackbits(packed, axis=-1, count=math.prod(shape))
    return bits.view(np.bool_).reshape(*packed.shape[:2], *shape)
