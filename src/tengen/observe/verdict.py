"""Pure functions that name a run's bottleneck and give advice, based on its reports.

If roles work in turns, the role with the largest share of the time is the bottleneck.
If the roles of a game work concurrently, the learner's busy share decides: the learner
may use each row only ``store.limiter.samples_per_row`` times, so it waits if self-play
is slower. In environments each stage waits for slower stages: actors wait for inference
results if inference is slow, and for space in the table if the learner is slow;
inference waits for rows and the learner for items if actors are slow. So the stage that
waits least is the bottleneck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Share of the time above which a stage other than playing may be the bottleneck.
_MUCH = 0.5
_SOME = 0.25
# Stages other than playing and learning are shown from this share of the time on.
_SHOWN = 0.05
# A stage that is busy for more than this share of its time is saturated.
_FULL = 0.85
# Shares of the time that a concurrent role is busy: at ``_BEHIND`` or more it is the
# bottleneck; below ``_WAITS`` it mostly waits for other roles.
_BEHIND = 0.9
_WAITS = 0.5
# Below this batch fill, some slots have no game left to play.
_HALF_EMPTY = 0.6
# Maximum number of waiting processes that a verdict names.
_NAMED = 4

_WORDS = {"selfplay": ("self-play", "trees"), "actor": ("acting", "steps")}
"""Names of a role's activity and of its work other than network evaluation."""

ADVICE = {
    "selfplay": {
        "learning": (
            "learning takes most of the time; lower --set "
            "store.limiter.samples_per_row to use each row less often"
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
            "batches are partly empty; raise --set agent.actor.games_per_generation or "
            "lower --set agent.actor.num_slots"
        ),
        "tree": (
            "games and trees take longer than the network; lower --set "
            "agent.actor.full_simulations, or give a new run a larger network"
        ),
        "inference": (
            "the network takes most of the time; lower --set "
            "agent.actor.full_simulations, or use more cores with --threads"
        ),
    },
    "actor": {
        "learning": (
            "learning takes most of the time; {lighter}, or use more cores with "
            "--actors"
        ),
        "publishing": (
            "publishing models takes long; raise --set agent.actor.turn_steps (for a "
            "queue also --set store.max_items)"
        ),
        "tree": (
            "stepping the environments takes most of the time; step them in parallel "
            "with --actors, or raise --set agent.actor.num_envs (for a queue also "
            "--set store.max_items) to step more at once"
        ),
        "inference": (
            "the network takes most of the time; raise --set agent.actor.num_envs (for "
            "a queue also --set store.max_items) for larger batches"
        ),
    },
}
"""Advice by acting role and bottleneck; ``{lighter}`` is replaced with the result of
``lighter_learning``."""

AT_ONCE_ADVICE: dict[str, dict[str, str]] = {
    "selfplay": {
        "learning": (
            "the learner cannot keep up; lower --set store.limiter.samples_per_row, or "
            "give it more cores with --set launch.roles.learn.num_cpus"
        ),
        "gate": (
            "the gate cannot keep up; lower --set agent.gate.num_simulations, or give "
            "it more cores with --set launch.roles.gate.num_cpus"
        ),
        "playing": (
            "the learner waits for self-play; lower --set "
            "agent.actor.full_simulations, use more cores with --set "
            "launch.roles.selfplay.num_cpus, or raise --set "
            "store.limiter.samples_per_row"
        ),
        "even": "self-play and learner keep pace",
    },
    "actor": {
        "learning": (
            "the learner cannot keep up; {lighter}, give it more cores with --set "
            "launch.roles.learn.num_cpus, use fewer --actors, or give a new run a "
            "smaller network"
        ),
        "gate": "the gate cannot keep up; see its log",
        "inference": (
            "inference cannot keep up; give it more cores with --set "
            "launch.roles.inference.num_cpus, run one server per GPU with --set "
            "launch.roles.inference.count, raise --set agent.actor.num_envs (for a "
            "queue also --set store.max_items) for larger batches, or give a new run a "
            "smaller network"
        ),
        "simulation": (
            "the environments take most of the time, and the learner waits; raise "
            "--actors to at most the number of cores"
        ),
        "playing": (
            "the learner waits for the actors; use more --actors, or raise --set "
            "agent.actor.num_envs (for a queue also --set store.max_items) for larger "
            "batches"
        ),
        "even": "actors and learner keep pace",
    },
}
"""Advice for roles that work concurrently, by acting role and bottleneck."""

LIGHTER = {
    "agent.num_epochs": "lower --set agent.num_epochs to learn less from each batch",
    "store.samples_per_item": (
        "lower --set store.samples_per_item to use each item less often"
    ),
    "": (
        "raise --set learner.batch_size (for a queue also --set store.max_items) for "
        "fewer steps"
    ),
}
"""Advice that reduces the learner's work, by the setting to lower. The first setting
above 1 is chosen; if there is none, the last advice applies."""

ALONE_ADVICE = {
    "selfplay": {
        "learning": (
            "learner too slow; lower --set store.limiter.samples_per_row, give tengen "
            "learn more --threads or a GPU with --devices, or stop a self-play process"
        ),
        "playing": (
            "self-play too slow; start another tengen selfplay on this run, lower "
            "--set agent.actor.full_simulations, or raise --set "
            "store.limiter.samples_per_row"
        ),
        "even": "self-play and learner keep pace",
    },
    "actor": {
        "learning": (
            "learner too slow; give tengen learn more --threads or a GPU with "
            "--devices, raise --set learner.batch_size, or stop an actor"
        ),
        "playing": (
            "actors too slow; start a new run with more --actors, or raise --set "
            "agent.actor.num_envs"
        ),
        "even": "actors and learner keep pace",
    },
}
"""Advice for standalone roles, by acting role and bottleneck."""

_OF_STAGES = {"export": "publishing", "gate": "gate"}
_BUSY_WORDS = {
    "learn": "learning",
    "shuffle": "shuffling",
    "export": "publishing",
    "gate": "gate",
    "rate": "rating",
}


def verdict(
    role: str, played: Mapping[str, Any], shares: Mapping[str, float], lighter: str = ""
) -> str:
    """Returns the verdict if roles work in turns, ``<stage> <share>; ...: <advice>``.

    Args:
        role: The acting role, ``selfplay`` or ``actor``.
        played: The report of the acting role's last turn.
        shares: The share of the last generation's time by role, in [0, 1]; the
            remaining share is publishing.
        lighter: The result of ``lighter_learning``, in environments.
    """
    playing = shares.get(role, 0.0)
    learning = shares.get("shuffle", 0.0) + shares.get("learn", 0.0)
    others = {"gate": shares.get("gate", 0.0), "rating": shares.get("rate", 0.0)}
    others["publishing"] = max(0.0, 1.0 - playing - learning - sum(others.values()))
    stages = [_playing(role, played, playing), f"learning {learning:.0%}"]
    stages += [f"{name} {part:.0%}" for name, part in others.items() if part >= _SHOWN]
    advice = ADVICE[role]
    limit = _limit(advice, played, learning, others)
    return f"{'; '.join(stages)}: {advice[limit].format(lighter=lighter)}"


def at_once_verdict(
    role: str, played: Mapping[str, Any], busy: Mapping[str, float]
) -> str:
    """Returns the verdict for concurrent roles, ``at once, <role> <share>; ...``.

    Args:
        role: The acting role.
        played: The report of the acting role's last turn.
        busy: The share of the time that each role is busy, in [0, 1]. The sum may
            exceed 1.
    """
    told = [f"at once, {_playing(role, played, busy.get(role, 0.0))}"]
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
    played: Mapping[str, Any],
    busy: Mapping[str, float],
    inference: float | None,
    lighter: str,
) -> str:
    """Returns the verdict in environments, ``<stage> <share>, ...: <advice>``.

    Args:
        played: The actors' last report.
        busy: As for ``at_once_verdict``.
        inference: The share of the time that inference is busy; None before its first
            report.
        lighter: The result of ``lighter_learning``.
    """
    told = [f"learner {busy['learn']:.0%} busy"]
    if inference is not None:
        told.append(f"inference {inference:.0%} busy")
    answers, room = played["answer_wait"], played["room_wait"]
    told += [
        f"actors simulate {played['simulation_busy']:.0%}",
        f"wait {answers + room:.0%} (answers {answers:.0%}, room {room:.0%})",
    ]
    told += [
        f"{word} {busy[name]:.0%}"
        for name, word in _OF_STAGES.items()
        if busy.get(name, 0.0) >= _SHOWN
    ]
    advice = AT_ONCE_ADVICE["actor"][_stage(played, busy, inference)]
    return f"{', '.join(told)}: {advice.format(lighter=lighter)}"


def alone_advice(busy: float, suppliers: Mapping[str, float | None]) -> str:
    """Returns advice for standalone roles.

    Args:
        busy: The share of the time that the learner is busy, in [0, 1].
        suppliers: The roles that supply the learner, in the order in which rows pass
            them, with the share of the time that each is busy, or None if no process
            has the role.
    """
    advice = ALONE_ADVICE["actor" if "actor" in suppliers else "selfplay"]
    if busy >= _BEHIND:
        return advice["learning"]
    if busy >= _WAITS:
        return advice["even"]
    for role, share in suppliers.items():
        if share is None:
            return f"nothing arrives without {role}; start tengen {role} on this run"
    if (suppliers.get("shuffle") or 0.0) >= _BEHIND:
        return "shuffle too slow; give tengen shuffle more --threads or other cores"
    return advice["playing"]


def lighter_learning(config: Mapping[str, Any]) -> str:
    """Returns advice that reduces the work of a run's learner.

    Args:
        config: The run's config, as in ``run.json``.
    """
    for name, advice in LIGHTER.items():
        value: Any = config
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and value > 1:
            return advice
    return LIGHTER[""]


def room_verdict(names: Sequence[str]) -> str:
    """Returns the verdict for a run that waits for its cluster to start processes.

    Args:
        names: Names of the waiting processes. If empty, the verdict is empty.
    """
    if not names:
        return ""
    several = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    verb = "waits" if len(names) == 1 else "wait"
    return (
        f"{', '.join(names[:_NAMED])}{several} {verb} for the cluster: if ray status "
        "shows no free cores or GPUs, free some or add hosts"
    )


def waiting_verdict(learning: float, waiting: float) -> str:
    """Returns the verdict for a run that learns from another run's games.

    Args:
        learning: The share of the time spent learning, in [0, 1].
        waiting: The share of the time without new games, in [0, 1].
    """
    advice = (
        "games arrive slowly; raise --set store.limiter.samples_per_row to use each "
        "row more often"
        if waiting > _SOME
        else "the learner has as many games as it can use"
    )
    return f"waiting for games {waiting:.0%}; learning {learning:.0%}: {advice}"


def batch_fill(report: Mapping[str, Any]) -> float:
    """Returns the rows of a report's inference batches divided by their capacity."""
    return float(report["batch_rows"] / max(1, report["batch_capacity"]))


def _playing(role: str, played: Mapping[str, Any], share: float) -> str:
    acting, stepping = _WORDS[role]
    return (
        f"{acting} {share:.0%} (net {played['inference_busy']:.0%}, {stepping} "
        f"{played['tree_busy']:.0%}, batches {batch_fill(played):.0%} full)"
    )


def _limit(
    advice: Mapping[str, str],
    played: Mapping[str, Any],
    learning: float,
    others: Mapping[str, float],
) -> str:
    """Returns the bottleneck if roles work in turns, one of the keys of ``advice``."""
    if learning > _MUCH:
        return "learning"
    if sum(others.values()) > _SOME:
        longest = max(others, key=others.__getitem__)
        return longest if longest in advice else "publishing"
    net, tree = played["inference_busy"], played["tree_busy"]
    if "tail" in advice and net + tree < _FULL:
        return "tail"
    if "batches" in advice and batch_fill(played) < _HALF_EMPTY:
        return "batches"
    return "tree" if tree > net else "inference"


def _stage(
    played: Mapping[str, Any], busy: Mapping[str, float], inference: float | None
) -> str:
    if busy.get("gate", 0.0) >= _BEHIND:
        return "gate"
    if busy["learn"] >= _BEHIND or played["room_wait"] >= _MUCH:
        return "learning"
    if busy["learn"] >= _WAITS:
        return "even"
    if inference is not None and inference >= _FULL:
        return "inference"
    return "simulation" if played["simulation_busy"] >= _MUCH else "playing"
