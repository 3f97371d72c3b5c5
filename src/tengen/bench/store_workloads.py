"""The eight workloads that a store is measured with.

Source: the reference table of the research note on distributed storage for decision
agents: entries, bytes and rates of eight agents in their environments. Its SAC row
samples 138 items/s and 16 MB/s, which do not multiply out at 3 KB; the items are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.store import Column, Selector, TableConfig

__all__ = ["WORKLOADS", "Workload"]

_KB = 1024
_MB = 1024 * _KB


@dataclass(frozen=True)
class Workload:
    """One agent's table, and what it asks of it.

    Attributes:
        name: As on the command line.
        entries: Items of the table.
        item_bytes: Of each.
        is_prioritized: Whether priorities come back with every batch.
        max_times_sampled: Uses an item; 0: no bound.
        adds_per_s: Inserts of all actors together.
        samples_per_s: Of the learner.
        batch_size: Items a batch.
    """

    name: str
    entries: int
    item_bytes: int
    is_prioritized: bool
    max_times_sampled: int
    adds_per_s: float
    samples_per_s: float
    batch_size: int

    def table(self, max_items: int) -> TableConfig:
        """Returns the table's config, for so many items."""
        return TableConfig(
            name=self.name,
            columns={
                "data": Column(dtype="uint8", shape=(self.item_bytes - 8,)),
                # Of its own size in every table, so that no two share steps.
                "number": Column(dtype="int64"),
            },
            sampler=Selector(kind="prioritized" if self.is_prioritized else "uniform"),
            max_items=max_items,
            max_times_sampled=self.max_times_sampled,
        )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("dqn", 400_000, 110 * _KB, True, 0, 400, 1650, 32),
        Workload("ppo", 100_000, 120 * _KB, False, 2, 50, 87, 32),
        Workload("r2d2", 10_000, 10 * _MB, True, 0, 3, 45, 8),
        Workload("impala", 100_000, 3 * _MB, False, 64, 4, 253, 8),
        Workload("sac", 1_000_000, 3 * _KB, False, 0, 71, 138, 256),
        Workload("qmix", 50_000, 290 * _KB, False, 0, 19, 60, 32),
        Workload("masac", 1_000_000, 29 * _KB, False, 0, 116, 63, 32),
        Workload("gobigger", 100_000, 400 * _KB, True, 0, 30, 83, 32),
    )
}
