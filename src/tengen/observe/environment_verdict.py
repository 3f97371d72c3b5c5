"""What limits a run of environments whose roles all work at once, and what to set.

Each stage waits for another one. Actors wait for answers where inference is slow, and
for room in the table where the learner is; inference waits for rows and the learner
for items where actors are slow. So whoever waits least is what the others wait for.
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

# Of its time, from which on a stage has nothing left to give.
_BEHIND = 0.9
_FULL = 0.85
# A learner that works less than that waits for the others.
_WAITS = 0.5
# Of the actors' time, from which on the environments, or waiting for the learner to
# make room, are what takes it.
_MUCH = 0.5
# Of the time, below which another stage is not told of.
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
"""What gives a learner less to do, by the setting; the last where a run has none of
them above 1."""

_OTHERS = {"export": "publishing", "gate": "gate"}


@dataclass(frozen=True, kw_only=True)
class StageTimes:
    """Shares of each stage's own time, each in [0, 1]."""

    simulation: float
    """The environments' steps, of the actors' time."""
    answers: float
    """Waiting for answers, of the actors' time."""
    room: float
    """Waiting for room in the table, of the actors' time."""
    inference: float | None
    """Evaluating, of inference's time; None where it has not told."""
    learning: float
    """Learning, of the learner's time."""


def environment_verdict(
    times: StageTimes, busy: Mapping[str, float], lighter: str
) -> str:
    """Returns what the stages do and the advice, ``<stage> <share>, ...: <advice>``.

    Args:
        times: Of late.
        busy: Of each other role, by its name, the share of the time in which it works.
        lighter: Of ``lighter_learning``.
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
    """Returns what gives a run's learner less to do.

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
