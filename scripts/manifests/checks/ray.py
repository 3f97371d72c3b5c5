"""Clusters of Ray: replicas, the head, and whether roles find their cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scripts.manifests.checks.sizes import pod_limits
from scripts.manifests.commands import (
    entrypoint_commands,
    is_of_steps,
    parse,
    settings_of,
)
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay

from tengen.errors import UsageError

__all__ = [
    "GAME_ROLES",
    "STEP_ROLES",
    "check_cluster_selector",
    "check_head",
    "check_ray_cores",
    "check_replicas",
    "check_roles",
]

GAME_ROLES = ("selfplay", "learn", "export", "gate", "rate")
"""Processes of a run of games whose roles work at once."""
STEP_ROLES = ("learn", "inference", "actor")
"""Those of a run of environments."""


def check_replicas(overlay: Overlay) -> Iterator[Finding]:
    """Yields groups whose replicas are not between their least and their most."""
    for one, path, spec in _clusters(overlay):
        for index, group in enumerate(spec.get("workerGroupSpecs", ())):
            least, most = group["minReplicas"], group["maxReplicas"]
            count = group.get("replicas", 0)
            where = f"{path}.workerGroupSpecs[{index}]"
            if not 0 <= least <= most:
                rule = f"must be 0 to maxReplicas, {most}; lower it"
                yield overlay.finding(one, f"{where}.minReplicas", least, rule)
            elif not least <= count <= most:
                rule = (
                    f"must be {least} to {most}, minReplicas to maxReplicas; change it"
                )
                yield overlay.finding(one, f"{where}.replicas", count, rule)


def check_head(overlay: Overlay) -> Iterator[Finding]:
    """Yields heads that Ray would start roles on."""
    for one, path, spec in _clusters(overlay):
        params = spec["headGroupSpec"].get("rayStartParams", {})
        if params.get("num-cpus") != "0":
            where = f"{path}.headGroupSpec.rayStartParams.num-cpus"
            rule = 'must be "0", so that no role begins on the head; set it'
            yield overlay.finding(one, where, params.get("num-cpus", "absent"), rule)


def check_ray_cores(overlay: Overlay) -> Iterator[Finding]:
    """Yields groups that tell Ray of more cores than a pod may use."""
    for pod in overlay.pods():
        if pod.ray_params is None:
            continue
        for name in ("num-cpus", "num-gpus"):
            if _count(pod.ray_params.get(name, "0")) is None:
                rule = "must be a whole number in quotes; correct it"
                where = f"{pod.path}, {name} of its group"
                yield pod.finding(where, pod.ray_params[name], rule)
        told = Decimal(_count(pod.ray_params.get("num-cpus", "0")) or 0)
        limit = pod_limits(pod).get("cpu", Decimal(0))
        if told > limit:
            where = f"{pod.path}, num-cpus of its group"
            rule = f"must be at most the pod's limit, {limit}; lower it"
            yield pod.finding(where, told, rule)


def check_cluster_selector(overlay: Overlay) -> Iterator[Finding]:
    """Yields RayJobs for a cluster that is not there, and what KubeRay refuses then."""
    for one in overlay.of_kind("RayJob"):
        selector = one["spec"].get("clusterSelector")
        if selector is None:
            continue
        name = selector.get("ray.io/cluster", "absent")
        path = "spec.clusterSelector"
        if not overlay.has("RayCluster", name):
            rule = "must name a RayCluster of the overlay by ray.io/cluster; correct it"
            yield overlay.finding(one, path, name, rule)
        for field in ("rayClusterSpec", "suspend", "backoffLimit"):
            if one["spec"].get(field):
                rule = "must not be there beside clusterSelector; remove it"
                yield overlay.finding(one, f"spec.{field}", "set", rule)


def check_roles(overlay: Overlay) -> Iterator[Finding]:
    """Yields roles that name no cores, or that may never find those that they name.

    Ray may start roles in any order on any pod that has room. So a role must find room
    in a pod where every role that could be there already is.
    """
    for typed in entrypoint_commands(overlay):
        try:
            args = parse(typed)
        except UsageError:
            continue  # check_commands tells
        if getattr(args, "launch", None) != "ray":
            continue
        roles = _roles(args)
        groups = _groups(overlay, typed.document)
        if not groups:
            continue  # check_cluster_selector tells
        for name, role in roles.items():
            where = f"{typed.path}, launch.roles.{name}"
            if role.num_cpus < 1:
                rule = "must name its cores, or it may begin on the head; --set them"
                yield overlay.finding(
                    typed.document, f"{where}.num_cpus", role.num_cpus, rule
                )
            elif not any(_has_room(name, roles, group) for group in groups):
                rule = (
                    "must find its cores and GPUs in a pod beside the other roles that "
                    "may be there; ask for less, or enlarge a group"
                )
                asked = f"{role.num_cpus} cores, {role.num_gpus} GPUs"
                yield overlay.finding(typed.document, where, asked, rule)
        total = sum(role.num_cpus * role.count for role in roles.values())
        there = sum(group.num_cpus * group.most for group in groups)
        if total > there:
            rule = f"must be at most {there}, what the groups grow to; ask for less"
            where = f"{typed.path}, cores of all roles"
            yield overlay.finding(typed.document, where, total, rule)


@dataclass(frozen=True)
class _Role:
    num_cpus: int
    num_gpus: int
    count: int


@dataclass(frozen=True)
class _Group:
    num_cpus: int
    num_gpus: int
    most: int


def _roles(args: Any) -> dict[str, _Role]:
    settings = settings_of(args)
    found = {}
    for name in STEP_ROLES if is_of_steps(args) else GAME_ROLES:
        cpus, gpus, count = (
            _count(settings.get(f"launch.roles.{name}.{field}", default)) or 0
            for field, default in (("num_cpus", "0"), ("num_gpus", "0"), ("count", "1"))
        )
        if name == "actor" and args.actors is not None:
            count = args.actors
        found[name] = _Role(cpus, gpus, count)
    return found


def _groups(overlay: Overlay, job: Mapping[str, Any]) -> list[_Group]:
    wanted = job["spec"].get("clusterSelector", {}).get("ray.io/cluster")
    name = wanted or job["metadata"]["name"]
    found = []
    for pod in overlay.pods():
        if pod.ray_params is None or pod.group == "head":
            continue
        if pod.document["metadata"]["name"] == name:
            cpus, gpus = (
                _count(pod.ray_params.get(word, "0")) or 0
                for word in ("num-cpus", "num-gpus")
            )
            found.append(_Group(cpus, gpus, pod.max_replicas))
    return found


def _count(text: str) -> int | None:
    """Returns the whole number that a text is; None where it is none."""
    return int(text) if text.isdecimal() else None


def _has_room(name: str, roles: Mapping[str, _Role], group: _Group) -> bool:
    """Returns whether a role finds room in a pod of a group whoever came before."""
    role = roles[name]
    others = [
        one
        for other, one in roles.items()
        # Actors begin after the others; among them the total counts.
        if name != "actor" and other not in (name, "actor") and _fits([one], group)
    ]
    return _fits([role, *others], group)


def _fits(roles: Sequence[_Role], group: _Group) -> bool:
    cpus = sum(one.num_cpus for one in roles)
    gpus = sum(one.num_gpus for one in roles)
    return cpus <= group.num_cpus and gpus <= group.num_gpus


def _clusters(
    overlay: Overlay,
) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for one in overlay.of_kind("RayCluster"):
        yield one, "spec", one["spec"]
    for one in overlay.of_kind("RayJob"):
        if "rayClusterSpec" in one["spec"]:
            yield one, "spec.rayClusterSpec", one["spec"]["rayClusterSpec"]
