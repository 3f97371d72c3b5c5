"""The config of a table: its steps, how items come and go, how often they are used."""

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

__all__ = ["Column", "Selector", "TableConfig", "check_kind", "without_dropped"]

_CHUNK_BYTES = 65536
_NO_BOUND = 2**64 - 1
# Settings that earlier versions had, and wrote with these values where nobody set them.
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
    """Refuses a value of another class."""
    check(
        isinstance(value, kind),
        name,
        repr(value),
        f"must be a {kind.__name__}; write {kind.__name__}(...)",
    )


@dataclass(frozen=True, kw_only=True)
class Column:
    """One array that every step has."""

    dtype: str
    """The name of numpy's bool type, or of an integer or float type of at most 8 bytes,
    such as ``uint8``; other ways to write a dtype in numpy become its name."""

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
    """Which item comes next: the config of a table's sampler, and of its remover."""

    kind: Literal["uniform", "prioritized", "fifo"] = "uniform"
    """``prioritized`` draws by priority; ``fifo`` takes the oldest item."""

    exponent: float = bounded(
        0.6,
        0,
        math.inf,
        below=True,
        rule="must be finite and at least 0; 0 is uniform, 1 proportional",
    )
    """For ``prioritized``: items are drawn in proportion to ``priority ** exponent``; 0
    or more."""

    def __post_init__(self) -> None:
        check_fields(self)

    def native(self) -> _core.SelectorConfig:
        """Returns the core's form."""
        return fill_native(self, _core.SelectorConfig())


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The config of a table, whose items are slices of consecutive steps."""

    name: str
    """The table's name, unique in the store."""

    columns: dict[str, Column]
    """The arrays of a step, by name. The name ``a/b`` is the entry ``b`` of the entry
    ``a`` of a nested dict. Tables with the same columns share steps: a writer's step
    lies in memory once."""

    sampler: Selector = field(default_factory=Selector)
    """How the item of a sample is chosen."""

    remover: Selector = field(default_factory=lambda: Selector(kind="fifo"))
    """How the item that leaves a full table is chosen."""

    max_items: int = 1_000_000
    """Capacity in items, at least 1."""

    max_bytes: int | None = None
    """Capacity in bytes of steps, counted as if no items shared steps; None: no
    bound."""

    limits: RateLimits = field(default_factory=RateLimits)
    """The rate limiter: when inserts and samples wait."""

    max_times_sampled: int = bounded(0, 0, 2**31)
    """An item leaves after so many uses; 0: no bound."""

    max_loans: int = bounded(1024, 1, 2**31)
    """Most batches that one sampler may have unacknowledged, 1 or more; it gets no
    further batch until it acknowledges one. A learner that never acknowledges thus gets
    an error."""

    num_steps: int = bounded(1, 1, 2**31)
    """Steps of a sample. If an item is longer, a sample is one of its slices, drawn
    evenly."""

    steps_per_chunk: int | None = bounded(None, 1, 2**31)
    """Steps that are stored together and leave memory together; None: about 64 KiB."""

    def __post_init__(self) -> None:
        check(bool(self.name), "name", self.name, "must not be empty; name the table")
        check_kind("columns", self.columns, dict)
        check(
            bool(self.columns), "columns", "none", "must be at least one; declare them"
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
        """Refuses a column whose name cannot be in a nested dict with the others."""
        words = name.split("/")
        check(all(words), "column", name, "must have a name between slashes; rename it")
        for depth in range(1, len(words)):
            outer = "/".join(words[:depth])
            check(
                outer not in self.columns,
                "column",
                name,
                f"must not lie in column {outer}, which is no dict; rename one",
            )

    @property
    def step_bytes(self) -> int:
        """Bytes of one step."""
        return sum(
            np.dtype(column.dtype).itemsize * math.prod(column.shape)
            for column in self.columns.values()
        )

    @property
    def item_bytes(self) -> int:
        """Bytes of the steps of one sample."""
        return self.step_bytes * self.num_steps

    def check_priorities(self) -> None:
        """Refuses priorities that would change nothing.

        Raises:
            UsageError: Neither the sampler nor the remover uses priorities.
        """
        kinds = (self.sampler.kind, self.remover.kind)
        if "prioritized" not in kinds:
            raise UsageError(
                f"priorities (of table {self.name}) must be None, because its sampler "
                f"is {kinds[0]} and its remover {kinds[1]}; leave them out, or choose "
                f"prioritized"
            )

    @property
    def chunk_length(self) -> int:
        """Steps of a chunk."""
        if self.steps_per_chunk is not None:
            return self.steps_per_chunk
        return max(1, min(1024, _CHUNK_BYTES // self.step_bytes))

    def check_capacity(self, max_items: int | None, max_bytes: int | None) -> None:
        """Refuses a capacity that is too small for one item; None has no bound."""
        if max_items is not None:
            check_whole("max_items", max_items, 1, 2**28 - 1)
        if max_bytes is not None:
            check_whole("max_bytes", max_bytes, 0, 2**62)
            check(
                max_bytes >= self.item_bytes,
                "max_bytes",
                max_bytes,
                f"must hold an item of {self.item_bytes} bytes; raise it",
            )

    def steps_of(self, max_bytes: int | None) -> int:
        """Returns a capacity in steps, as the core needs it; None has no bound."""
        if max_bytes is None:
            return _NO_BOUND
        return max_bytes // self.step_bytes

    def bytes_of(self, max_steps: int) -> int | None:
        """Returns the bytes of so many steps, the inverse of `steps_of`."""
        return None if max_steps == _NO_BOUND else max_steps * self.step_bytes

    def native_columns(self) -> list[tuple[str, str, list[int]]]:
        """Returns the core's form of the columns."""
        return [
            (name, np.dtype(column.dtype).str[1:], list(column.shape))
            for name, column in self.columns.items()
        ]

    def native(self) -> _core.TableConfig:
        """Returns the core's form of the config without the columns."""
        return fill_native(
            self,
            _core.TableConfig(),
            sampler=self.sampler.native(),
            remover=self.remover.native(),
            limits=self.limits.native(),
            max_steps=self.steps_of(self.max_bytes),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; `from_dict` reads them."""
        plain = dataclasses.asdict(self)
        plain["columns"] = {
            name: [column.dtype, list(column.shape), 1]  # 1: frames, once a setting
            for name, column in self.columns.items()
        }
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableConfig:
        """Returns the config that `to_dict` was called on."""
        columns = {
            name: dict(zip(("dtype", "shape", "stack"), column, strict=True))
            for name, column in data["columns"].items()
        }
        return from_dict(cls, without_dropped({**data, "columns": columns}))


def without_dropped(table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table's JSON values without settings that earlier versions had.

    A setting that was changed from its default stays, so that it is refused.
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
