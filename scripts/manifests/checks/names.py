"""Names: what Kubernetes and KubeRay take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay

__all__ = ["check_names"]

_LABEL = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
# KubeRay adds endings to the names of clusters, and six more to those of a RayJob's; a
# Job's pods have six more, and a Service is a label itself.
_MOST = {"RayCluster": 53, "RayJob": 47, "Job": 57}
_MOST_LABEL = 63
_MOST_PORT_NAME = 15


def check_names(overlay: Overlay) -> Iterator[Finding]:
    """Yields names of objects, groups, containers, volumes, ports that are refused."""
    for one in overlay.documents.values():
        most = _MOST.get(one["kind"], _MOST_LABEL)
        name = str(one["metadata"]["name"])
        rule = _rule(name, most)
        if rule:
            yield overlay.finding(one, "metadata.name", name, rule)
    for pod in overlay.pods():
        named: list[tuple[str, Any, int]] = []
        if pod.group:
            named.append((f"{pod.path}, its group", pod.group, _MOST_LABEL))
        for path, container in pod.containers():
            named.append((f"{path}.name", container["name"], _MOST_LABEL))
            named += [
                (f"{path}.ports[{index}].name", port["name"], _MOST_PORT_NAME)
                for index, port in enumerate(container.get("ports", ()))
                if "name" in port
            ]
        for index, volume in enumerate(pod.spec.get("volumes", ())):
            where = f"{pod.path}.spec.volumes[{index}].name"
            named.append((where, volume["name"], _MOST_LABEL))
        for where, value, most in named:
            rule = _rule(str(value), most)
            if rule:
                yield pod.finding(where, value, rule)


def _rule(name: str, most: int) -> str:
    if _LABEL.fullmatch(name) is None:
        return (
            "must be lower-case letters, digits and hyphens, a letter first; rename it"
        )
    if len(name) > most:
        return f"must have {most} characters at most; shorten it"
    return ""
