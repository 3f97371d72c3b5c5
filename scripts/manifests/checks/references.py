"""What a pod refers to is there: volumes, claims, maps, secrets, variables, accounts.

A claim is not mounted by more pods than may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import ROOT, Overlay, Pod

__all__ = [
    "check_accounts",
    "check_claims",
    "check_secrets",
    "check_sharing",
    "check_sources",
    "check_variables",
    "check_volumes",
]

_PAGE = "docs/howto/machines/deploy.md"
_SECRET_WORDS = re.compile("TOKEN|PASSWORD|SECRET|KEY")
# Two dollars stand for one.
_VARIABLE = re.compile(r"(?<!\$)\$\((\w+)\)")


def check_volumes(overlay: Overlay) -> Iterator[Finding]:
    """Yields mounts of volumes that the pod has not, and volumes that nobody mounts."""
    for pod in overlay.pods():
        volumes = {one["name"] for one in pod.spec.get("volumes", ())}
        mounted = set()
        for path, name in _mounts(pod):
            mounted.add(name)
            if name not in volumes:
                rule = "must be a volume of its pod; add it, or correct the name"
                yield pod.finding(path, name, rule)
        for name in sorted(volumes - mounted):
            where = f"{pod.path}.spec.volumes"
            yield pod.finding(where, name, "must be mounted; mount it, or remove it")


def check_claims(overlay: Overlay) -> Iterator[Finding]:
    """Yields claims that the overlay does not have."""
    for pod in overlay.pods():
        for index, volume in enumerate(pod.spec.get("volumes", ())):
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and not overlay.has("PersistentVolumeClaim", claim):
                where = (
                    f"{pod.path}.spec.volumes[{index}].persistentVolumeClaim.claimName"
                )
                rule = "must be a PersistentVolumeClaim of the overlay; add it"
                yield pod.finding(where, claim, rule)


def check_sharing(overlay: Overlay) -> Iterator[Finding]:
    """Yields claims that more pods mount than their access modes allow.

    Pods of one node may share a ReadWriteOnce claim, but nothing keeps them there: one
    that begins again on another node waits for the others to end.
    """
    for claim in overlay.of_kind("PersistentVolumeClaim"):
        name, modes = claim["metadata"]["name"], claim["spec"]["accessModes"]
        num_pods = sum(
            pod.max_replicas
            for pod in overlay.pods()
            for volume in pod.spec.get("volumes", ())
            if volume.get("persistentVolumeClaim", {}).get("claimName") == name
        )
        if num_pods > 1 and "ReadWriteMany" not in modes:
            rule = f"must have ReadWriteMany, as {num_pods} pods mount it; add it"
            yield overlay.finding(claim, "spec.accessModes", modes, rule)


def check_sources(overlay: Overlay) -> Iterator[Finding]:
    """Yields maps and secrets that nobody makes.

    A secret is the user's to create, and stands as ``secret/NAME`` in
    docs/howto/machines/deploy.md.
    """
    page = (ROOT / _PAGE).read_text()
    for pod in overlay.pods():
        for path, kind, name in _sources(pod):
            if overlay.has(kind, name):
                continue
            if kind == "Secret":
                if f"`secret/{name}`" not in page:
                    rule = f"must be made by the overlay, or stand in {_PAGE}"
                    yield pod.finding(path, name, f"{rule} as secret/{name}; say it")
            else:
                yield pod.finding(
                    path, name, f"must be a {kind} of the overlay; add it"
                )


def check_secrets(overlay: Overlay) -> Iterator[Finding]:
    """Yields tokens and passwords that stand in a manifest."""
    for pod in overlay.pods():
        for path, container in pod.containers():
            for index, one in enumerate(container.get("env", ())):
                if _SECRET_WORDS.search(one["name"]) and "value" in one:
                    where = f"{path}.env[{index}].value"
                    rule = "must come from a secret; use valueFrom.secretKeyRef"
                    yield pod.finding(where, "not shown", rule)


def check_variables(overlay: Overlay) -> Iterator[Finding]:
    """Yields ``$(NAME)`` in commands that the container has no variable for.

    Kubernetes would hand it on as it is written.
    """
    for pod in overlay.pods():
        for path, container in pod.containers():
            known = {one["name"] for one in container.get("env", ())}
            for one in container.get("envFrom", ()):
                source = "ConfigMap", one.get("configMapRef", {}).get("name", "")
                known |= overlay.documents.get(source, {}).get("data", {}).keys()
            for field in ("command", "args"):
                for index, word in enumerate(container.get(field, ())):
                    for name in _VARIABLE.findall(str(word)):
                        # In a script of a shell it runs a program.
                        if name not in known and "\n" not in word:
                            rule = "must be a variable of its container; add it to env"
                            yield pod.finding(f"{path}.{field}[{index}]", word, rule)


def check_accounts(overlay: Overlay) -> Iterator[Finding]:
    """Yields service accounts that the overlay does not have.

    A pod without one would have the namespace's own.
    """
    for pod in overlay.pods():
        name = pod.spec.get("serviceAccountName", "absent")
        if not overlay.has("ServiceAccount", name):
            where = f"{pod.path}.spec.serviceAccountName"
            rule = "must be a ServiceAccount of the overlay; add it"
            yield pod.finding(where, name, rule)


def _mounts(pod: Pod) -> Iterator[tuple[str, str]]:
    for path, container in pod.containers():
        for index, mount in enumerate(container.get("volumeMounts", ())):
            yield f"{path}.volumeMounts[{index}].name", mount["name"]
    if pod.group == "head":
        # KubeRay adds the autoscaler to the head's pod.
        options = pod.document["spec"].get("autoscalerOptions", {})
        for index, mount in enumerate(options.get("volumeMounts", ())):
            where = f"spec.autoscalerOptions.volumeMounts[{index}].name"
            yield where, mount["name"]


def _sources(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yields path, kind and name of every map and secret that a pod reads."""
    for index, volume in enumerate(pod.spec.get("volumes", ())):
        where = f"{pod.path}.spec.volumes[{index}]"
        if "configMap" in volume:
            yield f"{where}.configMap.name", "ConfigMap", volume["configMap"]["name"]
        if "secret" in volume:
            yield f"{where}.secret.secretName", "Secret", volume["secret"]["secretName"]
    for path, container in pod.containers():
        for index, one in enumerate(container.get("envFrom", ())):
            yield from _named(f"{path}.envFrom[{index}]", one, "Ref")
        for index, one in enumerate(container.get("env", ())):
            where = f"{path}.env[{index}].valueFrom"
            yield from _named(where, one.get("valueFrom", {}), "KeyRef")


def _named(path: str, one: Any, ending: str) -> Iterator[tuple[str, str, str]]:
    for word, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if f"{word}{ending}" in one:
            yield f"{path}.{word}{ending}.name", kind, one[f"{word}{ending}"]["name"]
