"""Clusters of Ray: replicas, the head, and whether roles find their cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from scripts.manifests.checks.sizes import pod_limits
from scripts.manifests.commands import config_of, parsed_commands
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

from tengen.errors import UsageError
from tengen.launch.cluster.nodes import Node, check_gpus
from tengen.launch.cluster.table import check_fits, table_of

__all__ = [
    "check_cluster_selector",
    "check_head",
    "check_ray_cores",
    "check_replicas",
    "check_roles",
    "nodes_of_pods",
]


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
    """Yields commands whose roles the cluster has no room for, as tengen counts it.

    tengen refuses what does not fit the pods of the start. By ``launch.grows`` it waits
    for those that may come, which a cluster that does not scale itself never adds.
    """
    for typed, args in parsed_commands(overlay):
        config = config_of(typed)
        if config is None or args.launch != "ray":
            continue
        cluster, pods = _cluster_of(overlay, typed.document)
        if not pods:
            continue  # check_cluster_selector tells
        grows = config.launch.grows
        if grows and not cluster.get("enableInTreeAutoscaling"):
            rule = (
                "must be left out where the cluster does not scale itself, as tengen "
                "would wait for ever; remove it, or set enableInTreeAutoscaling"
            )
            where = f"{typed.path}, launch.grows"
            yield overlay.finding(typed.document, where, "true", rule)
        nodes = nodes_of_pods(pods, most=grows)
        table = table_of(config, nodes)
        try:
            check_gpus(config, nodes)
            check_fits(config, table, nodes)
        except UsageError as error:
            when = "that there may be" if grows else "of its start"
            shown = f"{len(table)} processes on {len(nodes)} pods"
            rule = f"must fit the pods {when}: {error}"
            where = f"{typed.path}, its roles"
            yield overlay.finding(typed.document, where, shown, rule)


def _cluster_of(
    overlay: Overlay, job: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[Pod]]:
    """Returns the spec of the cluster that a job runs on, and its pods."""
    wanted = job["spec"].get("clusterSelector", {}).get("ray.io/cluster")
    name = wanted or job["metadata"]["name"]
    for one, _, spec in _clusters(overlay):
        if one["metadata"]["name"] == name:
            pods = [pod for pod in overlay.pods() if pod.document is one]
            return spec, [pod for pod in pods if pod.ray_params is not None]
    return {}, []


def nodes_of_pods(pods: Sequence[Pod], *, most: bool) -> list[Node]:
    """Returns what Ray would list of a cluster's pods, the largest first."""
    nodes = []
    for pod in pods:
        params = pod.ray_params or {}
        cpus, gpus = (
            float(_count(params.get(word, "0")) or 0)
            for word in ("num-cpus", "num-gpus")
        )
        for index in range(pod.max_replicas if most else pod.replicas):
            name = f"{pod.group}-{index}"
            nodes.append(Node(node=name, host=name, num_cpus=cpus, num_gpus=gpus))
    return sorted(nodes, key=lambda node: (-node.num_cpus, node.node))


def _count(text: str) -> int | None:
    """Returns the whole number that a text is; None where it is none."""
    return int(text) if text.isdecimal() else None


def _clusters(
    overlay: Overlay,
) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for one in overlay.of_kind("RayCluster"):
        yield one, "spec", one["spec"]
    for one in overlay.of_kind("RayJob"):
        if "rayClusterSpec" in one["spec"]:
            yield one, "spec.rayClusterSpec", one["spec"]["rayClusterSpec"]
