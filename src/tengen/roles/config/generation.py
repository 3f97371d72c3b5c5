"""The size of a run's generations, which follows the speed of the machine.

A recipe says how many games a generation has. Where a call by minutes finds the machine
too slow for that, self-play makes smaller generations (``roles.selfplay.fitting``), and
``run.json`` has their size in ``config`` and the recipe's, ``asked``, in
``measured.generation``. Each call begins with the recipe's size again. A size that the
user has set stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tengen.agents.alphazero import AlphaZero
from tengen.experience import WindowConfig
from tengen.roles.config.run_config import RunConfig
from tengen.roles.config.run_file import RUN_LOCK, read_config, record_config
from tengen.roles.spent import learned_steps
from tengen.run import RunDirectory

__all__ = ["SIZES", "may_fit", "record_generation", "unfitted"]

SIZES = ("games_per_generation", "num_slots")
"""The settings of self-play that make a generation smaller."""


def may_fit(
    run: RunDirectory, config: RunConfig, *, is_set: bool
) -> dict[str, Any] | None:
    """Returns what ``run.json`` is to say of generations; None if their size is fixed.

    Args:
        run: The run, which may be new.
        config: Its config in this call, after ``unfitted``.
        is_set: Whether the user sets the size in this call.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    agent = config.agent
    if is_set or not isinstance(agent, AlphaZero) or agent.learn_from:
        return None
    # The sizes of the minigo benchmark's generations are its rules.
    if agent.iterations or not isinstance(config.store, WindowConfig):
        return None
    asked = _sizes(agent)
    if not run.is_new and _record(run).get("asked") != asked:
        return None
    return {"asked": asked}


def unfitted(run: RunDirectory, config: RunConfig) -> RunConfig:
    """Returns a run's config with the size of generations that was asked for.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    record, agent = _record(run), config.agent
    fitted = {name: record.get("fitted", {}).get(name) for name in SIZES}
    if not isinstance(agent, AlphaZero) or fitted != _sizes(agent):
        return config
    return _with_sizes(config, agent, record["asked"])


def record_generation(run: RunDirectory, fitted: Mapping[str, Any]) -> bool:
    """Writes the size of generations that fits this machine into ``run.json``.

    Before the first optimizer step, learning then waits for no more rows than the first
    generation has.

    Args:
        run: The run.
        fitted: As self-play reports it.

    Returns:
        Whether learning waits for fewer rows.

    Raises:
        RunError: ``run.json`` is damaged, or the disk refuses.
    """
    with run.lock(RUN_LOCK, wait=True):
        config = read_config(run)
        store = config.store
        if isinstance(store, WindowConfig) and learned_steps(run) == 0:
            num_rows = max(config.learner.batch_size, fitted["num_rows"])
            num_rows = min(store.min_rows, num_rows)
            store = dataclasses.replace(store, min_rows=num_rows)
        is_changed = store != config.store
        agent = AlphaZero.of(config, "selfplay")
        config = _with_sizes(dataclasses.replace(config, store=store), agent, fitted)
        record = {**_record(run), "fitted": dict(fitted)}
        record_config(run, config, generation=record)
    return is_changed


def _record(run: RunDirectory) -> dict[str, Any]:
    record = run.read_run().get("measured", {}).get("generation", {})
    return dict(record) if isinstance(record, dict) else {}


def _sizes(agent: AlphaZero) -> dict[str, int]:
    return {name: getattr(agent.actor, name) for name in SIZES}


def _with_sizes(
    config: RunConfig, agent: AlphaZero, sizes: Mapping[str, int]
) -> RunConfig:
    actor = dataclasses.replace(
        agent.actor,
        games_per_generation=sizes["games_per_generation"],
        num_slots=sizes["num_slots"],
    )
    return dataclasses.replace(config, agent=dataclasses.replace(agent, actor=actor))
