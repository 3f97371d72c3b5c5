"""What a cluster has, and whether the roles of a run fit it. Nothing here asks Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen.errors import UsageError
from tengen.launch.workers import Worker
from tengen.roles import RunConfig, gpus_named

__all__ = ["Node", "Request", "check_fits", "check_gpus", "nodes_of", "requests_of"]

_NOW_AND_THEN = 0.01
"""Of a core, for roles that work now and then: above none, so that a head that has no
cores for roles gets none of them."""
_LEAST = 0.001
"""Of a core, for one of very many."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One host of a cluster."""

    node: str
    """Ray's id of it."""
    host: str
    """Its name."""
    num_cpus: float
    """Cores that roles may have."""
    num_gpus: float
    """GPUs likewise."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a process has the cluster keep for it."""

    name: str
    """The process."""
    num_cpus: float
    """Cores, perhaps part of one."""
    num_gpus: float
    """GPUs."""
    is_given: bool
    """Whether the user said so, or it is a share of what there is."""


def nodes_of(listed: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Returns the hosts that are alive, the largest first.

    Args:
        listed: As ``ray.nodes()`` returns them.
    """
    nodes = [
        Node(
            node=str(one["NodeID"]),
            host=str(one["NodeManagerHostname"]),
            num_cpus=float(one["Resources"].get("CPU", 0.0)),
            num_gpus=float(one["Resources"].get("GPU", 0.0)),
        )
        for one in listed
        if one["Alive"]
    ]
    return sorted(nodes, key=lambda node: (-node.num_cpus, node.node))


def requests_of(
    config: RunConfig,
    workers: Sequence[Worker],
    nodes: Sequence[Node],
    *,
    grows: bool = False,
) -> list[Request]:
    """Returns what each process asks for, in order.

    ``launch.roles.ROLE.num_cpus`` and ``num_gpus`` are asked for as they are. A process
    for which nothing was said asks for a core a thread where it always works; all those
    together for less, in proportion, where the cluster has less and does not grow.

    Args:
        config: The run's.
        workers: Its processes.
        nodes: The cluster's hosts.
        grows: Whether the cluster adds hosts for what waits.
    """
    schedule = config.agent.schedule(config)
    busy = {schedule.acting, schedule.serving, "learn", "follow"}
    given = [config.launch.of(worker.given_as) for worker in workers]
    is_busy = [bool(busy & {*worker.roles}) for worker in workers]
    shared = [
        float(worker.num_threads)
        for worker, one, works in zip(workers, given, is_busy, strict=True)
        if works and not one.num_cpus
    ]
    rare = sum(
        _NOW_AND_THEN
        for one, works in zip(given, is_busy, strict=True)
        if not works and not one.num_cpus
    )
    left = sum(node.num_cpus for node in nodes) - rare
    left -= sum(one.num_cpus for one in given)
    scale = 1.0
    if shared and left > 0 and not grows:
        # Whichever host each is put on, in whichever order, the others may have a rest
        # that is less than the largest share: then the last host has room for it.
        num_hosts = sum(node.num_cpus > 0 for node in nodes)
        scale = left / (sum(shared) + (num_hosts - 1) * max(shared))
    shares = [
        max(_LEAST, _cut(worker.num_threads * min(1.0, scale)))
        if works
        else _NOW_AND_THEN
        for worker, works in zip(workers, is_busy, strict=True)
    ]
    return [
        Request(
            name=worker.name,
            num_cpus=float(one.num_cpus or share),
            num_gpus=float(one.num_gpus),
            is_given=bool(one.num_cpus or one.num_gpus),
        )
        for worker, one, share in zip(workers, given, shares, strict=True)
    ]


def check_fits(requests: Sequence[Request], nodes: Sequence[Node]) -> None:
    """Makes sure that the cluster has room for what was asked, were it free.

    Args:
        requests: Of all processes of a run.
        nodes: The cluster's hosts.

    Raises:
        UsageError: There is none for one of them, beside the others.
    """
    free = [[node.num_cpus, node.num_gpus] for node in nodes]
    given = sorted(
        (one for one in requests if one.is_given),
        key=lambda one: (-one.num_gpus, -one.num_cpus),
    )
    for one in given:
        for room in free:
            if room[0] >= one.num_cpus and room[1] >= one.num_gpus:
                room[0] -= one.num_cpus
                room[1] -= one.num_gpus
                break
        else:
            role = one.name.rstrip("0123456789").rstrip("-")
            raise UsageError(
                f"launch.roles.{role} ({one.num_cpus:g} cores, {one.num_gpus:g} GPUs) "
                f"has no room in the cluster beside the other roles: {_listed(nodes)}; "
                f"lower num_cpus, num_gpus or count, or set launch.grows=true where "
                f"the cluster adds hosts"
            )
    num_cpus = sum(node.num_cpus for node in nodes)
    if sum(one.num_cpus for one in requests) > num_cpus:
        others = ", ".join(one.name for one in requests if not one.is_given)
        raise UsageError(
            f"launch.roles leaves no core of {num_cpus:g} for {others}: "
            f"{_listed(nodes)}; lower num_cpus, or set launch.grows=true where the "
            f"cluster adds hosts"
        )


def check_gpus(config: RunConfig, nodes: Sequence[Node]) -> None:
    """Makes sure that a cluster has a GPU at all where the config names one.

    A role looks for its own on the host that it is given.

    Args:
        config: The run's.
        nodes: The cluster's hosts.

    Raises:
        UsageError: No host has one, and the cluster adds none.
    """
    if config.launch.grows or any(node.num_gpus for node in nodes):
        return
    for name, devices in gpus_named(config).items():
        raise UsageError(
            f"{name} ({devices}) is on no host of the cluster: {_listed(nodes)}; add "
            f"one with a GPU, or use --devices cpu"
        )


def _listed(nodes: Sequence[Node]) -> str:
    shown = [
        f"{node.host} has {node.num_cpus:g} cores and {node.num_gpus:g} GPUs"
        for node in nodes[:4]
    ]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f", and {more} more hosts" if more > 0 else "")


def _cut(num_cpus: float) -> float:
    """Returns a share in thousandths of a core, so that all together fit."""
    return math.floor(1000 * num_cpus) / 1000
