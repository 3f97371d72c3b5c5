"""The Ray launcher: every role at once, each beside an actor of a Ray cluster.

An actor holds one role process, started as by the local launcher, and passes messages
to and from it. So roles have their own process environment, log into the run, and end
with the actor. A host needs tengen, installed or at the same path. A host with the run
directory under the same path works in it. Another host plays or steps environments on a
mirror of the run (``tengen.mirror``), which needs ``launch.listen``.

Ray places the processes. Roles that learn, serve and judge ask for one placement group,
so that either all of them have room or none begins. Acting processes ask one by one:
self-play for the host whose share it has, actors for any host. When a host is lost, its
processes are started again elsewhere. The closing role begins once all others have
ended, and has what they had; if only one host has the run directory, it is on that
host.

Source: Ray 2, "Actors" (concurrency groups of threaded actors, fault tolerance),
"Resources", "Scheduling" and "Placement Groups" of its documentation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import uuid
from collections.abc import Sequence
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

from tengen import __version__
from tengen.errors import DiskFullError, RunError, UsageError
from tengen.launch.at_once import run_at_once
from tengen.launch.at_once.workers import Worker
from tengen.launch.budget import Budget
from tengen.launch.cluster.child import RayChild
from tengen.launch.cluster.closing import closing, closing_at_home
from tengen.launch.cluster.connection import connect, disconnect, first_line
from tengen.launch.cluster.nodes import Node, check_gpus, nodes_of
from tengen.launch.cluster.table import (
    Asked,
    check_fits,
    filled,
    is_together,
    table_of,
)
from tengen.launch.cluster.travelling import (
    FOLDER,
    holder_class,
    probe_function,
    search_path,
)
from tengen.launch.process import RoleProcess, child_arguments
from tengen.launch.protocol import log_name
from tengen.launch.reports.journal import RunJournal
from tengen.mirror import MIRROR_ROLES
from tengen.observe import HostsLog, Place
from tengen.roles import (
    TOKEN_VARIABLE,
    RoleResources,
    RunConfig,
    StopListener,
    connect_to,
)
from tengen.run import RunDirectory, run_identity, run_token

__all__ = ["RayLauncher", "fit_cluster", "run_ray"]

_PROBE_S = 600.0
_PIN = 0.001
"""The amount asked of a host's own resource, of which the host has 1."""


def fit_cluster(config: RunConfig, *, keeps_count: bool) -> RunConfig:
    """Connects to the cluster, and makes sure that the roles fit it.

    Args:
        config: The run's.
        keeps_count: Whether the user gave the number of acting processes; else
            self-play has one for each host.

    Returns:
        The config, with the number of acting processes.

    Raises:
        UsageError: There is no such cluster, a host has another tengen, no host has
            what a role asks for, or no host has a device of the config.
    """
    connect(config)
    nodes = nodes_of(ray.nodes())
    check_gpus(config, nodes)
    if not keeps_count:
        config = filled(config, nodes)
    if not config.launch.grows:
        check_fits(config, table_of(config, nodes), nodes)
    _check_versions(_probe(nodes, "", ""))
    return config


def run_ray(
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains by actors of a Ray cluster; see ``run_at_once``.

    Args:
        config: The run's.
        run: The run.
        budget: Of this call.
        journal: Takes every report.
        stop: Ends the turns.
        num_threads: Without effect: processes have their part of the cluster's hosts.

    Raises:
        UsageError: As ``fit_cluster``, or a host has neither the run directory nor an
            address of it.
        RunError: A role failed or died again and again.
    """
    fit_cluster(config, keeps_count=True)
    try:
        nodes = nodes_of(ray.nodes())
        launcher = RayLauncher(config, run, nodes)
        try:
            run_at_once(
                launcher,
                config,
                run,
                budget,
                journal,
                stop,
                num_threads=_num_threads(nodes),
                closing=launcher.closing,
            )
        finally:
            launcher.close()
    finally:
        disconnect()


class RayLauncher:
    """Starts actors of the cluster that this process is connected to; see ``Launcher``.

    Args:
        config: The run's.
        run: The run.
        nodes: The cluster's hosts.

    Raises:
        UsageError: A host lacks the run directory, and ``launch.listen`` is not set; or
            the only host with the run directory lacks what the run needs.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, nodes: Sequence[Node]
    ) -> None:
        self._config = config
        self._run = run
        self._nodes = nodes
        self._marker, self._text = _marker(run)
        lacking = [
            found["host"]
            for found in _probe(nodes, self._marker, self._text)
            if not found["has_run"]
        ]
        # If no host needs a mirror, the certificate need not be on this host.
        self._connect = connect_to(config.launch) if lacking else None
        if lacking and self._connect is None:
            raise UsageError(
                f"run ({run.path}) is not on host {lacking[0]}; put it on a filesystem "
                f"that all hosts have, or set launch.listen=HOST:PORT"
            )
        schedule = config.schedule
        hosts = {node.host for node in nodes if node.num_cpus > 0}
        if schedule.serving and len(hosts) > 1 and not config.launch.listen:
            raise UsageError(
                f"launch.listen (none) must say where actors of {len(hosts)} hosts "
                f"find inference and the learner; set launch.listen=0.0.0.0:PORT, with "
                f"launch.certificate_file and launch.key_file"
            )
        self._actor_class = holder_class(ray)
        # If some hosts lack the run, its files are only on this host.
        home = ray.get_runtime_context().get_node_id() if lacking else ""
        self._home = home
        table = table_of(config, nodes, home)
        # The closing role's process, if it must be on this host; else ``closing`` finds
        # the processes by those that worked.
        self._closing: list[Asked] = []
        if home:
            check_fits(config, table, nodes, home)
            if schedule.closing:
                self._closing = [closing_at_home(config, table, nodes, home)]
        self._table = {(one.worker.roles, one.worker.index): one for one in table}
        acting = (schedule.acting,)
        self._core = [key for key in self._table if key[0] != acting]
        process = run.lock_holder("train") or ""
        self._telling = threading.Lock()
        self._hosts = HostsLog(run, uuid.uuid4().hex, process, ())
        strategy = "STRICT_PACK" if home or is_together(config) else "PACK"
        self._group = placement_group(self._bundles(home), strategy=strategy)

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> RoleProcess:
        """See ``Launcher.start``; the table says how many threads a process has.

        The actor begins with its first turn.
        """
        asked = self._asked(roles, index)
        num_threads = asked.worker.num_threads
        arguments = self._arguments(roles, num_threads, index)
        options = self._options(asked, (roles, index))

        def tell(node: str, host: str) -> None:
            place = Place(
                place=f"node {node[:8]}",
                host=host,
                name=asked.worker.name,
                roles=roles,
                num_threads=num_threads,
            )
            with self._telling, contextlib.suppress(DiskFullError):
                self._hosts.moved(place)

        def start() -> RayChild:
            return RayChild(options.remote(*arguments), tell)

        logs = f"{self._run.logs / log_name(roles, index)} and Ray's logs"
        return RoleProcess(roles, start, logs)

    def closing(self, before: Sequence[Worker]) -> list[Worker]:
        """Returns the processes of the closing role, and makes room for them.

        Args:
            before: The processes that worked, which have ended.
        """
        self._give_back()
        if not self._home:
            asked = [self._asked(one.roles, one.index) for one in before]
            self._closing = closing(self._config, asked)
        return [one.worker for one in self._closing]

    def close(self) -> None:
        """Gives back what the cluster reserves for the run."""
        self._hosts.close()
        self._give_back()

    def _give_back(self) -> None:
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(self._group)

    def _options(self, asked: Asked, key: tuple[tuple[str, ...], int]) -> Any:
        strategy: Any = "SPREAD"
        if key in self._core:
            strategy = PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=self._core.index(key)
            )
        elif asked.node:
            # If that host is lost any other one will do, unless only that host has the
            # files.
            soft = not asked.is_bound
            strategy = NodeAffinitySchedulingStrategy(asked.node, soft=soft)
        return self._actor_class.options(
            num_cpus=asked.num_cpus,
            num_gpus=asked.num_gpus,
            scheduling_strategy=strategy,
            # Restarts are done here, because a turn must be redone, not a call.
            max_restarts=0,
        )

    def _asked(self, roles: tuple[str, ...], index: int) -> Asked:
        if roles == (self._config.schedule.closing,):
            return self._closing[index]
        found = self._table.get((roles, index))
        if found is not None:
            return found
        # A process added by ``tengen scale`` asks for what the first of its role does,
        # on any host.
        first = self._table[roles, 0]
        name = f"{roles[0]}-{index}"
        worker = dataclasses.replace(first.worker, name=name, index=index)
        return dataclasses.replace(first, worker=worker, node="")

    def _bundles(self, home: str) -> list[dict[str, float]]:
        """Returns what the core asks for, one bundle of the group a process."""
        resource = [node.resource for node in self._nodes if node.node == home]
        pinned = dict.fromkeys(resource, _PIN)
        return [
            {"CPU": one.num_cpus, **({"GPU": one.num_gpus} if one.num_gpus else {})}
            | pinned
            for one in (self._table[key] for key in self._core)
        ]

    def _arguments(self, roles: tuple[str, ...], num_threads: int, index: int) -> Any:
        run, task = self._run, self._config.task
        near = child_arguments(run, roles, num_threads, task, index, at_once=True)
        far: list[str] = []
        far_env: dict[str, str] = {}
        if self._connect is not None and roles[0] in MIRROR_ROLES:
            far = child_arguments(
                run,
                roles,
                num_threads,
                task,
                index,
                at_once=True,
                connect=self._connect,
                folder=FOLDER,
            )
            name = f"tengen-{os.getuid()}-{run_identity(run)}-{roles[0]}-{index}"
            far_env = {FOLDER: name, TOKEN_VARIABLE: run_token(run)}
        paths = search_path()
        return (paths, os.getcwd(), self._marker, self._text, near, far, far_env)


def _num_threads(nodes: Sequence[Node]) -> int:
    """Returns the cores of the largest host, which the processes of a host divide."""
    return max(1, int(nodes[0].num_cpus)) if nodes else 1


def _marker(run: RunDirectory) -> tuple[str, str]:
    """Returns a file that only hosts with this run have, and its content."""
    text = run_identity(run)
    (path,) = [
        path for path in run.endpoints.glob("id-*") if path.read_text().strip() == text
    ]
    return str(path.absolute()), text


def _probe(nodes: Sequence[Node], marker: str, text: str) -> list[dict[str, str]]:
    """Returns each host's report of itself; see ``probe_function``.

    Raises:
        RunError: A host does not answer.
    """
    probe = ray.remote(num_cpus=0, max_retries=0)(probe_function())
    asked = [
        probe.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.node, soft=False)
        ).remote(search_path(), marker, text)
        for node in nodes
    ]
    try:
        found: list[dict[str, str]] = ray.get(asked, timeout=_PROBE_S)
    except ray.exceptions.RayError as error:
        raise RunError(
            f"cluster (of {len(nodes)} hosts) does not answer, {first_line(error)}; "
            f"see ray status"
        ) from error
    return found


def _check_versions(found: Sequence[dict[str, str]]) -> None:
    for one in found:
        if one["error"]:
            raise UsageError(
                f"host ({one['host']}) cannot import tengen by Python "
                f"{one['python']}: {one['error']}; install it there, or name its "
                f"folder in PYTHONPATH"
            )
        if one["tengen"] != __version__:
            raise UsageError(
                f"host ({one['host']}) has tengen {one['tengen']} and must have "
                f"{__version__}, as the host that starts the run; install the same"
            )
