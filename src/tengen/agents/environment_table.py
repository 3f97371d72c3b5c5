"""The table of a run of environments: its columns, its items, and its least sizes."""

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
    """Returns where a run's steps are, their columns, their items and the rest."""
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
    """Returns a run's table, with how far actors may be ahead where that is open."""
    store = config.store
    assert isinstance(store, ReplayConfig)
    if store.is_queue or store.max_ahead:
        return store
    num_actors = config.launch.of("actor").count
    ahead = max(2 * num_actors * _items_of_turn(agent), _least_ahead(agent, config))
    return dataclasses.replace(store, max_ahead=ahead)


def check_table(agent: EnvironmentAgent, config: RunConfig) -> None:
    """Makes sure that a table holds what a turn makes and a batch leaves.

    Where actor and learner take turns, a full table would block both.

    Raises:
        UsageError: It is too small.
    """
    store = config.store
    assert isinstance(store, ReplayConfig)
    name, given = "max_items", store.max_items
    needed = _items_of_turn(agent) + config.learner.batch_size - 1
    what = "a turn's items and what a batch leaves"
    if not store.is_queue:
        name, given = "max_ahead", store.max_ahead
        needed, what = _least_ahead(agent, config), "a turn's items and a batch's"
        if given == 0:
            return
    check(
        given >= needed,
        f"store.{name}",
        given,
        f"must be at least {needed}, {what}; raise it",
    )


def _items_of_turn(agent: EnvironmentAgent) -> int:
    """Returns the items of an actor's turn, at most."""
    layout = agent.layout({})
    # At most: items of period 1 do not begin with a reset.
    items_of_slot = agent.turn_blocks(layout) * (
        layout.block_steps(agent.actor.turn_steps) // layout.period
    )
    return agent.actor.num_envs * items_of_slot


def _least_ahead(agent: EnvironmentAgent, config: RunConfig) -> int:
    """Returns the items that a batch takes, and a turn's that came before it."""
    assert isinstance(config.store, ReplayConfig)
    per_batch = config.learner.batch_size / config.store.samples_per_item
    return math.ceil(per_batch) + _items_of_turn(agent)
