"""Pods: what they may do, their shared memory, when they are ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import ROOT, Overlay, Pod
from scripts.manifests.quantities import parse_quantity

__all__ = ["check_readiness", "check_security", "check_shared_memory", "is_working"]

_SHARED_MEMORY = "/dev/shm"


def is_working(pod: Pod) -> bool:
    """Returns whether roles of tengen work in a pod, or Ray does."""
    if pod.ray_params is not None or pod.replica == "Worker":
        return True
    is_job = pod.document["kind"] == "Job"
    return is_job and "submitter" not in pod.path.lower()


def check_shared_memory(overlay: Overlay) -> Iterator[Finding]:
    """Yields pods of roles whose /dev/shm is the 64 MiB of a container.

    What lies there counts as memory of the containers that use it, and so must be less.
    """
    for pod in overlay.pods():
        volumes = {one["name"]: one for one in pod.spec.get("volumes", ())}
        for index, one in enumerate(pod.spec.get("volumes", ())):
            empty = one.get("emptyDir", {})
            if empty.get("medium") == "Memory" and "sizeLimit" not in empty:
                where = f"{pod.path}.spec.volumes[{index}].emptyDir.sizeLimit"
                yield pod.finding(where, "absent", "must be there; add it")
        if not is_working(pod):
            continue
        for index, container in enumerate(pod.spec.get("containers", ())):
            where = f"{pod.path}.spec.containers[{index}]"
            mounts = {
                one["mountPath"]: one["name"]
                for one in container.get("volumeMounts", ())
            }
            empty = volumes.get(mounts.get(_SHARED_MEMORY, ""), {}).get("emptyDir", {})
            if empty.get("medium") != "Memory":
                rule = "must mount /dev/shm of an emptyDir in Memory; add it"
                yield pod.finding(f"{where}.volumeMounts", sorted(mounts), rule)
                continue
            size = parse_quantity(empty.get("sizeLimit"))
            limit = container.get("resources", {}).get("limits", {}).get("memory")
            room = parse_quantity(limit)
            if size is not None and room is not None and size >= room:
                rule = f"must be less than the container's memory, {limit}; lower it"
                path = f"{where}, its /dev/shm"
                yield pod.finding(path, empty["sizeLimit"], rule)


def check_security(overlay: Overlay) -> Iterator[Finding]:
    """Yields what the profile "restricted" refuses, and roots that can be written."""
    user = _image_user()
    for pod in overlay.pods():
        where = f"{pod.path}.spec.securityContext"
        context = pod.spec.get("securityContext", {})
        wanted: dict[str, Any] = {"runAsNonRoot": True, "runAsUser": user}
        if any("persistentVolumeClaim" in one for one in pod.spec.get("volumes", ())):
            # Otherwise a new volume is root's, and the image's user cannot write there.
            wanted["fsGroup"] = user
        yield from _wanted(pod, where, context, wanted)
        profile = context.get("seccompProfile", {})
        yield from _wanted(pod, f"{where}.seccompProfile", profile, _PROFILE)
        for path, container in pod.containers():
            inner = container.get("securityContext", {})
            yield from _wanted(pod, f"{path}.securityContext", inner, _CONTAINER)
            dropped = inner.get("capabilities", {}).get("drop", [])
            if dropped != ["ALL"]:
                rule = "must be ALL; set it"
                at = f"{path}.securityContext.capabilities.drop"
                yield pod.finding(at, dropped, rule)


_PROFILE = {"type": "RuntimeDefault"}
_CONTAINER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}


def check_readiness(overlay: Overlay) -> Iterator[Finding]:
    """Yields containers that listen and do not say when they are ready.

    KubeRay gives those of Ray their probes.
    """
    for pod in overlay.pods():
        if pod.ray_params is not None:
            continue
        for path, container in pod.containers():
            if container.get("ports") and "readinessProbe" not in container:
                rule = "must be there, as the container listens; add it"
                yield pod.finding(f"{path}.readinessProbe", "absent", rule)


def _wanted(
    pod: Pod, path: str, given: dict[str, Any], wanted: dict[str, Any]
) -> Iterator[Finding]:
    for name, value in wanted.items():
        if given.get(name) != value:
            shown = str(value).lower() if isinstance(value, bool) else value
            found = given.get(name, "absent")
            yield pod.finding(f"{path}.{name}", found, f"must be {shown}; set it")


def _image_user() -> int:
    """Returns the user of the image, which files of the run belong to."""
    text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
    lines = [line.split() for line in text.splitlines() if line.startswith("USER ")]
    return int(lines[-1][1].partition(":")[0])
