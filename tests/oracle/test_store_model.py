"""Random operations on a table, compared with a simple model."""

import shutil
import tempfile
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tengen.errors import UsageError
from tengen.store import (
    Column,
    RateLimits,
    Selector,
    Store,
    StoreConfig,
    StoreTimeout,
    TableConfig,
)
from tests.refusals import refused

# Multiples of 1/8, so that priorities are exact in every float type.
PRIORITIES = st.integers(0, 64).map(lambda eighths: eighths / 8)


@dataclass
class ModelItem:
    number: int
    priority: float
    times_sampled: int = 0
    under_way: int = 0


@dataclass
class Model:
    """A table as a list of items, in insertion order."""

    sampler: str
    max_items: int
    max_times: int
    limits: RateLimits
    items: list[ModelItem] = field(default_factory=list)
    num_inserts: int = 0
    num_samples: int = 0

    @property
    def cursor(self) -> float:
        return self.num_inserts * self.limits.samples_per_insert - self.num_samples

    def goes_by_priority(self) -> bool:
        return self.sampler == "prioritized"

    def can_insert(self) -> bool:
        if len(self.items) < self.limits.min_size:
            return True
        after = self.cursor + self.limits.samples_per_insert
        most = self.limits.max_cursor
        return most is None or after <= most

    def eligible(self) -> list[ModelItem]:
        return [
            item
            for item in self.items
            if not self.max_times
            or item.times_sampled + item.under_way < self.max_times
        ]

    def can_sample(self) -> bool:
        least = self.limits.min_cursor
        return (
            len(self.items) >= self.limits.min_size
            and (least is None or self.cursor - 1 >= least)
            and bool(self.eligible())
        )

    def chances(self) -> dict[int, float]:
        """Returns each item's probability of being sampled next."""
        items = self.eligible()
        if self.sampler == "uniform":
            return {item.number: 1 / len(items) for item in items}
        if self.sampler == "prioritized":
            total = sum(item.priority for item in items)
            if total == 0:
                return {item.number: 1 / len(items) for item in items}
            return {item.number: item.priority / total for item in items}
        return {items[0].number: 1.0}

    def draw(self, number: int) -> None:
        self.find(number).under_way += 1
        self.num_samples += 1

    def insert(self, number: int, priority: float) -> None:
        while len(self.items) >= self.max_items:
            self.remove(self.items[0])
        self.items.append(ModelItem(number, priority))
        self.num_inserts += 1

    def remove(self, item: ModelItem) -> None:
        """Removes ``item`` and counts its expected future samples as done."""
        promised = min(self.max_times, int(self.limits.samples_per_insert))
        self.num_samples += max(0, promised - item.times_sampled - item.under_way)
        self.items.remove(item)

    def find(self, number: int) -> ModelItem | None:
        return next((item for item in self.items if item.number == number), None)


class TableMachine(RuleBasedStateMachine):
    """Each rule performs one operation on the table and on the model."""

    @initialize(
        sampler=st.sampled_from(["fifo", "uniform", "prioritized"]),
        max_items=st.integers(1, 6),
        max_times=st.integers(0, 3),
        limits=st.sampled_from(
            [
                RateLimits(),
                RateLimits(min_size=3),
                RateLimits.queue(4),
                RateLimits.ratio(2.0, min_size=2, error_buffer=4.0),
            ]
        ),
    )
    def begin(self, sampler, max_items, max_times, limits):
        self.model = Model(sampler, max_items, max_times, limits)
        self.store = Store(
            StoreConfig.of(
                [
                    TableConfig(
                        name="t",
                        columns={"number": Column(dtype="int64")},
                        sampler=Selector(kind=sampler, exponent=1.0),
                        max_items=max_items,
                        max_times_sampled=max_times,
                        limits=limits,
                        steps_per_chunk=2,
                    )
                ],
                **self.budgets(),
            )
        )
        self.table = self.store.table("t")
        self.sampler = self.table.sampler(1, num_ahead=0)
        self.writer = self.store.writer("w", "t", max_item_steps=1)
        self.lent: list = []
        self.keys: dict[int, int] = {}

    patience_s = 0.0
    max_lent = 1000

    def budgets(self):
        return {"memory_bytes": 1 << 16}

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()

    @rule(priority=PRIORITIES)
    def insert(self, priority):
        number = self.writer.next_sequence
        self.writer.append({"number": np.int64(number)})
        if self.model.can_insert():
            self.writer.insert("t", 1, priority)
            self.model.insert(number, priority)
        else:
            with refused(StoreTimeout, "must be drawn first"):
                self.writer.insert("t", 1, priority, timeout_s=0.0)

    @rule()
    def insert_again(self):
        if self.writer.next_sequence:
            sequence = self.writer.next_sequence - 1
            self.writer.append({"number": np.int64(-1)})
            self.writer.insert("t", 1, sequence=sequence)

    @precondition(lambda self: len(self.lent) < self.max_lent)
    @rule()
    def sample(self):
        if not self.model.can_sample():
            with refused(StoreTimeout, "sample waits: "):
                self.sampler.sample(timeout_s=0.0)
            return
        chances = self.model.chances()
        batch = self.sampler.sample(timeout_s=self.patience_s)
        number = int(batch.columns["number"][0])
        assert chances[number] > 0
        assert batch.probabilities[0] == pytest.approx(chances[number])
        assert batch.table_size == len(self.model.items)
        self.model.draw(number)
        assert self.keys.setdefault(number, int(batch.keys[0])) == batch.keys[0]
        self.lent.append((batch, number))

    @precondition(lambda self: self.lent)
    @rule(data=st.data(), priority=st.none() | PRIORITIES)
    def ack(self, data, priority):
        index = data.draw(st.integers(0, len(self.lent) - 1))
        batch, number = self.lent.pop(index)
        if priority is not None and not self.model.goes_by_priority():
            with refused(UsageError, "priorities"):
                batch.ack(np.array([priority]))
            priority = None
        batch.ack(None if priority is None else np.array([priority]))
        item = self.model.find(number)
        if item is None:
            return
        if priority is not None:
            item.priority = priority
        item.under_way -= 1
        item.times_sampled += 1
        if self.model.max_times and item.times_sampled >= self.model.max_times:
            self.model.remove(item)

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def give_back(self, data):
        index = data.draw(st.integers(0, len(self.lent) - 1))
        batch, number = self.lent.pop(index)
        self.sampler.give_back(batch)
        item = self.model.find(number)
        if item is not None:
            self.model.num_samples -= 1
            item.under_way -= 1

    @rule(max_items=st.integers(1, 6))
    def set_capacity(self, max_items):
        self.table.set_capacity(max_items)
        self.model.max_items = max_items
        while len(self.model.items) > max_items:
            self.model.remove(self.model.items[0])

    @invariant()
    def counts_agree(self):
        if not hasattr(self, "model"):
            return
        told = self.table.describe()
        assert told["num_items"] == len(self.model.items)
        assert told["num_eligible"] == len(self.model.eligible())
        assert told["num_inserts"] == self.model.num_inserts
        assert told["num_samples"] == self.model.num_samples


class ColdTableMachine(TableMachine):
    """The same with a store whose memory holds little more than the loaned batches."""

    patience_s = 60.0
    max_lent = 2

    def budgets(self):
        self.folder = tempfile.mkdtemp(prefix="tengen-cold-")
        return {
            "memory_bytes": 4 * 4096,
            "disk_bytes": 1 << 20,
            "disk_directory": self.folder + "/disk",
        }

    def teardown(self):
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)


TestTableModel = TableMachine.TestCase
TestTableModel.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)

TestColdTableModel = ColdTableMachine.TestCase
TestColdTableModel.settings = settings(TestTableModel.settings, max_examples=60)
