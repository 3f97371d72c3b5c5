"""Plans the resources that a run's processes request from a cluster. No Ray calls.

The core is the set of processes for learning, inference, export, gate and rating. It is
planned for one host if one host is large enough. Self-play has one process on each
host, with as many threads as the host has cores left. On hosts without the core,
self-play requests less, so that the core can move there if its own host is lost. All
environment actors request the same resources, so that any actor fits on any host.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tengen.errors import UsageError
from tengen.experience import MAX_WRITERS
from tengen.launch.launcher import Placed
from tengen.launch.workers import (
    Worker,
    with_cores,
    with_count,
    workers_at_once,
)
from tengen.roles import RunConfig
from tengen.roles.devices import gpus_named

_NOW_AND_THEN = 0.01
"""Fraction of a core that a mostly idle role requests. It is above 0, so that Ray does
not place the role on a head node that offers no cores."""
_LEAST = 0.5
"""The minimum fraction of a core that a host must have left for an acting process."""
_LISTENING = ("learn", "inference")


@dataclass(frozen=True, kw_only=True)
class Node:
    """One host of a cluster."""

    node: str
    """Ray's ID of the host."""
    host: str
    """The host's name."""
    num_cpus: float
    """Cores that the host offers to Ray."""
    num_gpus: float
    """GPUs that the host offers to Ray."""
    resource: str = ""
    """Name of a Ray resource that only this host has; requesting it pins an actor to
    the host."""


def nodes_of(listed: Sequence[Mapping[str, Any]]) -> list[Node]:
    """Returns a cluster's live hosts, sorted by decreasing number of cores.

    Args:
        listed: The result of ``ray.nodes()``.
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
    """Checks that the cluster has at least one GPU if the config names one.

    Each role checks for its own GPU on the host where it is placed.

    Args:
        config: The run's config.
        nodes: The cluster's hosts.

    Raises:
        UsageError: No host has a GPU, and the cluster adds no hosts.
    """
    if config.launch.grows or any(node.num_gpus for node in nodes):
        return
    for name, devices in gpus_named(config).items():
        raise UsageError(
            f"{name} ({devices}) is on no host of the cluster: {_listed(nodes)}; add "
            f"one with a GPU, or use --devices cpu"
        )


def _listed(nodes: Sequence[Node]) -> str:
    """Returns a string that lists hosts with their cores and GPUs, for messages."""
    shown = [
        f"{node.host} has {node.num_cpus:g} cores and {node.num_gpus:g} GPUs"
        for node in nodes[:4]
    ]
    more = len(nodes) - len(shown)
    return ", ".join(shown) + (f", and {more} more hosts" if more > 0 else "")


def is_together(config: RunConfig) -> bool:
    """Returns whether all non-acting processes must share a host."""
    several = max(config.launch.of(role).count for role in _LISTENING)
    return bool(config.schedule.serving) and several == 1


def filled(config: RunConfig, nodes: Sequence[Node]) -> RunConfig:
    """Returns a config with a self-play process for each host with enough resources.

    The number of environment actors is unchanged.

    Args:
        config: The run's config.
        nodes: The cluster's hosts, as returned by ``nodes_of``.
    """
    schedule = config.schedule
    if schedule.serving or not schedule.acting:
        return config
    plan = _Plan(with_count(config, schedule.acting, 1), nodes, "")
    count = sum(plan.has_room(host) for host in plan.hosts)
    return with_count(config, schedule.acting, min(max(1, count), MAX_WRITERS))


def table_of(config: RunConfig, nodes: Sequence[Node], home: str = "") -> list[Placed]:
    """Returns the processes of a run with the resources that each requests.

    A process requests ``launch.roles.ROLE.num_cpus`` and ``num_gpus`` if they are set.
    Otherwise a process that is always busy requests one core per thread, or
    proportionally less if its host has fewer cores.

    Args:
        config: The run's config.
        nodes: The cluster's hosts, as returned by ``nodes_of``.
        home: Ray's ID of the only host with the run's files, where the core must run;
            empty if the core may run on any host.
    """
    return _Plan(config, nodes, home).table()


def check_fits(
    config: RunConfig, table: Sequence[Placed], nodes: Sequence[Node], home: str = ""
) -> None:
    """Checks that a cluster without other work has enough resources for a run.

    Args:
        config: The run's config.
        table: The result of ``table_of``.
        nodes: The cluster's hosts.
        home: See ``table_of``.

    Raises:
        UsageError: A process, or the core if it must be on one host, does not fit
            beside the other processes.
    """
    acting = (config.schedule.acting,)
    core = [one for one in table if one.worker.roles != acting]
    groups = [[one] for one in table if one.is_given]
    groups.sort(key=lambda group: (-group[0].num_gpus, -group[0].num_cpus))
    if home or is_together(config):
        groups = [core, *(group for group in groups if group[0] not in core)]
    free = _free(nodes)
    for group in groups:
        only = home if group is core else ""
        cpus = sum(one.num_cpus if one.is_given else _NOW_AND_THEN for one in group)
        gpus = sum(one.num_gpus for one in group)
        if _first_fit(free, cpus, gpus, only) is None:
            raise _no_room(group, cpus, gpus, nodes, only)
    num_cpus = sum(node.num_cpus for node in nodes)
    if sum(one.num_cpus for one in table) > num_cpus:
        others = ", ".join(one.worker.name for one in table if not one.is_given)
        raise UsageError(
            f"launch.roles leaves no core of {num_cpus:g} for {others}: "
            f"{_listed(nodes)}; lower num_cpus, or set launch.grows=true if the "
            "cluster adds hosts"
        )


def _free(nodes: Sequence[Node]) -> dict[str, list[float]]:
    """Returns the number of cores and GPUs of each host, by Ray's ID of the host."""
    return {node.node: [node.num_cpus, node.num_gpus] for node in nodes}


def _first_fit(
    free: dict[str, list[float]], cpus: float, gpus: float, only: str = ""
) -> str | None:
    """Reserves resources on the first host that has them; returns its ID or None."""
    for node, left in free.items():
        if only in ("", node) and left[0] >= cpus and left[1] >= gpus:
            left[0] -= cpus
            left[1] -= gpus
            return node
    return None


def _no_room(
    group: Sequence[Placed], cpus: float, gpus: float, nodes: Sequence[Node], home: str
) -> UsageError:
    given = [one for one in group if one.is_given] or group
    names = ", ".join(
        dict.fromkeys(f"launch.roles.{one.worker.given_as}" for one in given)
    )
    where = "in the cluster beside the other roles"
    advice = "set launch.grows=true if the cluster adds hosts"
    if len(group) > 1:
        where = "together on one host of the cluster"
    if home:
        where = (
            f"on host {next(node.host for node in nodes if node.node == home)}, the "
            "only host with the run directory"
        )
        advice = "put the run on a filesystem that all hosts have"
    verb = "have" if len(given) > 1 else "has"
    return UsageError(
        f"{names} ({cpus:g} cores, {gpus:g} GPUs) {verb} no room {where}: "
        f"{_listed(nodes)}; lower num_cpus, num_gpus or count, or {advice}"
    )


class _Plan:
    """Assigns the processes of a run to the hosts of a cluster.

    Args:
        config: The run's config.
        nodes: The cluster's hosts, as returned by ``nodes_of``.
        home: See ``table_of``.

    Attributes:
        hosts: The hosts that may run roles.
    """

    def __init__(self, config: RunConfig, nodes: Sequence[Node], home: str) -> None:
        self._config = config
        schedule = config.schedule
        self._busy = {schedule.acting, schedule.serving, "learn", "follow"}
        self._serves = bool(schedule.serving)
        self._workers = workers_at_once(config, 1)
        self._given = {
            one.name: config.launch.of(one.given_as) for one in self._workers
        }
        self._acting = (schedule.acting,)
        self._players = [one for one in self._workers if one.roles == self._acting]
        # If the cluster has no hosts yet, processes request one core per thread.
        none_yet = Node(node="", host="", num_cpus=math.inf, num_gpus=math.inf)
        self.hosts = [one for one in nodes if one.num_cpus > 0 or one.node == home]
        self.hosts = self.hosts or [none_yet]
        self._here: dict[str, list[Worker]] = {one.node: [] for one in self.hosts}
        self._base = self._place_core(home)
        self._num_players = dict.fromkeys(self._here, 0)
        # By host: the cores and GPUs that remain for acting processes.
        self._left = {host.node: self._left_of(host) for host in self.hosts}

    def has_room(self, host: Node) -> bool:
        """Returns whether a host has enough resources for one more acting process."""
        given = self._given[self._players[0].name]
        count = self._num_players[host.node] + 1
        cores, gpus = self._left[host.node]
        least = given.num_cpus or _LEAST
        return cores >= count * least and gpus >= count * given.num_gpus

    def table(self) -> list[Placed]:
        """Assigns the acting processes and returns all requests; see ``table_of``."""
        self._place_players()
        core_cpus = 0.0
        if self._base is not None:
            of_base = self._of_host(self._base, 0.0)
            core_cpus = sum(one.num_cpus for one in of_base if self._is_core(one))
        found = [one for host in self.hosts for one in self._of_host(host, core_cpus)]
        if self._serves:
            found = self._alike(found)
        core = [one for one in self._workers if one.roles != self._acting]
        order = {one.name: i for i, one in enumerate((*core, *self._players))}
        return sorted(found, key=lambda one: order[one.worker.name])

    def _place_core(self, home: str) -> Node | None:
        """Assigns non-acting processes; returns their host, or None if on several."""
        core = [one for one in self._workers if one.roles != self._acting]
        given = {one.name: self._given[one.name] for one in core}
        cpus = {name: one.num_cpus or _NOW_AND_THEN for name, one in given.items()}
        gpus = {name: one.num_gpus for name, one in given.items()}
        free = _free(self.hosts)
        base = home or _first_fit(free, sum(cpus.values()), sum(gpus.values()))
        if base is not None:
            self._here[base] += core
            return next(host for host in self.hosts if host.node == base)
        for worker in sorted(core, key=lambda one: -self._given[one.name].num_cpus):
            node = _first_fit(free, cpus[worker.name], gpus[worker.name])
            self._here[node or self.hosts[0].node].append(worker)
        return None

    def _left_of(self, host: Node) -> tuple[float, float]:
        """Returns how many cores and GPUs the core leaves for acting processes."""
        core = self._here[host.node]
        # If there are acting processes, the core gets fewer of the host's cores.
        divided = self._divided(host, [*core, *self._players[:1]])[: len(core)]
        cpus = sum(
            self._given[one.name].num_cpus or self._share(one) for one in divided
        )
        gpus = sum(self._given[one.name].num_gpus for one in core)
        return host.num_cpus - cpus, host.num_gpus - gpus

    def _place_players(self) -> None:
        """Assigns each acting process to the host that has the most cores left."""
        if not self._players:
            return
        places = [(*self._preference(one), i) for i, one in enumerate(self.hosts)]
        heapq.heapify(places)
        for player in self._players:
            place = places[0][-1]
            best = self.hosts[place]
            self._here[best.node].append(player)
            self._num_players[best.node] += 1
            heapq.heapreplace(places, (*self._preference(best), place))

    def _preference(self, host: Node) -> tuple[bool, bool, float]:
        """Returns a key whose minimum is the best host for the next acting process."""
        num_players = self._num_players[host.node]
        share = self._left[host.node][0] / (num_players + 1)
        return not self.has_room(host), num_players > 0, -share

    def _divided(self, host: Node, here: Sequence[Worker]) -> list[Worker]:
        cores = 1 if math.isinf(host.num_cpus) else max(1, int(host.num_cpus))
        return with_cores(self._config, here, cores)

    def _share(self, worker: Worker) -> float:
        is_busy = bool(self._busy & {*worker.roles})
        return float(worker.num_threads) if is_busy else _NOW_AND_THEN

    def _of_host(self, host: Node, core_cpus: float) -> list[Placed]:
        """Returns the requests of the processes on one host.

        Args:
            host: The host.
            core_cpus: Number of CPU cores to leave free for the run's core on a host
                without it.
        """
        grows = self._config.launch.grows
        here = self._divided(host, self._here[host.node])
        left = host.num_cpus
        wanted = 0.0
        for one in here:
            num_cpus, share = self._given[one.name].num_cpus, self._share(one)
            is_divided = not num_cpus and share > _NOW_AND_THEN
            wanted += share if is_divided else 0.0
            left -= 0.0 if is_divided else num_cpus or share
        if host != self._base and not self._serves and left - core_cpus >= _LEAST:
            left -= core_cpus
        scale = max(0.0, min(1.0, left / wanted)) if wanted else 1.0
        found = []
        for one in here:
            given = self._given[one.name]
            share = max(_NOW_AND_THEN, _cut(self._share(one) * scale))
            is_given = bool(given.num_cpus or given.num_gpus)
            is_share_of_host = one.roles == ("selfplay",) and not given.num_cpus
            has_host = is_share_of_host and not grows and self._base is not None
            found.append(
                Placed(
                    worker=one,
                    num_cpus=float(given.num_cpus or share),
                    num_gpus=float(given.num_gpus),
                    is_given=is_given,
                    node=host.node if has_host else "",
                )
            )
        return found

    def _alike(self, found: Sequence[Placed]) -> list[Placed]:
        """Returns ``found``, changed so that all actors request equal resources.

        Ray decides where actors run. If they requested different amounts, the last
        actor might fit on no host.
        """
        shares = [one for one in found if not self._is_core(one) and not one.is_given]
        least = min((one.num_cpus for one in shares), default=0.0)
        if self._config.launch.grows:
            least = 1.0
        return [
            dataclasses.replace(one, num_cpus=least) if one in shares else one
            for one in found
        ]

    def _is_core(self, one: Placed) -> bool:
        return one.worker.roles != self._acting


def _cut(num_cpus: float) -> float:
    """Rounds down to 1/1000 core, so that requests do not exceed their host's cores."""
    return math.floor(1000 * num_cpus) / 1000
