"""The workloads of the store benchmark: eight reference workloads, and variants.

Source: the reference table in the research note on distributed storage for decision
agents, which has entries, bytes and rates of eight agents in their environments. For
SAC's samples, the table has 138 items/s and 16 MB/s, which contradict each other at 3
KB per item; the workload uses 138 items/s.

``NAME_run`` is the workload of a run of ``tengen train`` with default settings: DQN and
R2D2 in ``atari/Pong``, PPO and IMPALA (``vtrace``) in ``atari/Qbert``, SAC in
``mujoco/Hopper``. Bytes, steps, entries and batch sizes are the agents' defaults, as a
test verifies. Insert rates are those of the reference table. Sample rates are insert
rates times the number of times that the agent samples an item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tengen.store import Column, Selector, TableConfig

_KB = 1024
_MB = 1024 * _KB
# A limit on samples per item that no measurement reaches.
_UNREACHED = 2**31 - 1


@dataclass(frozen=True)
class Workload:
    """The table of one agent, and the rates at which the agent inserts and samples.

    Attributes:
        name: The workload's name on the command line.
        entries: Capacity of the table, in items.
        item_bytes: Bytes per item.
        is_prioritized: Whether items have priorities, updated after each batch.
        max_times_sampled: Maximum number of samples per item; 0: unlimited.
        adds_per_s: Items per second that the actors insert in total.
        samples_per_s: Items per second that the learner samples.
        batch_size: Items per batch.
        num_steps: Steps per item.
        period: Steps from the start of an item to the start of the next item.
    """

    name: str
    entries: int
    item_bytes: int
    is_prioritized: bool
    max_times_sampled: int
    adds_per_s: float
    samples_per_s: float
    batch_size: int
    num_steps: int = 1
    period: int = 1

    @property
    def step_bytes(self) -> int:
        """Bytes of one stored step."""
        return self.item_bytes // self.num_steps

    @property
    def stored_bytes(self) -> int:
        """Bytes that a new item adds to the store. Overlapping items share steps."""
        return self.step_bytes * self.period

    def at_full_speed(self) -> Workload:
        """Returns the workload with a sample limit per item that is never reached."""
        if self.max_times_sampled == 0:
            return self
        return replace(self, max_times_sampled=_UNREACHED)

    def table(self, max_items: int) -> TableConfig:
        """Returns the config of the table with a capacity of ``max_items`` items."""
        return TableConfig(
            name=self.name,
            columns={
                # Step sizes differ between tables, so that tables do not share steps.
                "data": Column(dtype="uint8", shape=(self.step_bytes - 8,)),
                "number": Column(dtype="int64"),
            },
            sampler=Selector(kind="prioritized" if self.is_prioritized else "uniform"),
            max_items=max_items,
            max_times_sampled=self.max_times_sampled,
            num_steps=self.num_steps,
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


def _run(
    name: str,
    entries: int,
    step_bytes: int,
    num_steps: int,
    period: int,
    is_prioritized: bool,
    rates: tuple[float, float],
    batch_size: int,
    max_times_sampled: int = 0,
) -> Workload:
    """Returns the workload of a run of ``tengen train`` with default settings."""
    return Workload(
        name,
        entries,
        step_bytes * num_steps,
        is_prioritized,
        max_times_sampled,
        *rates,
        batch_size,
        num_steps=num_steps,
        period=period,
    )


VARIANTS = {
    workload.name: workload
    for workload in (
        _run("dqn_run", 1_000_000, 7_079, 7, 1, True, (400, 3200), 32),
        _run("ppo_run", 32, 7_083, 68, 68, False, (50, 50), 16, 1),
        _run("r2d2_run", 40_000, 7_315, 34, 10, True, (3, 6), 16),
        _run("impala_run", 64, 7_083, 68, 68, False, (4, 4), 4, 1),
        _run("sac_run", 1_000_000, 71, 2, 1, False, (71, 18_176), 256),
    )
}
