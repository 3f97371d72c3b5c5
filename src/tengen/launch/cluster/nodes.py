"""The hosts of a cluster. Does not call Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen.errors import UsageError
from tengen.roles import RunConfig, gpus_named

__all__ = ["Node", "check_gpus", "listed", "nodes_of"]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One host of a cluster."""

    node: str
    """Ray's id of the host."""
    host: str
    """The host's name."""
    num_cpus: float
    """Cores that roles may have."""
    num_gpus: float
    """GPUs that roles may have."""
    resource: str = ""
    """Ray's name of a resource that only this host has, by which an actor is placed
    there."""


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
            resource=f"node:{one['NodeManagerAddress']}",
        )
        for one in listed
        if one["Alive"]
    ]
    return sorted(nodes, key=lambda node: (-node.num_cpus, node.node))


def check_gpus(config: RunConfig, nodes: Sequence[Node]) -> None:
    """Makes sure that a cluster has a GPU at all where the config names one.

    Each role checks for its own GPU on the host that it gets.

    Args:
        config: The run's.
        nodes: The cluster's hosts.

    Raises:
        UsageError: No host has a GPU, and the cluster adds no hosts.
    """
    if config.launch.grows or any(node.num_gpus for node in nodes):
        return
    for name, devices in gpus_named(config).items():
        raise UsageError(
            f"{name} ({devices}) is on no host of the cluster: {listed(nodes)}; add "
            f"one with a GPU, or use --devices cpu"
        )


def listed(nodes: Sequence[Node]) -> str:
    """Returns the hosts of a cluster with cores and GPUs, as text."""
    shown = [
        f"{node.host} has {node.num_cpus:g} cores and {node.num_gpus:g} GPUs"
        for node in nodes[:4]
    ]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f", and {more} more hosts" if more > 0 else "")
