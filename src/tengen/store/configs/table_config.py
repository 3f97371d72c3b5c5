"""The config of a table: columns, sampler, remover, capacity and rate limiter."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_whole, fill_native, from_dict
from tengen.errors import UsageError
from tengen.store.configs.rate_limits import RateLimits

_CHUNK_BYTES = 65536
_NO_BOUND = 2**64 - 1
# Removed settings, and the default values that earlier versions wrote into run.json.
_DROPPED_OF_COLUMN = {"stack": 1}
_DROPPED_OF_SELECTOR = {
    "window": 1,
    "min_items": 1,
    "max_items": 20_000_000,
    "growth_exponent": 0.65,
    "growth_scale": 1.0,
    "expand_per_item": 0.4,
}
_DROPPED_OF_TABLE = {"max_staleness": None}


def check_kind(name: str, value: object, kind: type) -> None:
    """Raises UsageError if ``value`` is not an instance of ``kind``."""
    check(
        isinstance(value, kind),
        name,
        repr(value),
        f"must be a {kind.__name__}; write {kind.__name__}(...)",
    )


@dataclass(frozen=True, kw_only=True)
class Column:
    """The dtype and shape of an array that every step contains."""

    dtype: str
    """Name of a NumPy dtype such as ``uint8``: bool, or an integer or float type of at
    most 8 bytes. Other NumPy spellings of a dtype are converted to its name."""

    shape: tuple[int, ...] = ()
    """Shape of the array in one step, such as ``(84, 84)``."""

    def __post_init__(self) -> None:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        check(
            dtype.kind in "biuf" and dtype.itemsize <= 8,
            "dtype",
            self.dtype,
            "must be a bool, integer or float type of numpy; convert the column",
        )
        object.__setattr__(self, "dtype", dtype.name)
        check(
            isinstance(self.shape, Sequence) and not isinstance(self.shape, str),
            "shape",
            self.shape,
            "must be a tuple of lengths; write (84, 84), or () for a number",
        )
        object.__setattr__(self, "shape", tuple(self.shape))
        for length in self.shape:
            check_whole("shape", length, 1, 2**31)


@dataclass(frozen=True, kw_only=True)
class Selector:
    """The config of a table's sampler or remover, which selects the next item."""

    kind: Literal["uniform", "prioritized", "fifo"] = "uniform"
    """``prioritized`` selects by priority; ``fifo`` selects the oldest item."""

    exponent: float = bounded(
        0.6,
        0,
        math.inf,
        below=True,
        rule="must be finite and at least 0; use 0 for uniform, 1 for proportional",
    )
    """For ``prioritized``: the probability of an item is proportional to ``priority **
    exponent``; 0 or more."""

    def __post_init__(self) -> None:
        check_fields(self)

    def native(self) -> _core.SelectorConfig:
        """Returns the core's struct with the fields of this selector."""
        return fill_native(self, _core.SelectorConfig())


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The config of a table, whose items are slices of consecutive steps."""

    name: str
    """The table's name, unique in the store."""

    columns: dict[str, Column]
    """The arrays of a step, by name. Column ``a/b`` is the entry ``b`` of the nested
    dict ``a``. Tables with the same columns share steps, so a step of a writer is in
    memory only once."""

    sampler: Selector = field(default_factory=Selector)
    """How the table selects items to sample."""

    remover: Selector = field(default_factory=lambda: Selector(kind="fifo"))
    """How a full table selects the item to remove."""

    max_items: int = 1_000_000
    """Capacity in items, at least 1."""

    max_bytes: int | None = None
    """Capacity in bytes of steps, with shared steps counted once per item; None: no
    bound."""

    limits: RateLimits = field(default_factory=RateLimits)
    """The limits of the table's rate limiter, which makes inserts or samples wait."""

    max_times_sampled: int = bounded(0, 0, 2**31)
    """Number of times an item is sampled before it is removed; 0: no bound."""

    max_loans: int = bounded(1024, 1, 2**31)
    """Maximum number of unacknowledged batches of one sampler, at least 1. A sampler at
    the maximum gets no further batch until a batch is acknowledged."""

    num_steps: int = bounded(1, 1, 2**31)
    """Number of steps in a sample. A sample of a longer item is a random slice, chosen
    uniformly."""

    steps_per_chunk: int | None = bounded(None, 1, 2**31)
    """Number of steps in a chunk, which is stored as a unit; None: about 64 KiB."""

    def __post_init__(self) -> None:
        check(bool(self.name), "name", self.name, "must not be empty; name the table")
        check_kind("columns", self.columns, dict)
        check(
            bool(self.columns), "columns", "none", "must be at least one; declare one"
        )
        for name, column in self.columns.items():
            check_kind(f"columns.{name}", column, Column)
            self._check_place(name)
        check_kind("sampler", self.sampler, Selector)
        check_kind("remover", self.remover, Selector)
        check_kind("limits", self.limits, RateLimits)
        check_fields(self)
        self.check_capacity(self.max_items, self.max_bytes)

    def _check_place(self, name: str) -> None:
        """Raises UsageError if a column name is malformed or lies in another column."""
        words = name.split("/")
        check(all(words), "column", name, "must not have empty parts; rename it")
        for depth in range(1, len(words)):
            outer = "/".join(words[:depth])
            check(
                outer not in self.columns,
                "column",
                name,
                f"must not be inside column {outer}, which is not a dict; rename one",
            )

    @property
    def step_bytes(self) -> int:
        """Size of one step in bytes, summed over the columns."""
        return sum(
            np.dtype(column.dtype).itemsize * math.prod(column.shape)
            for column in self.columns.values()
        )

    @property
    def item_bytes(self) -> int:
        """Size of the steps of one sample in bytes."""
        return self.step_bytes * self.num_steps

    def check_priorities(self) -> None:
        """Checks that the table uses priorities.

        Raises:
            UsageError: Neither the sampler nor the remover uses priorities.
        """
        kinds = (self.sampler.kind, self.remover.kind)
        if "prioritized" not in kinds:
            raise UsageError(
                f"priorities (of table {self.name}) must be None with sampler "
                f"{kinds[0]} and remover {kinds[1]}; leave them out, or use "
                "prioritized"
            )

    @property
    def chunk_length(self) -> int:
        """Number of steps in a chunk: ``steps_per_chunk``, or about 64 KiB."""
        if self.steps_per_chunk is not None:
            return self.steps_per_chunk
        return max(1, min(1024, _CHUNK_BYTES // self.step_bytes))

    def check_capacity(self, max_items: int | None, max_bytes: int | None) -> None:
        """Raises UsageError if a capacity is too small for one item. None: no bound."""
        if max_items is not None:
            check_whole("max_items", max_items, 1, 2**28 - 1)
        if max_bytes is not None:
            check_whole("max_bytes", max_bytes, 0, 2**62)
            check(
                max_bytes >= self.item_bytes,
                "max_bytes",
                max_bytes,
                f"must be enough for an item of {self.item_bytes} bytes; raise it",
            )

    def steps_of(self, max_bytes: int | None) -> int:
        """Converts ``max_bytes`` to the core's capacity in steps. None: no bound."""
        if max_bytes is None:
            return _NO_BOUND
        return max_bytes // self.step_bytes

    def bytes_of(self, max_steps: int) -> int | None:
        """Converts ``max_steps`` to a capacity in bytes; the inverse of `steps_of`."""
        return None if max_steps == _NO_BOUND else max_steps * self.step_bytes

    def native_schema(self) -> _core.StoreSchema:
        """Returns the core's description of a step."""
        return _core.StoreSchema(self.native_columns(), self.chunk_length)

    def native_columns(self) -> list[tuple[str, str, list[int]]]:
        """Returns the name, dtype and shape of each column, for the core."""
        return [
            (name, np.dtype(column.dtype).str[1:], list(column.shape))
            for name, column in self.columns.items()
        ]

    def native(self) -> _core.TableConfig:
        """Returns the core's struct for this config. The struct has no columns."""
        return fill_native(
            self,
            _core.TableConfig(),
            sampler=self.sampler.native(),
            remover=self.remover.native(),
            limits=self.limits.native(),
            max_steps=self.steps_of(self.max_bytes),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the config as JSON values that `from_dict` can read."""
        plain = dataclasses.asdict(self)
        plain["columns"] = {
            name: [column.dtype, list(column.shape), 1]  # 1: removed ``stack``
            for name, column in self.columns.items()
        }
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableConfig:
        """Returns the config from JSON values that `to_dict` has returned."""
        columns = {
            name: dict(zip(("dtype", "shape", "stack"), column, strict=True))
            for name, column in data["columns"].items()
        }
        return from_dict(cls, without_dropped({**data, "columns": columns}))


def without_dropped(table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table's JSON values without the settings that were removed.

    A removed setting that differs from its default stays, so that the config class
    rejects it.
    """
    plain = _without(table, _DROPPED_OF_TABLE)
    for name in ("sampler", "remover"):
        if isinstance(plain.get(name), Mapping):
            plain[name] = _without(plain[name], _DROPPED_OF_SELECTOR)
    if isinstance(plain.get("columns"), Mapping):
        plain["columns"] = {
            name: _without(one, _DROPPED_OF_COLUMN) if isinstance(one, Mapping) else one
            for name, one in plain["columns"].items()
        }
    return plain


def _without(data: Mapping[str, Any], dropped: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in data.items()
        if name not in dropped or value != dropped[name]
    }
