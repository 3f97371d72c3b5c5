"""The Ray launcher, which starts all roles concurrently on the hosts of a Ray cluster.

Each Ray actor starts one role process, which joins the runner, and waits for its exit.
So each role has its own process environment, and writes its logs to the run. Each host
needs tengen, installed or at the same path. If a host has the run directory under the
same path, its processes work there. Other hosts can run self-play and environment
actors on a mirror (``tengen.remote``), which needs ``launch.listen``.

Ray places the processes. All non-acting roles share one placement group, so that either
all of them start or none. Acting processes are placed individually. Self-play prefers
the host for which it was planned, and actors run on any host. If a host is lost, its
processes are restarted on other hosts. A match after training uses the cores and GPUs
of acting processes and learners.

Source: Ray 2 documentation, "Actors" (concurrency groups of threaded actors, fault
tolerance), "Resources", "Scheduling" and "Placement Groups".
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray.util import get_node_ip_address
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import (
    NodeAffinitySchedulingStrategy,
    PlacementGroupSchedulingStrategy,
)

from tengen import __version__
from tengen.errors import DiskFullError, RunError, UsageError
from tengen.launch.cluster.connection import connect, disconnect, first_line
from tengen.launch.cluster.table import (
    Node,
    check_fits,
    check_gpus,
    filled,
    is_together,
    nodes_of,
    table_of,
)
from tengen.launch.cluster.travelling import holder_class, probe_function, search_path
from tengen.launch.launcher import (
    Command,
    Handle,
    Launcher,
    Placed,
    Poll,
    TrainingCall,
    match_places,
)
from tengen.launch.local import LocalLauncher, ended_by
from tengen.launch.messages import Begun
from tengen.launch.wire import Hub
from tengen.launch.workers import EVAL, Worker
from tengen.observe import HostsLog
from tengen.roles import RunConfig
from tengen.roles.doors import connect_to
from tengen.run import RunDirectory, run_identity

_PROBE_S = 600.0
_PIN = 0.001
"""The amount to request of the resource ``Node.resource``, of which a host has 1."""


class RayLauncher(Launcher):
    """A launcher that starts processes with Ray actors on the hosts of a cluster.

    Args:
        config: The run's config.
        run: The run.
        nodes: The cluster's hosts.

    Raises:
        UsageError: A host lacks the run directory and ``launch.listen`` is not set, or
            the only host with the run directory lacks resources that the run needs.
    """

    package = "ray"
    waits_for_lock = True
    logs = " and Ray's logs"

    def __init__(
        self, config: RunConfig, run: RunDirectory, nodes: Sequence[Node]
    ) -> None:
        # The number of cores of the largest host, which is first in ``nodes``.
        self.num_cores = max(1, int(nodes[0].num_cpus)) if nodes else 1
        self._config = config
        self._run = run
        marker, text = _marker(run)
        lacking = [
            found["host"]
            for found in _probe(nodes, marker, text)
            if not found["has_run"]
        ]
        # Read the certificate only if a host needs a mirror.
        self.connect = connect_to(config.launch) if lacking else None
        if lacking and self.connect is None:
            raise UsageError(
                f"run ({run.path}) is missing on host {lacking[0]}; put it on a "
                "filesystem that all hosts have, or set launch.listen=HOST:PORT"
            )
        schedule = config.schedule
        hosts = {node.host for node in nodes if node.num_cpus > 0}
        if schedule.serving and len(hosts) > 1 and not config.launch.listen:
            raise UsageError(
                f"launch.listen (none) must be set for actors of {len(hosts)} hosts to "
                "reach inference and the learner; set launch.listen=0.0.0.0:PORT, with "
                "launch.certificate_file and launch.key_file"
            )
        self._actor_class = holder_class(ray)
        # If some hosts lack the run directory, assume that only this host has it.
        home = ray.get_runtime_context().get_node_id() if lacking else ""
        self._home = home
        table = table_of(config, nodes, home)
        if home:
            check_fits(config, table, nodes, home)
        self._table = {(one.worker.roles, one.worker.index): one for one in table}
        acting = (schedule.acting,)
        self._core = [key for key in self._table if key[0] != acting]
        process = run.lock_holder("train") or ""
        self._telling = threading.Lock()
        self._hosts = HostsLog(run, uuid.uuid4().hex, process, ())
        strategy = "STRICT_PACK" if home or is_together(config) else "PACK"
        pinned = [node.resource for node in nodes if node.node == home]
        self._group = placement_group(self._bundles(pinned), strategy=strategy)

    @classmethod
    def fit(cls, config: RunConfig, *, keeps_count: bool) -> RunConfig:
        """Connects to the cluster; see ``Launcher.fit``.

        Raises:
            UsageError: The cluster cannot be reached, a host has a different version of
                tengen, or no host has the resources or GPUs that a role requests.
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

    @classmethod
    @contextlib.contextmanager
    def open(cls, call: TrainingCall) -> Iterator[tuple[Launcher, Hub]]:
        """See ``Launcher.open``."""
        cls.fit(call.config, keeps_count=True)
        with contextlib.ExitStack() as ending:
            ending.callback(disconnect)
            launcher = cls(call.config, call.run, nodes_of(ray.nodes()))
            ending.callback(launcher.close)
            hub = Hub.on_network([get_node_ip_address()])
            ending.callback(hub.close)
            yield launcher, hub

    def start(self, command: Command, placed: Placed) -> Handle:
        """See ``Launcher.start``."""
        if self._home and placed.worker.roles == (EVAL,):
            return LocalLauncher().start(command, placed)
        key = (placed.worker.roles, placed.worker.index)
        strategy: Any = "SPREAD"
        if key in self._core:
            strategy = PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=self._core.index(key)
            )
        elif placed.node:
            # soft=True allows Ray to use another host if this host is lost.
            strategy = NodeAffinitySchedulingStrategy(placed.node, soft=True)
        options = self._actor_class.options(
            num_cpus=placed.num_cpus,
            num_gpus=placed.num_gpus,
            scheduling_strategy=strategy,
            # Ray must not restart processes. RoleProcess does, and repeats their turns.
            max_restarts=0,
        )
        paths, folder = search_path(), os.getcwd()
        return RayActor(
            options.remote(paths, folder, command.words, command.environment)
        )

    def close(self) -> None:
        """Releases the resources that the cluster reserves for the run."""
        self._hosts.close()
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(self._group)

    def for_match(self, config: RunConfig, num_threads: int) -> Sequence[Placed]:
        """See ``Launcher.for_match``. Only hosts with the run directory are used."""
        with contextlib.suppress(ray.exceptions.RayError):
            remove_placement_group(self._group)  # the group's processes have ended
        if self._home:
            return super().for_match(config, num_threads)
        return match_places(config, self._table.values())

    def begun(self, worker: Worker, begun: Begun) -> None:
        """See ``Launcher.begun``."""
        with self._telling, contextlib.suppress(DiskFullError):
            self._hosts.moved(worker.row(begun.place, begun.host))

    def placed(self, worker: Worker) -> Placed:
        """See ``Launcher.placed``."""
        found = self._table.get((worker.roles, worker.index))
        if found is not None:
            return found
        # A process that ``tengen scale`` added requests the same resources as process 0
        # of its role, on any host.
        first = self._table[worker.roles, 0]
        name = f"{worker.roles[0]}-{worker.index}"
        there = dataclasses.replace(first.worker, name=name, index=worker.index)
        return dataclasses.replace(first, worker=there, node="")

    def _bundles(self, resource: Sequence[str]) -> list[dict[str, float]]:
        """Returns the placement group's bundles, one per non-acting process."""
        pinned = dict.fromkeys(resource, _PIN)
        return [
            {"CPU": one.num_cpus, **({"GPU": one.num_gpus} if one.num_gpus else {})}
            | pinned
            for one in (self._table[key] for key in self._core)
        ]


class RayActor:
    """The ``Handle`` of a process that a Ray actor started.

    Args:
        actor: The handle of the Ray actor.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._begun = actor.begun.remote()
        self._code = actor.wait.remote()
        self._end = ""

    def poll(self) -> Poll:
        """See ``Handle.poll``."""
        if not self._end and not _is_there(self._begun):
            return Poll(has_room=False)
        if not self._end and _is_there(self._code):
            try:
                self._end = ended_by(ray.get(self._code))
            except ray.exceptions.RayError as error:
                self._end = f"its actor's {type(error).__name__}"
            ray.kill(self._actor)
        return Poll(end=self._end)

    def kill(self) -> None:
        """See ``Handle.kill``."""
        if _is_there(self._begun):
            self._actor.kill.remote()
        else:
            ray.kill(self._actor)


def _is_there(ref: Any) -> bool:
    """Returns whether a Ray call has completed or failed. Does not block."""
    done, _ = ray.wait([ref], timeout=0)
    return bool(done)


def _marker(run: RunDirectory) -> tuple[str, str]:
    """Returns the path of a file that identifies this run, and the file's content."""
    text = run_identity(run)
    (path,) = [
        path for path in run.endpoints.glob("id-*") if path.read_text().strip() == text
    ]
    return str(path.absolute()), text


def _probe(nodes: Sequence[Node], marker: str, text: str) -> list[dict[str, str]]:
    """Returns the reports of ``probe_function`` on all hosts.

    Raises:
        RunError: A host does not respond.
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
            "check it with ray status"
        ) from error
    return found


def _check_versions(found: Sequence[dict[str, str]]) -> None:
    for one in found:
        if one["error"]:
            raise UsageError(
                f"host ({one['host']}) cannot import tengen with Python "
                f"{one['python']}: {one['error']}; install it there, or add its folder "
                "to PYTHONPATH"
            )
        if one["tengen"] != __version__:
            raise UsageError(
                f"host ({one['host']}) has tengen {one['tengen']} and must have "
                f"{__version__}, as on the host that starts the run; install that"
            )
