"""Which part limits a modelled cluster, by name, and what to add."""

from __future__ import annotations

from cluster_model.actors import Result
from cluster_model.games import GamesResult

__all__ = ["REMEDIES", "limit_of", "limit_of_games"]

SATURATED = 0.9
LINEAR = 0.9
# Of its answers' time an actor may wait so much before that is what limits it.
_ROOM = 0.05
_EMPTYING = ("learner", "store", "cores")

REMEDIES = {
    "environments": "more actors: nothing else is near its limit",
    "answers": "two groups of copies an actor (agent.actor.num_groups=2), so that one "
    "steps while the other is answered",
    "actor hosts": "more hosts for actors, or more copies an actor",
    "cores": "cores: move actors to hosts of their own (launch.listen)",
    "inference": "a device with cheaper rows, or another inference server "
    "(launch.roles.inference.count=2), on cores or a device of its own",
    "network": "a faster link to the servers' host, or smaller observations",
    "store": "more store shards",
    "learner": "a second learner (launch.roles.learn.count=2), larger batches, or a "
    "faster device for it",
    "self-play": "more self-play hosts: the learner waits for rows",
    "gate": "fewer games a match, or more cores for the gate",
}
"""What to add where a part is the limit."""


def limit_of(result: Result) -> str:
    """Returns the part that keeps the actors from more steps a second."""
    load = {role: share for role, share in result.load.items() if role in REMEDIES}
    linear = load.pop("environments")
    if result.table_wait > _ROOM:
        # Who takes items out is too slow: the learner, or what it is fed by.
        load = {r: share for r, share in load.items() if r in _EMPTYING}
        return max(load, key=lambda role: load[role])
    fullest = max(load, key=lambda role: load[role])
    if load[fullest] >= SATURATED:
        return fullest
    return "environments" if linear >= LINEAR else "answers"


def limit_of_games(result: GamesResult) -> str:
    """Returns the part that keeps self-play from more rows learned a second."""
    for role in ("network", "store", "learner", "gate"):
        if result.utilisation[role] >= SATURATED:
            return role
    return "self-play"
