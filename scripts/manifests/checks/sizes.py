"""What containers ask for and may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod
from scripts.manifests.quantities import parse_quantity

__all__ = ["check_node", "check_requests", "check_resources", "pod_limits"]

_NEEDED = ("cpu", "memory")


def check_resources(overlay: Overlay) -> Iterator[Finding]:
    """Yields requests and limits of cpu and memory that lack, or are no quantity."""
    for path, resources, finding in _all_resources(overlay):
        for part in ("requests", "limits"):
            given = resources.get(part, {})
            for name in (*_NEEDED, *(one for one in given if one not in _NEEDED)):
                value = given.get(name, "absent")
                if parse_quantity(value) is None:
                    rule = "must be a quantity, as 500m, 2 or 16Gi; set it"
                    yield finding(f"{path}.{part}.{name}", value, rule)


def check_requests(overlay: Overlay) -> Iterator[Finding]:
    """Yields requests above their limits."""
    for path, resources, finding in _all_resources(overlay):
        limits = resources.get("limits", {})
        for name, value in resources.get("requests", {}).items():
            asked, limit = parse_quantity(value), parse_quantity(limits.get(name))
            if asked is not None and limit is not None and asked > limit:
                rule = f"must be at most its limit, {limits[name]}; lower it"
                yield finding(f"{path}.requests.{name}", value, rule)


def check_node(overlay: Overlay, node: Mapping[str, Decimal]) -> Iterator[Finding]:
    """Yields pods that no node of the cluster is large enough for.

    Args:
        overlay: The objects.
        node: What the largest node has, by resource; of others nothing is known.
    """
    for pod in overlay.pods():
        for name, value in pod_limits(pod).items():
            if name in node and value > node[name]:
                rule = f"must fit a node, which has {node[name]}; lower its containers'"
                yield pod.finding(f"{pod.path}, limits of {name}", value, rule)


def pod_limits(pod: Pod) -> dict[str, Decimal]:
    """Returns what a pod may use: its containers together, or one of the start."""
    used: dict[str, Decimal] = {}
    for one in pod.spec.get("containers", ()):
        for name, value in one.get("resources", {}).get("limits", {}).items():
            used[name] = used.get(name, Decimal(0)) + (parse_quantity(value) or 0)
    for one in pod.spec.get("initContainers", ()):
        for name, value in one.get("resources", {}).get("limits", {}).items():
            most = parse_quantity(value) or Decimal(0)
            used[name] = max(used.get(name, Decimal(0)), most)
    return used


def _all_resources(overlay: Overlay) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    for pod in overlay.pods():
        for path, container in pod.containers():
            yield f"{path}.resources", container.get("resources", {}), pod.finding
    for one in overlay.of_kind("RayCluster"):
        spec = one["spec"]
        if spec.get("enableInTreeAutoscaling"):

            def finding(
                path: str, value: Any, rule: str, one: Mapping[str, Any] = one
            ) -> Finding:
                return overlay.finding(one, path, value, rule)

            options = spec.get("autoscalerOptions", {})
            where = "spec.autoscalerOptions.resources"
            yield where, options.get("resources", {}), finding
