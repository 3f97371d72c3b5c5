"""Queues of Volcano and Kueue: who is in them, and whether it can ever fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from scripts.manifests.checks.sizes import pod_limits
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay
from scripts.manifests.quantities import parse_quantity

__all__ = ["check_capacity", "check_queue_labels"]

_VOLCANO = "volcano.sh/queue-name"
_VOLCANO_POD = "scheduling.volcano.sh/queue-name"
_KUEUE = "kueue.x-k8s.io/queue-name"


def check_queue_labels(overlay: Overlay) -> Iterator[Finding]:
    """Yields work that is in no queue though there is one, or in one that is not there.

    An object in no queue would take nodes that the queue counts as free.
    """
    kinds = {one["kind"] for one in overlay.documents.values()}
    if {"Queue", "LocalQueue"} <= kinds:
        one = next(overlay.of_kind("Queue"))
        rule = "must be the one queue, beside no LocalQueue; leave a component out"
        yield overlay.finding(one, "kind", "Queue", rule)
    for one in overlay.of_kind("RayJob", "RayCluster", "Job", "MPIJob"):
        if "clusterSelector" in one["spec"]:
            continue  # it runs on pods of the cluster, which are in the queue
        for kind, path, key, holder in _places(one):
            value = holder.get(key)
            if kind in kinds and value is None:
                rule = f"must name the {kind}; add it"
                yield overlay.finding(one, f"{path}[{key}]", "absent", rule)
            elif value is not None and not overlay.has(kind, value):
                rule = f"must be a {kind} of the overlay; correct it"
                yield overlay.finding(one, f"{path}[{key}]", value, rule)
        yield from _for_kueue(overlay, one)
        if "Queue" in kinds and one["kind"] == "Job":
            scheduler = one["spec"]["template"]["spec"].get("schedulerName", "absent")
            if scheduler != "volcano":
                path = "spec.template.spec.schedulerName"
                yield overlay.finding(one, path, scheduler, "must be volcano; set it")
    for one in overlay.of_kind("LocalQueue"):
        name = one["spec"]["clusterQueue"]
        if not overlay.has("ClusterQueue", name):
            rule = "must be a ClusterQueue of the overlay; correct it"
            yield overlay.finding(one, "spec.clusterQueue", name, rule)


def check_capacity(overlay: Overlay) -> Iterator[Finding]:
    """Yields work that its queue can never admit whole, with as many pods as may be."""
    capacities = [*_capacities(overlay)]
    totals: dict[tuple[str, str], dict[str, Decimal]] = {}
    for pod in overlay.pods():
        if pod.document["kind"] == "Deployment":
            continue  # in no queue
        key = pod.document["kind"], pod.document["metadata"]["name"]
        total = totals.setdefault(key, {})
        for name, value in pod_limits(pod).items():
            total[name] = total.get(name, Decimal(0)) + value * pod.max_replicas
    for one, capacity in capacities:
        queue = f"{one['kind']}/{one['metadata']['name']}"
        for key, total in totals.items():
            for name, value in total.items():
                if value > capacity.get(name, Decimal(0)):
                    shown = capacity.get(name, "none")
                    rule = f"must fit {queue}, which has {shown}; raise that"
                    yield overlay.finding(
                        overlay.documents[key], f"{name} of all its pods", value, rule
                    )


def _places(
    one: Mapping[str, Any],
) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Yields the kind of a queue and where an object names it."""
    labels = one["metadata"].get("labels", {})
    if one["kind"] == "Job":
        metadata = one["spec"]["template"].get("metadata", {})
        annotations = metadata.get("annotations", {})
        path = "spec.template.metadata.annotations"
        yield "Queue", path, _VOLCANO_POD, annotations
    elif one["kind"] == "MPIJob":
        policy = one["spec"]["runPolicy"].get("schedulingPolicy", {})
        yield "Queue", "spec.runPolicy.schedulingPolicy", "queue", policy
    else:
        yield "Queue", "metadata.labels", _VOLCANO, labels
    yield "LocalQueue", "metadata.labels", _KUEUE, labels


def _for_kueue(overlay: Overlay, one: Mapping[str, Any]) -> Iterator[Finding]:
    if _KUEUE not in one["metadata"].get("labels", {}):
        return
    spec = one["spec"].get("rayClusterSpec", one["spec"])
    if spec.get("enableInTreeAutoscaling"):
        rule = "must be false in a queue of Kueue; leave the queue out"
        yield overlay.finding(one, "spec.enableInTreeAutoscaling", "true", rule)


def _capacities(
    overlay: Overlay,
) -> Iterator[tuple[Mapping[str, Any], dict[str, Decimal]]]:
    for one in overlay.of_kind("Queue"):
        given = one["spec"].get("capability", {})
        pairs = ((name, parse_quantity(value)) for name, value in given.items())
        yield one, {name: value or Decimal(0) for name, value in pairs}
    for one in overlay.of_kind("ClusterQueue"):
        total: dict[str, Decimal] = {}
        for group in one["spec"].get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    value = parse_quantity(resource["nominalQuota"]) or Decimal(0)
                    name = resource["name"]
                    total[name] = total.get(name, Decimal(0)) + value
        yield one, total
