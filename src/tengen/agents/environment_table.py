"""The store table of an environment run: its columns, items and least sizes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING

from tengen import envs
from tengen.actors import step_tensors
from tengen.config import check
from tengen.experience import ItemLayout, ReplayConfig
from tengen.store import Column

if TYPE_CHECKING:
    from tengen.agents.environment_agent import EnvironmentAgent
    from tengen.roles.config import RunConfig
    from tengen.run import RunDirectory

__all__ = ["check_table", "table_of", "with_room_ahead"]


def table_of(
    agent: EnvironmentAgent, config: RunConfig, run: RunDirectory
) -> tuple[Path, dict[str, Column], ItemLayout, ReplayConfig]:
    """Returns a run's folder of steps, their columns, item layout and table config."""
    spec = envs.env_spec(config.task)
    tensors = step_tensors(
        agent.inputs_of(spec), spec.actions, agent.own_tensors(spec.actions)
    )
    columns = {
        name: Column(dtype=tensor.dtype, shape=tensor.shape)
        for name, tensor in tensors.items()
    }
    layout = agent.layout(agent.net_signature(config).state)
    return run.experience / "steps", columns, layout, agent.table_config(config)


def with_room_ahead(agent: EnvironmentAgent, config: RunConfig) -> ReplayConfig:
    """Returns a run's table config, with ``max_ahead`` chosen where it is left at 0."""
    store = config.store
    assert isinstance(store, ReplayConfig)
    if store.is_queue or store.max_ahead:
        return store
    num_actors = config.launch.of("actor").count
    ahead = max(2 * num_actors * _items_of_turn(agent), _least_ahead(agent, config))
    return dataclasses.replace(store, max_ahead=ahead)


def check_table(agent: EnvironmentAgent, config: RunConfig) -> None:
    """Checks that a table has room for a turn's items and those that a batch leaves.

    Where actor and learner take turns, a full table would block both.

    Raises:
        UsageError: The table is too small.
    """
    store = config.store
    assert isinstance(store, ReplayConfig)
    name, given = "max_items", store.max_items
    needed = _items_of_turn(agent) + config.learner.batch_size - 1
    what = "a turn's items and those that a batch may leave"
    if not store.is_queue:
        name, given = "max_ahead", store.max_ahead
        needed, what = _least_ahead(agent, config), "the items of a turn and a batch"
        if given == 0:
            return
    check(
        given >= needed,
        f"store.{name}",
        given,
        f"must be at least {needed}, {what}; raise it",
    )


def _items_of_turn(agent: EnvironmentAgent) -> int:
    """Returns the most items that an actor's turn can make."""
    layout = agent.layout({})
    # An upper bound: items of period 1 do not begin at a step that resets.
    items_of_slot = agent.turn_blocks(layout) * (
        layout.block_steps(agent.actor.turn_steps) // layout.period
    )
    return agent.actor.num_envs * items_of_slot


def _least_ahead(agent: EnvironmentAgent, config: RunConfig) -> int:
    """Returns the least ``max_ahead``: the items of a batch plus those of a turn."""
    assert isinstance(config.store, ReplayConfig)
    per_batch = config.learner.batch_size / config.store.samples_per_item
    return math.ceil(per_batch) + _items_of_turn(agent)
