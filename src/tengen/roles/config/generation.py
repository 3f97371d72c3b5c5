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
from tengen.roles.config.run_config import RunConfig
from tengen.roles.config.run_file import RUN_LOCK, read_config, record_config
from tengen.roles.spent import learned_steps
from tengen.run import RunDirectory

__all__ = ["asked_generations", "record_generation", "with_asked_generations"]


def asked_generations(
    run: RunDirectory, config: RunConfig, *, is_set: bool
) -> dict[str, Any] | None:
    """Returns what ``run.json`` is to say of generations; None if their size is fixed.

    Args:
        run: The run, which may be new.
        config: Its config in this call, after ``with_asked_generations``.
        is_set: Whether the user sets the size in this call.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    asked = {} if config.games is None else config.games.generation_sizes()
    if is_set or not asked or config.store.games_of_model:
        return None
    if not run.is_new and _record(run).get("asked") != asked:
        return None
    return {"asked": asked}


def with_asked_generations(run: RunDirectory, config: RunConfig) -> RunConfig:
    """Returns a run's config with the size of generations that was asked for.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    agent = config.games
    if agent is None:
        return config
    record, sizes = _record(run), agent.generation_sizes()
    fitted = {name: record.get("fitted", {}).get(name) for name in sizes}
    if not sizes or fitted != sizes:
        return config
    agent = agent.with_generation_sizes(record["asked"])
    return dataclasses.replace(config, agent=agent)


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
        if learned_steps(run) == 0:
            num_rows = max(config.learner.batch_size, fitted["num_rows"])
            store = store.starting_with(num_rows)
        is_changed = store != config.store
        agent = AlphaZero.of(config.agent, "selfplay").with_generation_sizes(fitted)
        config = dataclasses.replace(config, store=store, agent=agent)
        record = {**_record(run), "fitted": dict(fitted)}
        record_config(run, config, generation=record)
    return is_changed


def _record(run: RunDirectory) -> dict[str, Any]:
    record = run.read_run().get("measured", {}).get("generation", {})
    return dict(record) if isinstance(record, dict) else {}
