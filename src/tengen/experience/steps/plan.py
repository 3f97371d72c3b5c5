"""Plans the store table of a run's steps, and the room it needs, before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tengen.experience.replay_config import ReplayConfig
from tengen.experience.steps.budget import NUM_LENT, StepBudget, step_budget
from tengen.experience.steps.item_layout import ItemLayout
from tengen.experience.steps.packing import packed_columns
from tengen.experience.steps.room import StepRoom, step_room
from tengen.experience.steps.slot_writer import TABLE
from tengen.store import Column, Selector, TableConfig, left_columns

__all__ = ["StepPlan", "plan_steps"]


class StepPlan(NamedTuple):
    """The table, the sizes and the room of a ``StepTable``."""

    table: TableConfig
    budget: StepBudget
    room: StepRoom


def plan_steps(
    folder: Path,
    columns: Mapping[str, Column],
    layout: ItemLayout,
    config: ReplayConfig,
    *,
    num_slots: int,
    batch_size: int,
    directory: Path | None = None,
) -> StepPlan:
    """Returns the plan of a ``StepTable`` with these arguments.

    Raises:
        UsageError: The table does not fit the memory or the disk.
    """
    # A queue keeps the items of batches that are out, beyond max_items: if the learner
    # dies, the next one needs them, so new items must not take their place.
    num_lent = NUM_LENT * batch_size if config.is_queue else 0
    # A run begun before bools were packed goes on without packing.
    whole = {
        name
        for place in (folder, directory)
        if place is not None
        for name, column in left_columns(place, TABLE).items()
        if column.dtype == "bool"
    }
    table = TableConfig(
        name=TABLE,
        columns={**packed_columns(columns, whole), **layout.state_columns()},
        sampler=config.selector,
        remover=Selector(kind="fifo"),
        max_items=config.max_items + num_lent,
        max_times_sampled=1 if config.is_queue else 0,
        limits=config.limits,
        num_steps=layout.num_stored,
    )
    budget = step_budget(
        table,
        layout,
        is_queue=config.is_queue,
        num_slots=num_slots,
        batch_size=batch_size,
    )
    num_steps = config.max_items * (layout.period + layout.is_closed)
    room = step_room(config, budget, num_steps, table.step_bytes, folder, directory)
    return StepPlan(table, budget, room)
