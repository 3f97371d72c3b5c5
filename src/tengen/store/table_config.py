"""What a table is: its steps, how items come and go, and how often they are used."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tengen import _core
from tengen.config import check, check_literals, check_range
from tengen.errors import UsageError

__all__ = ["Column", "RateLimits", "Selector", "TableConfig"]

_CHUNK_BYTES = 65536


@dataclass(frozen=True, kw_only=True)
class Column:
    """One array of every step."""

    dtype: str
    """A numpy name of a bool, integer or float type, such as ``uint8``."""

    shape: tuple[int, ...] = ()
    """Of one step, such as ``(84, 84)``."""

    def __post_init__(self) -> None:
        try:
            is_number = np.dtype(self.dtype).kind in "biuf"
        except TypeError:
            is_number = False
        check(
            is_number,
            "dtype",
            self.dtype,
            "must be a bool, integer or float type of numpy; convert the column",
        )
        for length in self.shape:
            check_range("shape", length, 0, 2**31)


@dataclass(frozen=True, kw_only=True)
class Selector:
    """Which item comes next: a table's sampler, and its remover."""

    kind: Literal[
        "uniform",
        "prioritized",
        "fifo",
        "lifo",
        "min_heap",
        "max_heap",
        "window",
        "power_law_window",
        "without_replacement",
    ] = "uniform"
    """``prioritized`` draws by priority, the heaps take the least or greatest one,
    ``window`` draws evenly among the newest items, ``power_law_window`` among as many
    as KataGo's window has, ``without_replacement`` each item once a round."""

    exponent: float = 0.6
    """Of ``prioritized``: items are drawn by ``priority ** exponent``, 0 or more."""

    window: int = 1
    """Of ``window``: how many of the newest items, at least 1."""

    min_items: int = 1
    """Of ``power_law_window``: the window is never smaller, at least 1."""

    max_items: int = 20_000_000
    """Of ``power_law_window``: nor larger."""

    growth_exponent: float = 0.65
    """Of ``power_law_window``: how the window grows with all items inserted, 0 to 1."""

    growth_scale: float = 1.0
    """Of ``power_law_window``: items over which growth slows down, above 0."""

    expand_per_item: float = 0.4
    """Of ``power_law_window``: how much the first items beyond the scale widen it."""

    def __post_init__(self) -> None:
        check_literals(self)

    def native(self) -> _core.SelectorConfig:
        """Returns the core's form."""
        native = _core.SelectorConfig()
        native.kind = self.kind
        native.exponent = self.exponent
        native.window = self.window
        power_law = _core.PowerLaw()
        power_law.min_items = self.min_items
        power_law.max_items = self.max_items
        power_law.exponent = self.growth_exponent
        power_law.scale = self.growth_scale
        power_law.expand_per_item = self.expand_per_item
        native.power_law = power_law
        return native


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """How far samples may run ahead of inserts, and inserts ahead of samples.

    ``inserts * samples_per_insert - samples`` stays from ``min_cursor`` to
    ``max_cursor``; below ``min_size`` items inserts always pass and samples never do.

    Source: Cassirer et al. 2021, "Reverb: a framework for experience replay",
    section 3.3.
    """

    samples_per_insert: float = 1.0
    """Samples that one insert is worth, above 0."""

    min_size: int = 1
    """Items before the first sample, at least 1."""

    min_cursor: float = -math.inf
    """The least value; samples wait before they pass it."""

    max_cursor: float = math.inf
    """The greatest value; inserts wait before they pass it."""

    @classmethod
    def ratio(
        cls, samples_per_insert: float, *, min_size: int, error_buffer: float
    ) -> RateLimits:
        """Keeps samples an insert near a ratio.

        Args:
            samples_per_insert: The ratio, above 0.
            min_size: Items before the first sample.
            error_buffer: How many samples either side may be ahead, once there are
                ``min_size`` items.
        """
        middle = min_size * samples_per_insert
        return cls(
            samples_per_insert=samples_per_insert,
            min_size=min_size,
            min_cursor=middle - error_buffer,
            max_cursor=middle + error_buffer,
        )

    @classmethod
    def queue(cls, size: int) -> RateLimits:
        """Inserts wait while ``size`` items are not sampled; samples wait for items.

        With ``max_times_sampled=1`` and a ``fifo`` sampler the table is a queue, with
        a ``lifo`` sampler a stack.
        """
        return cls(min_cursor=0.0, max_cursor=float(size))

    def native(self) -> _core.RateLimits:
        """Returns the core's form."""
        native = _core.RateLimits()
        for one in dataclasses.fields(self):
            setattr(native, one.name, getattr(self, one.name))
        return native


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """Items, each a run of steps, and what becomes of them."""

    name: str
    """Of the table, its own in the store."""

    columns: Mapping[str, Column]
    """What a step is. ``a/b`` is the entry ``b`` of the entry ``a`` of a nested dict.
    Tables with the same columns share steps: a writer's step lies in memory once."""

    sampler: Selector = field(default_factory=Selector)
    """Which item a sample is."""

    remover: Selector = field(default_factory=lambda: Selector(kind="fifo"))
    """Which item leaves a full table."""

    max_items: int = 1_000_000
    """Capacity in items, at least 1."""

    max_bytes: int | None = None
    """Capacity in bytes of steps, as if each item had its own; None: no bound."""

    limits: RateLimits = field(default_factory=RateLimits)
    """When inserts and samples wait."""

    max_times_sampled: int = 0
    """An item leaves after so many uses; 0: no bound."""

    max_staleness: int | None = None
    """An item leaves when its model's version is further behind; None: no bound."""

    num_steps: int = 1
    """Steps of a sample. An item may be longer: an even draw of its slices."""

    steps_per_chunk: int | None = None
    """Steps that lie together in memory and leave it together; None: about 64 KiB."""

    def __post_init__(self) -> None:
        check(bool(self.name), "name", self.name, "must not be empty; name the table")
        check(
            bool(self.columns), "columns", "none", "must be at least one; declare them"
        )
        check_range("max_items", self.max_items, 1, 2**28 - 1)
        check_range("max_times_sampled", self.max_times_sampled, 0, 2**31)
        check_range("num_steps", self.num_steps, 1, 2**31)
        if self.max_bytes is not None and self.max_bytes < self.item_bytes:
            raise UsageError(
                f"max_bytes ({self.max_bytes}) must hold an item of {self.item_bytes} "
                f"bytes; raise it"
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
        """Bytes of one sample."""
        return self.step_bytes * self.num_steps

    @property
    def chunk_length(self) -> int:
        """Steps of a chunk."""
        if self.steps_per_chunk is not None:
            return self.steps_per_chunk
        return max(1, min(1024, _CHUNK_BYTES // max(1, self.step_bytes)))

    @property
    def max_steps(self) -> int:
        """Capacity in steps."""
        if self.max_bytes is None:
            return 2**64 - 1
        return self.max_bytes // max(1, self.step_bytes)

    def native_columns(self) -> list[tuple[str, str, list[int]]]:
        """Returns the core's form of the columns."""
        return [
            (name, np.dtype(column.dtype).str[1:], list(column.shape))
            for name, column in self.columns.items()
        ]

    def native(self) -> _core.TableConfig:
        """Returns the core's form of the rest."""
        native = _core.TableConfig()
        native.name = self.name
        native.sampler = self.sampler.native()
        native.remover = self.remover.native()
        native.limits = self.limits.native()
        native.max_items = self.max_items
        native.max_steps = self.max_steps
        native.max_times_sampled = self.max_times_sampled
        native.max_staleness = self.max_staleness
        native.num_steps = self.num_steps
        return native

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; `from_dict` reads them."""
        plain = dataclasses.asdict(self)
        plain["columns"] = {
            name: [column.dtype, list(column.shape)]
            for name, column in self.columns.items()
        }
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableConfig:
        """Returns what `to_dict` was made of."""
        fields = dict(data)
        fields["columns"] = {
            name: Column(dtype=dtype, shape=tuple(shape))
            for name, (dtype, shape) in data["columns"].items()
        }
        fields["sampler"] = Selector(**data["sampler"])
        fields["remover"] = Selector(**data["remover"])
        fields["limits"] = RateLimits(**data["limits"])
        return cls(**fields)
