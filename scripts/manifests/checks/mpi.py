"""MPIJobs: what their operator refuses, and whether ranks have what their roles need.

Source: Kubeflow's MPI operator 0.8, its validation of an MPIJob, and what it makes of
one: a hostfile with a line a worker, NAME-worker-0 first, a Service of the job's name
without an address of its own, and the key of the job in every pod. Volcano 1.15, plugin
gang: no pod is placed before as many as minAvailable are there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.manifests.checks.commands import is_on_claim
from scripts.manifests.checks.ports import has_secret_file
from scripts.manifests.checks.sizes import pod_limits
from scripts.manifests.commands import Typed, config_of, parsed_commands
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod, pods_of

from tengen.errors import UsageError
from tengen.launch.launcher import Placed
from tengen.launch.ranks.table import RankInfo, filled, place
from tengen.roles import RunConfig

__all__ = [
    "check_mpi_ends",
    "check_mpi_listener",
    "check_mpi_logs",
    "check_mpi_mpirun",
    "check_mpi_policies",
    "check_mpi_replicas",
    "check_mpi_roles",
    "check_mpi_sizes",
    "check_mpi_target",
    "planned",
]

_MOST_LABEL = 63
_ENDS = (
    *("activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
    "cleanPodPolicy",
)
_GPU = "nvidia.com/gpu"
_LOGS = "LOGS_FOLDER"
_NEEDED = ("--bind-to", "none"), ("--map-by", "slot")
"""Roles have all cores of their pod; ranks are counted from worker 0."""


@dataclass(frozen=True)
class _Job:
    """An MPIJob, and what its launcher runs."""

    document: Mapping[str, Any]
    launcher: Pod
    worker: Pod

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document["spec"]
        return found

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def args(self) -> list[str]:
        return [str(word) for word in self.launcher.spec["containers"][0]["args"]]

    @property
    def num_ranks(self) -> int:
        """Those of mpirun; 0 where it does not say."""
        found = _after(self.args, "-n")
        return int(found) if found.isdecimal() else 0

    def finding(self, path: str, value: Any, rule: str) -> Finding:
        return self.launcher.finding(path, value, rule)


def check_mpi_replicas(overlay: Overlay) -> Iterator[Finding]:
    """Yields launchers and workers whose number or name the operator refuses."""
    for job in _jobs(overlay):
        if job.launcher.replicas != 1:
            where = "spec.mpiReplicaSpecs.Launcher.replicas"
            yield job.finding(where, job.launcher.replicas, "must be 1; set it")
        last = f"{job.name}-worker-{job.worker.replicas - 1}"
        if len(last) > _MOST_LABEL:
            rule = (
                f"must have {_MOST_LABEL} characters at most with a worker's ending, "
                f"{last}; shorten it"
            )
            yield job.finding("metadata.name", job.name, rule)
        for pod in (job.launcher, job.worker):
            if "restartPolicy" in pod.spec:
                where = f"{pod.path}.spec.restartPolicy"
                rule = "must be the replica's, which the operator puts there; move it"
                yield job.finding(where, pod.spec["restartPolicy"], rule)


def check_mpi_ends(overlay: Overlay) -> Iterator[Finding]:
    """Yields MPIJobs without an end, or whose pods stay or go without a trace."""
    for job in _jobs(overlay):
        policy = job.spec["runPolicy"]
        for name in _ENDS:
            if name not in policy:
                where = f"spec.runPolicy.{name}"
                yield job.finding(where, "absent", "must be there; add it")
        if policy.get("cleanPodPolicy", "Running") != "Running":
            rule = (
                "must be Running: workers would keep their GPUs, or the log of one "
                "that failed would go; set it"
            )
            where = "spec.runPolicy.cleanPodPolicy"
            yield job.finding(where, policy["cleanPodPolicy"], rule)
        wanted = {"Launcher": "Never", "Worker": "OnFailure"}
        why = {
            "Launcher": "as a container that is started again loses its log",
            "Worker": "as the operator makes no pod again that failed",
        }
        for name, value in wanted.items():
            found = job.spec["mpiReplicaSpecs"][name]["restartPolicy"]
            if found != value:
                where = f"spec.mpiReplicaSpecs.{name}.restartPolicy"
                yield job.finding(where, found, f"must be {value}, {why[name]}; set it")


def check_mpi_policies(overlay: Overlay) -> Iterator[Finding]:
    """Yields MPIJobs that a queue would begin in part, never, or not look at."""
    has_queue = any(overlay.of_kind("Queue"))
    for job in _jobs(overlay):
        policy = job.spec["runPolicy"].get("schedulingPolicy", {})
        wanted = job.worker.replicas + 1
        least = policy.get("minAvailable", wanted)
        if least != wanted:
            where = "spec.runPolicy.schedulingPolicy.minAvailable"
            rule = f"must be {wanted}, the workers and the launcher; correct it"
            yield job.finding(where, least, rule)
        found = job.spec.get("launcherCreationPolicy", "AtStartup")
        if has_queue and found != "AtStartup":
            rule = (
                "must be AtStartup in a queue of Volcano, as workers wait there until "
                "the launcher's pod is there; set it"
            )
            yield job.finding("spec.launcherCreationPolicy", found, rule)
        if not has_queue and found != "WaitForWorkersReady":
            rule = "must be WaitForWorkersReady, so that no try is lost; set it"
            yield job.finding("spec.launcherCreationPolicy", found, rule)
        if "suspend" in job.spec["runPolicy"]:
            rule = (
                "must be absent: Kueue sets it, and a manifest that has it stops a job "
                "that runs when it is applied again; remove it"
            )
            suspend = job.spec["runPolicy"]["suspend"]
            yield job.finding("spec.runPolicy.suspend", suspend, rule)


def check_mpi_sizes(overlay: Overlay) -> Iterator[Finding]:
    """Yields workers that ask for less than they may use, or for no GPU."""
    for job in _jobs(overlay):
        for index, container in enumerate(job.worker.spec["containers"]):
            resources = container.get("resources", {})
            path = f"{job.worker.path}.spec.containers[{index}].resources"
            asked, most = resources.get("requests", {}), resources.get("limits", {})
            if asked != most:
                rule = "must be the limits, as one rank alone holds all others up"
                yield job.finding(f"{path}.requests", asked, f"{rule}; set them equal")
        devices = _after(job.args, "--devices")
        num_gpus = pod_limits(job.worker).get(_GPU, 0)
        if devices.startswith("cuda") and not num_gpus:
            rule = f"must have a GPU, as --devices is {devices}; add it to the limits"
            yield job.finding(f"{job.worker.path}, limits of {_GPU}", num_gpus, rule)
        if num_gpus and not devices.startswith("cuda"):
            where = f"{job.launcher.path}.spec.containers[0], --devices"
            rule = "must be cuda:0, as workers have GPUs that would be idle; set it"
            yield job.finding(where, devices, rule)


def check_mpi_mpirun(overlay: Overlay) -> Iterator[Finding]:
    """Yields launchers whose mpirun has no room, or puts ranks elsewhere than said."""
    for job in _jobs(overlay):
        where = f"{job.launcher.path}.spec.containers[0], its mpirun"
        room = job.spec["slotsPerWorker"] * job.worker.replicas
        if job.num_ranks != room:
            rule = (
                f"must be {room}, the slots of all workers, so that none of them is "
                f"idle; correct it"
            )
            yield job.finding(f"{where}, -n", _after(job.args, "-n"), rule)
        for name, value in _NEEDED:
            found = _after(job.args, name)
            if found != value:
                rule = f"must be {value}, so that roles are where tengen puts them"
                yield job.finding(f"{where}, {name}", found, f"{rule}; set it")
        for word in ("--oversubscribe", "--allow-run-as-root", "--enable-recovery"):
            if word in job.args:
                rule = "must not be there: it hides what is wrong; remove it"
                yield job.finding(where, word, rule)


def check_mpi_logs(overlay: Overlay) -> Iterator[Finding]:
    """Yields launchers that keep what ranks print nowhere, or in their own container.

    launcher.sh ends at once without the variable.
    """
    for job in _jobs(overlay):
        container = job.launcher.spec["containers"][0]
        named = {one["name"]: one.get("value") for one in container.get("env", ())}
        folder = str(named.get(_LOGS, "absent"))
        if not is_on_claim(job.launcher, folder):
            where = f"{job.launcher.path}.spec.containers[0].env, {_LOGS}"
            rule = "must be below a claim that its pod mounts for writing; set it"
            yield job.finding(where, folder, rule)


def check_mpi_roles(overlay: Overlay) -> Iterator[Finding]:
    """Yields commands whose roles the ranks do not fit, by tengen's own table.

    Where workers have GPUs, learners must be on different ones and away from those that
    play.
    """
    for job, typed, config in _trained(overlay):
        where = f"{typed.path}, its roles"
        shown = f"{job.num_ranks} ranks"
        try:
            table = planned(job.document, config)
        except UsageError as error:
            yield job.finding(where, shown, f"must fit the workers: {error}")
            continue
        busy = [one for one in table if one.worker.given_as in ("learn", "selfplay")]
        hosts = [one.host for one in busy]
        for one in busy:
            if hosts.count(one.host) > 1 and pod_limits(job.worker).get(_GPU):
                names = [each.worker.name for each in busy if each.host == one.host]
                rule = (
                    f"must have a GPU each, and {', '.join(names)} share that of "
                    f"{one.host}; change -n, or launch.roles.learn.num_cpus"
                )
                yield job.finding(where, shown, rule)
                break


def check_mpi_target(overlay: Overlay) -> Iterator[Finding]:
    """Yields runs that train a number of models and then evaluate none of them."""
    for job, typed, config in _trained(overlay):
        if config.agent.iterations and not config.agent.target.opponent:
            rule = "must be there, or no model is evaluated; set agent.target.opponent"
            yield job.finding(f"{typed.path}, its target", "absent", rule)


def check_mpi_listener(overlay: Overlay) -> Iterator[Finding]:
    """Yields learners that others do not reach, or without a certificate there."""
    for job, typed, config in _trained(overlay):
        launch = config.launch
        if not launch.listen:
            continue
        try:
            table = planned(job.document, config)
        except UsageError:
            continue  # check_mpi_roles tells
        (home,) = [one.host for one in table if "learn" in one.worker.roles]
        host = launch.listen.rpartition(":")[0]
        if host != f"{home}.{job.name}":
            rule = (
                f"must have the name of the learner's pod, {home}.{job.name}; correct"
                f" it"
            )
            yield job.finding(f"{typed.path}, launch.listen", launch.listen, rule)
        for name in ("certificate_file", "key_file"):
            file = getattr(launch, name) or "absent"
            if not has_secret_file(job.worker, file):
                rule = "must be in a secret that the workers mount; mount it"
                yield job.finding(f"{typed.path}, launch.{name}", file, rule)


def planned(job: Mapping[str, Any], config: RunConfig) -> list[Placed]:
    """Returns which rank of an MPIJob has which role, by tengen's own table.

    The hosts stand in for the workers: each has the cores and GPUs of its limits.

    Args:
        job: The object.
        config: Of the run that its launcher trains.

    Raises:
        UsageError: The roles need other ranks.
    """
    found = _of(job)
    limits = pod_limits(found.worker)
    slots = found.spec["slotsPerWorker"]
    devices = tuple(str(index) for index in range(int(limits.get(_GPU, 0))))
    ranks = [
        RankInfo(
            rank=rank,
            host=f"{found.name}-worker-{rank // slots}",
            cores=int(limits.get("cpu", 1)),
            devices=devices,
        )
        for rank in range(found.num_ranks)
    ]
    if not ranks:
        raise UsageError("ranks (0) must be 1 at least; give mpirun -n")
    if not config.launch.roles.get("selfplay"):
        config = filled(config, ranks)
    return place(config, ranks)


def _jobs(overlay: Overlay) -> Iterator[_Job]:
    for one in overlay.of_kind("MPIJob"):
        yield _of(one)


def _of(document: Mapping[str, Any]) -> _Job:
    pods = {pod.replica: pod for pod in pods_of(document)}
    return _Job(document, pods["Launcher"], pods["Worker"])


def _trained(overlay: Overlay) -> Iterator[tuple[_Job, Typed, RunConfig]]:
    for typed, args in parsed_commands(overlay):
        config = config_of(typed)
        is_mpi = typed.document["kind"] == "MPIJob" and args.launch == "mpi"
        if is_mpi and config is not None:
            yield _of(typed.document), typed, config


def _after(words: list[str], name: str) -> str:
    """Returns what follows a word; ``absent`` where it is not there."""
    for word, value in itertools.pairwise(words):
        if word == name:
            return value
    return "absent"
