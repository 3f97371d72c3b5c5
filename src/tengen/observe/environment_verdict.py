"""What limits a run of environments whose roles all work at once, and what to set.

Each stage waits for a slower one. Actors wait for answers if inference is slow, and for
room in the table if the learner is slow. Inference waits for rows, and the learner for
items, if actors are slow. So the stage that waits least is the one that the others wait
for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ENVIRONMENT_ADVICE",
    "LIGHTER",
    "StageTimes",
    "environment_verdict",
    "lighter_learning",
]

# Share of its time at which a stage is at its limit.
_BEHIND = 0.9
_FULL = 0.85
# A learner with a smaller share of its time at work waits for other stages.
_WAITS = 0.5
# Share of the actors' time from which on the environments, or waits for room in the
# table, are the main cost.
_MUCH = 0.5
# Share of time below which another stage is not shown.
_SHOWN = 0.05

ENVIRONMENT_ADVICE = {
    "learning": (
        "the learner cannot keep up; {lighter}, give it more cores by --set "
        "launch.roles.learn.num_cpus, use fewer --actors, or give a new run a smaller "
        "network"
    ),
    "gate": "the gate cannot keep up; look at its log",
    "inference": (
        "inference cannot keep up; give it more cores by --set "
        "launch.roles.inference.num_cpus, or each of several GPUs a server by --set "
        "launch.roles.inference.count, raise --set agent.actor.num_envs for larger "
        "batches, and of a queue --set store.max_items with it, or give a new run a "
        "smaller network"
    ),
    "simulation": (
        "the environments take most, and the learner waits; use more --actors, as many "
        "as there are cores for"
    ),
    "playing": (
        "the learner waits for the actors; use more --actors, or raise --set "
        "agent.actor.num_envs for larger batches, and of a queue --set "
        "store.max_items with it"
    ),
    "even": "actors and learner go together",
}
"""What to do, by what limits; ``{lighter}`` is of ``lighter_learning``."""

LIGHTER = {
    "agent.num_epochs": "lower --set agent.num_epochs to learn less of each batch",
    "store.samples_per_item": (
        "lower --set store.samples_per_item to use each item less often"
    ),
    "": (
        "raise --set learner.batch_size to make fewer steps, and of a queue --set "
        "store.max_items with it"
    ),
}
"""Advice that gives a learner less to do, by setting; the last one if none of these
settings is above 1."""

_OTHERS = {"export": "publishing", "gate": "gate"}


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """Shares of each stage's own time, each in [0, 1]."""

    simulation: float
    """Share of the actors' time for the environments' steps."""
    answers: float
    """Share of the actors' time spent waiting for answers."""
    room: float
    """Share of the actors' time spent waiting for room in the table."""
    inference: float | None
    """Share of inference's time spent evaluating; None if it has not reported."""
    learning: float
    """Share of the learner's time spent learning."""


def environment_verdict(
    times: StageTimes, busy: Mapping[str, float], lighter: str
) -> str:
    """Returns what the stages do and the advice, ``<stage> <share>, ...: <advice>``.

    Args:
        times: The recent shares.
        busy: For each other role, by name, the share of time in which it works.
        lighter: The advice of ``lighter_learning``.
    """
    told = [f"learner {times.learning:.0%} busy"]
    if times.inference is not None:
        told.append(f"inference {times.inference:.0%} busy")
    told.append(f"actors simulate {times.simulation:.0%}")
    waits = times.answers + times.room
    told.append(
        f"wait {waits:.0%} (answers {times.answers:.0%}, room {times.room:.0%})"
    )
    told += [
        f"{word} {busy[name]:.0%}"
        for name, word in _OTHERS.items()
        if busy.get(name, 0.0) >= _SHOWN
    ]
    advice = ENVIRONMENT_ADVICE[_limit(times, busy)].format(lighter=lighter)
    return f"{', '.join(told)}: {advice}"


def lighter_learning(config: Mapping[str, Any]) -> str:
    """Returns advice that gives a run's learner less to do.

    Args:
        config: The run's, as in ``run.json``.
    """
    for name, advice in LIGHTER.items():
        value: Any = config
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and value > 1:
            return advice
    return LIGHTER[""]


def _limit(times: StageTimes, busy: Mapping[str, float]) -> str:
    if busy.get("gate", 0.0) >= _BEHIND:
        return "gate"
    if times.learning >= _BEHIND or times.room >= _MUCH:
        return "learning"
    if times.learning >= _WAITS:
        return "even"
    if times.inference is not None and times.inference >= _FULL:
        return "inference"
    return "simulation" if times.simulation >= _MUCH else "playing"
