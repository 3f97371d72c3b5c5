"""Pod templates for all manifests, with restricted security and the runs' volume.

A key that begins with ``#`` is a comment; ``files.text`` writes it as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scripts.manifests import table
from scripts.manifests.table import MOUNTS, PORTS, Size

Object = dict[str, Any]

TINI = ("/usr/bin/tini", "--")
"""The images' ENTRYPOINT, for commands that replace it: tini forwards signals."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def made(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Object:
    """Returns a Kubernetes object with a name and tengen's label."""
    metadata = {"name": name, "labels": {"app.kubernetes.io/part-of": table.PART_OF}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def labels(component: str) -> Object:
    """Returns the labels of a pod."""
    return {
        "app.kubernetes.io/part-of": table.PART_OF,
        "app.kubernetes.io/component": component,
    }


def sized(size: Size) -> Object:
    """Returns resources with requests equal to limits."""
    found: Object = {"cpu": size.cpu, "memory": size.memory}
    if size.gpus:
        found["nvidia.com/gpu"] = size.gpus
    return {"requests": found, "limits": found}


def bursting(asked: tuple[str, str], most: tuple[str, str]) -> Object:
    """Returns cpu and memory resources with requests ``asked`` and limits ``most``."""
    names = ("cpu", "memory")
    return {
        "requests": dict(zip(names, asked, strict=True)),
        "limits": dict(zip(names, most, strict=True)),
    }


def settings(values: Mapping[str, object]) -> list[str]:
    """Returns the ``--set`` arguments for settings."""
    return [word for key, one in values.items() for word in ("--set", f"{key}={one}")]


def mount(name: str, *, read_only: bool = False) -> Object:
    """Returns a container's mount of the volume ``name``."""
    found: Object = {"name": name, "mountPath": MOUNTS[name]}
    if read_only or MOUNTS[name].startswith("/etc/"):
        found["readOnly"] = True
    return found


def container(
    name: str,
    resources: Object,
    mounts: Sequence[str],
    *,
    image: str = table.IMAGE,
    ports: Sequence[str] = (),
    **fields: Any,
) -> Object:
    """Returns a container.

    Args:
        name: Its name.
        resources: As returned by ``sized``.
        mounts: Names of volumes.
        image: ``table.IMAGE`` or ``table.CUDA_IMAGE``.
        ports: Names of ports.
        **fields: Other Kubernetes fields, such as ``args``.
    """
    found: Object = {"name": name, "image": image, **fields}
    if ports:
        found["ports"] = [{"name": one, "containerPort": PORTS[one]} for one in ports]
    return found | {
        "envFrom": [{"configMapRef": {"name": table.ENVIRONMENT}}],
        "resources": resources,
        "securityContext": RESTRICTED,
        "volumeMounts": [mount(one) for one in mounts],
    }


def volumes(
    names: Sequence[str], size: Size, sources: Mapping[str, str]
) -> list[Object]:
    """Returns the volumes of a pod.

    Args:
        names: Keys of ``table.MOUNTS``.
        size: The pod's size, with its scratch and shared memory.
        sources: ConfigMap or secret of each volume that is mounted in /etc.
    """
    known: dict[str, Object] = {
        "runs": {"persistentVolumeClaim": {"claimName": table.CLAIM}},
        "scratch": {"emptyDir": {"sizeLimit": size.scratch}},
        "shared-memory": {
            "emptyDir": {"medium": "Memory", "sizeLimit": size.shared_memory}
        },
    }
    for name, source in sources.items():
        # Mode 0440: a secret is readable by root and by the pod's group.
        known[name] = (
            {"secret": {"secretName": source, "defaultMode": 0o440}}
            if name == "tls"
            else {"configMap": {"name": source}}
        )
    return [{"name": name, **known[name]} for name in names]


def template(
    component: str,
    containers: Sequence[Object],
    pod_volumes: Sequence[Object],
    *,
    account: str = table.ACCOUNT,
    saves: bool = True,
    **fields: Any,
) -> Object:
    """Returns the template of a pod.

    Args:
        component: Its label.
        containers: The main containers.
        pod_volumes: As returned by ``volumes``.
        account: The service account; only the autoscaler's token is mounted.
        saves: Whether the pod has roles, which need time to save before it ends.
        **fields: Other Kubernetes fields, such as ``initContainers``.
    """
    user: Object = {
        "runAsNonRoot": True,
        "runAsUser": table.USER,
        "runAsGroup": table.USER,
    }
    if any("persistentVolumeClaim" in one for one in pod_volumes):
        # Without fsGroup, root owns a new volume and the images' user cannot write.
        user |= {"fsGroup": table.USER, "fsGroupChangePolicy": "OnRootMismatch"}
    spec: Object = {
        "serviceAccountName": account,
        "automountServiceAccountToken": account == table.AUTOSCALER,
        "securityContext": user | {"seccompProfile": {"type": "RuntimeDefault"}},
        **fields,
        "containers": list(containers),
        "volumes": list(pod_volumes),
    }
    if saves:
        spec["terminationGracePeriodSeconds"] = table.SAVE_S
    return {"metadata": {"labels": labels(component)}, "spec": spec}


def waits_for_data() -> Object:
    """Returns the container that waits for the benchmark's data on the volume."""
    return container(
        "wait-for-data",
        sized(table.WAITS),
        ("runs", "scratch", "data-scripts"),
        command=[*TINI, "bash", f"{MOUNTS['data-scripts']}/wait.sh"],
        args=[f"{table.DATA}/READY", str(table.DATA_WAIT_S), "job/minigo-data"],
    )
