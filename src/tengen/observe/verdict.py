"""The bottleneck of a run in one line, and what to set: pure functions of shares.

Where roles take turns, the division of the time shows the bottleneck. Where all roles
of a game work at once, the learner's share of time at work shows it: the learner may
use each row a number of times (``store.limiter.samples_per_row``) and then waits for
new rows. In environments each stage waits for a slower one: actors for answers if
inference is slow, and for room in the table if the learner is slow; inference for rows,
and the learner for items, if actors are slow. So the stage that waits least is the one
that the others wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ADVICE",
    "AT_ONCE_ADVICE",
    "LIGHTER",
    "Shares",
    "StageTimes",
    "at_once_verdict",
    "environment_verdict",
    "lighter_learning",
    "room_verdict",
    "verdict",
    "waiting_verdict",
]

# Share of the time from which on a stage other than playing may be the limit.
_MUCH = 0.5
_SOME = 0.25
# Share of the time below which another stage is not shown.
_SHOWN = 0.05
# A stage that works more than this share of its time is at its limit.
_FULL = 0.85
# Where roles work at once, a role holds up the others above the first share, and waits
# for them below the second.
_BEHIND = 0.9
_WAITS = 0.5
# Batches are emptier than this if slots have no game left to play.
_HALF_EMPTY = 0.6
# How many of the processes that wait for room are named.
_NAMED = 4

_WORDS = {"selfplay": ("self-play", "trees"), "actor": ("acting", "steps")}
"""By role: its activity, and what takes its time besides the net."""

ADVICE = {
    "selfplay": {
        "learning": (
            "learning takes most; lower --set store.limiter.samples_per_row to use "
            "each row less often"
        ),
        "gate": (
            "the gate's matches take long; lower --set agent.gate.num_simulations or "
            "raise --set agent.actor.games_per_generation"
        ),
        "rating": "rating takes long; lower --set agent.rating.time_share",
        "publishing": (
            "publishing models takes long; raise --set agent.actor.games_per_generation"
        ),
        "tail": (
            "cores wait for the last games of a generation; raise --set "
            "agent.actor.games_per_generation"
        ),
        "batches": (
            "batches run part empty; raise --set agent.actor.games_per_generation or "
            "lower --set agent.actor.num_slots"
        ),
        "tree": (
            "games and trees take more than the net; lower --set "
            "agent.actor.full_simulations, or give a new run a larger --set "
            "net.num_blocks"
        ),
        "inference": (
            "the net takes most; lower --set agent.actor.full_simulations, or give "
            "more cores by --threads"
        ),
    },
    "actor": {
        "learning": "learning takes most; {lighter}, or give more cores by --actors",
        "publishing": (
            "publishing models takes long; raise --set agent.actor.turn_steps, and of "
            "a queue --set store.max_items with it"
        ),
        "tree": (
            "stepping the environments takes most; step them beside the learner by "
            "--actors, or raise --set agent.actor.num_envs to step more of them at "
            "once, and of a queue --set store.max_items with it"
        ),
        "inference": (
            "the net takes most; raise --set agent.actor.num_envs for larger batches, "
            "and of a queue --set store.max_items with it"
        ),
    },
}
"""What to do, by the role that acts and by what limits; ``{lighter}`` is of
``lighter_learning``."""

AT_ONCE_ADVICE: dict[str, dict[str, str]] = {
    "selfplay": {
        "learning": (
            "the learner cannot keep up; lower --set store.limiter.samples_per_row, or "
            "give it more cores by --set launch.roles.learn.num_cpus"
        ),
        "gate": (
            "the gate cannot keep up; lower --set agent.gate.num_simulations, or give "
            "it more cores by --set launch.roles.gate.num_cpus"
        ),
        "playing": (
            "the learner waits for self-play; lower --set "
            "agent.actor.full_simulations, give more cores by --set "
            "launch.roles.selfplay.num_cpus, or raise --set "
            "store.limiter.samples_per_row"
        ),
        "even": "self-play and learner go together",
    },
    "actor": {
        "learning": (
            "the learner cannot keep up; {lighter}, give it more cores by --set "
            "launch.roles.learn.num_cpus, use fewer --actors, or give a new run a "
            "smaller network"
        ),
        "gate": "the gate cannot keep up; look at its log",
        "inference": (
            "inference cannot keep up; give it more cores by --set "
            "launch.roles.inference.num_cpus, or each of several GPUs a server by "
            "--set launch.roles.inference.count, raise --set agent.actor.num_envs for "
            "larger batches, and of a queue --set store.max_items with it, or give a "
            "new run a smaller network"
        ),
        "simulation": (
            "the environments take most, and the learner waits; use more --actors, as "
            "many as there are cores for"
        ),
        "playing": (
            "the learner waits for the actors; use more --actors, or raise --set "
            "agent.actor.num_envs for larger batches, and of a queue --set "
            "store.max_items with it"
        ),
        "even": "actors and learner go together",
    },
}
"""What to do where all roles work at once, by the role that acts and by what limits."""

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

_OF_STAGES = {"export": "publishing", "gate": "gate"}
_BUSY_WORDS = {
    "learn": "learning",
    "shuffle": "shuffling",
    "export": "publishing",
    "gate": "gate",
    "rate": "rating",
}


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of time over one generation, each in [0, 1]."""

    playing: float
    """Share of the whole time for self-play, or for acting in environments."""
    learning: float
    """Share of the whole time for the learner; time in no field is publishing."""
    inference_busy: float
    """Share of the threads' time while playing for the net."""
    tree_busy: float
    """Share of the threads' time while playing for games, trees and environments."""
    batch_fill: float = 1.0
    """Rows in an inference batch over its capacity."""
    gate: float = 0.0
    """Share of the whole time for the gate's matches."""
    rating: float = 0.0
    """Share of the whole time for matches that rate models."""

    @property
    def others(self) -> dict[str, float]:
        """Shares of the time, by name, of what is neither playing nor learning."""
        named = self.playing + self.learning + self.gate + self.rating
        return {
            "gate": self.gate,
            "rating": self.rating,
            "publishing": max(0.0, 1.0 - named),
        }


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


def verdict(role: str, shares: Shares, lighter: str = "") -> str:
    """Returns the shares and the advice, ``<stage> <share>; ...: <what to do>``.

    Args:
        role: The role that acts, ``selfplay`` or ``actor``.
        shares: Of the last generation.
        lighter: The advice of ``lighter_learning``, in environments.
    """
    stages = [_playing(role, shares), f"learning {shares.learning:.0%}"]
    stages += [
        f"{name} {part:.0%}" for name, part in shares.others.items() if part >= _SHOWN
    ]
    advice = ADVICE[role][_limit(ADVICE[role], shares)].format(lighter=lighter)
    return f"{'; '.join(stages)}: {advice}"


def at_once_verdict(role: str, shares: Shares, busy: Mapping[str, float]) -> str:
    """Returns the verdict where roles work at once, ``at once, <role> <share>; ...``.

    Each share is the share of time in which a role works; they sum to more than 1.

    Args:
        role: That acts.
        shares: Of the last generation, of which ``playing`` and what is told of a
            player's own threads count.
        busy: Of each other role, by its name, each in [0, 1].
    """
    told = [f"at once, {_playing(role, shares)}"]
    told += [
        f"{word} {busy[name]:.0%}"
        for name, word in _BUSY_WORDS.items()
        if name == "learn" or busy.get(name, 0.0) >= _SHOWN
    ]
    limit = "even"
    if busy.get("gate", 0.0) >= _BEHIND:
        limit = "gate"
    elif busy["learn"] >= _BEHIND:
        limit = "learning"
    elif busy["learn"] < _WAITS:
        limit = "playing"
    return f"{'; '.join(told)}: {AT_ONCE_ADVICE[role][limit]}"


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
        for name, word in _OF_STAGES.items()
        if busy.get(name, 0.0) >= _SHOWN
    ]
    advice = AT_ONCE_ADVICE["actor"][_stage(times, busy)].format(lighter=lighter)
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


def room_verdict(names: Sequence[str]) -> str:
    """Returns the verdict for a run that waits for its cluster to begin processes.

    Args:
        names: The names of the processes; without any the verdict is empty.
    """
    if not names:
        return ""
    several = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    verb = "waits" if len(names) == 1 else "wait"
    return (
        f"{', '.join(names[:_NAMED])}{several} {verb} for the cluster: where ray "
        f"status shows no room, free cores or GPUs, or add hosts"
    )


def waiting_verdict(learning: float, waiting: float) -> str:
    """Returns the verdict for a run that learns from another run's games.

    Args:
        learning: The learner's share of the time, in [0, 1].
        waiting: The share of the time in which there were no new games.
    """
    advice = (
        "games come slowly; raise --set store.limiter.samples_per_row to use each row "
        "more often"
        if waiting > _SOME
        else "the learner has as many games as it can use"
    )
    return f"waiting for games {waiting:.0%}; learning {learning:.0%}: {advice}"


def _playing(role: str, shares: Shares) -> str:
    acting, stepping = _WORDS[role]
    return (
        f"{acting} {shares.playing:.0%} (net {shares.inference_busy:.0%}, "
        f"{stepping} {shares.tree_busy:.0%}, batches {shares.batch_fill:.0%} full)"
    )


def _limit(advice: Mapping[str, str], shares: Shares) -> str:
    """Returns what limits the run most, among what there is advice for."""
    if shares.learning > _MUCH:
        return "learning"
    others = shares.others
    if sum(others.values()) > _SOME:
        longest = max(others, key=others.__getitem__)
        return longest if longest in advice else "publishing"
    if "tail" in advice and shares.inference_busy + shares.tree_busy < _FULL:
        return "tail"
    if "batches" in advice and shares.batch_fill < _HALF_EMPTY:
        return "batches"
    return "tree" if shares.tree_busy > shares.inference_busy else "inference"


def _stage(times: StageTimes, busy: Mapping[str, float]) -> str:
    if busy.get("gate", 0.0) >= _BEHIND:
        return "gate"
    if times.learning >= _BEHIND or times.room >= _MUCH:
        return "learning"
    if times.learning >= _WAITS:
        return "even"
    if times.inference is not None and times.inference >= _FULL:
        return "inference"
    return "simulation" if times.simulation >= _MUCH else "playing"
