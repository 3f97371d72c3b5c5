"""An overlay's objects, whoever renders them, and the pods in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from scripts.manifests.finding import Finding
from scripts.manifests.render import Documents, load_all, render

from tengen.errors import UsageError, did_you_mean

__all__ = ["K8S", "ROOT", "Overlay", "Pod", "component_sets", "open_overlay", "pods_of"]

ROOT = Path(__file__).resolve().parents[2]
K8S = ROOT / "deploy" / "k8s"

_IMAGES = "images"
# Kueue admits no cluster that is there already or that scales itself. Mirrors, and a
# GPU for each pod that plays, are of jobs-selfplay alone; see these components.
_OTHERS = (
    *("minigo-data", "mpijob-4gpu-64cpu", "mpijob-8gpu-128cpu"),
    *("raycluster-atari", "rayjob-go9", "rayjob-minigo"),
)
_NOT_FOR = {
    "queue-kueue": ("raycluster-atari",),
    "gpu": _OTHERS,
    "mirrors": _OTHERS,
}


@dataclass(frozen=True)
class Pod:
    """A pod template of an object, and how many pods are made of it."""

    document: Mapping[str, Any]
    """The object."""
    path: str
    """Of the template in it, as ``spec.template``."""
    template: Mapping[str, Any]
    """``metadata`` and ``spec``."""
    replicas: int
    """At the start, or those of a Job."""
    max_replicas: int
    """At most."""
    ray_params: Mapping[str, str] | None = None
    """Of a pod of Ray its group's rayStartParams; None of another."""
    group: str = ""
    """``head``, or the name of a group of workers; empty where it is no pod of Ray."""
    replica: str = ""
    """Of an MPIJob ``Launcher`` or ``Worker``; empty of others."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pod's own spec."""
        found: Mapping[str, Any] = self.template.get("spec", {})
        return found

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yields the path and content of every container, those of the start too."""
        for name in ("initContainers", "containers"):
            for index, one in enumerate(self.spec.get(name, ())):
                yield f"{self.path}.spec.{name}[{index}]", one

    def finding(self, path: str, value: Any, rule: str) -> Finding:
        """Returns an error of this pod's object."""
        return _finding(self.document, path, value, rule)


@dataclass(frozen=True)
class Overlay:
    """What ``kubectl apply -k`` would apply."""

    name: str
    """As ``rayjob-go9``, with the components that were added to it."""
    documents: Documents
    """The objects."""
    components: tuple[str, ...] = ()
    """That were added to it."""
    files: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """Where each object was read from."""

    def of_kind(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yields the objects of some kinds."""
        yield from (one for one in self.documents.values() if one["kind"] in kinds)

    def has(self, kind: str, name: str) -> bool:
        """Returns whether an object is there."""
        return (kind, name) in self.documents

    def pods(self) -> Iterator[Pod]:
        """Yields every pod template."""
        for one in self.documents.values():
            yield from pods_of(one)

    def finding(
        self, document: Mapping[str, Any], path: str, value: Any, rule: str
    ) -> Finding:
        """Returns an error of an object."""
        return _finding(document, path, value, rule)

    def line(self, finding: Finding) -> str:
        """Returns an error's line, with the overlay and the file of its object."""
        file = self.files.get((finding.kind, finding.name))
        shown = "" if file is None else f" {os.path.relpath(file, ROOT)}"
        return finding.line(f"{self.name}{shown}")


def component_sets(name: str) -> list[tuple[str, ...]]:
    """Returns what an overlay is checked with: nothing, and each component that fits.

    Args:
        name: Of the overlay.

    Raises:
        UsageError: It is not known.
    """
    _check_known("overlays", name)
    folders = sorted(path.name for path in (K8S / "components").iterdir())
    fitting = [
        one for one in folders if one != _IMAGES and name not in _NOT_FOR.get(one, ())
    ]
    content = yaml.safe_load(
        (K8S / "overlays" / name / "kustomization.yaml").read_text()
    )
    has = {Path(one).name for one in content.get("components", ())}
    return [(), *((one,) for one in fitting if one not in has)]


def open_overlay(
    name: str, components: Sequence[str] = (), *, kubectl: bool = True
) -> Overlay:
    """Returns an overlay of deploy/k8s, with components added to it.

    Args:
        name: Of its folder.
        components: Names of folders.
        kubectl: Whether kubectl renders it where it is found.

    Raises:
        UsageError: A name is not known, or what renders it refuses.
    """
    _check_known("overlays", name)
    for one in components:
        _check_known("components", one)
    files: dict[tuple[str, str], Path] = {}
    with tempfile.TemporaryDirectory() as temporary:
        # Resolved: kustomize does not follow links out of a folder.
        folder_path = Path(temporary).resolve()
        resources = [os.path.relpath(K8S / "overlays" / name, folder_path)]
        # The images are named last.
        added = [*components, _IMAGES] if components else []
        content = {
            "resources": resources,
            "components": [
                os.path.relpath(K8S / "components" / one, folder_path) for one in added
            ],
        }
        (folder_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
        documents = render(folder_path, files)
        if kubectl and shutil.which("kubectl"):
            documents = _by_kubectl(folder_path)
    # To the API server a field without a value is none.
    documents = {key: _without_nulls(one) for key, one in documents.items()}
    shown = " + ".join([name, *components])
    return Overlay(shown, documents, tuple(components), files)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(one) for k, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _check_known(folder: str, name: str) -> None:
    known = sorted(path.name for path in (K8S / folder).iterdir())
    if name not in known:
        raise UsageError(
            f"{folder[:-1]} ({name}) must be of deploy/k8s/{folder}; "
            f"{did_you_mean(name, known)}"
        )


def _by_kubectl(folder: Path) -> Documents:
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise UsageError(f"kubectl kustomize ({folder}) failed: {reason}; repair that")
    found = load_all(done.stdout)
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def _finding(document: Mapping[str, Any], path: str, value: Any, rule: str) -> Finding:
    return Finding(document["kind"], document["metadata"]["name"], path, value, rule)


def pods_of(document: Mapping[str, Any]) -> Iterator[Pod]:
    """Yields the pod templates of an object."""
    kind, spec = document["kind"], document.get("spec", {})
    if kind == "Pod":
        yield Pod(document, "", document, 1, 1)
    elif kind in ("Deployment", "StatefulSet"):
        count = spec.get("replicas", 1)
        yield Pod(document, "spec.template", spec["template"], count, count)
    elif kind == "Job":
        count = spec.get("parallelism", 1)
        yield Pod(document, "spec.template", spec["template"], count, count)
    elif kind == "MPIJob":
        for name, replica in spec["mpiReplicaSpecs"].items():
            count = replica.get("replicas", 1)
            path = f"spec.mpiReplicaSpecs.{name}.template"
            template = replica["template"]
            yield Pod(document, path, template, count, count, replica=name)
    elif kind == "RayCluster":
        yield from _ray_pods(document, "spec", spec)
    elif kind == "RayJob":
        submitter = spec.get("submitterPodTemplate")
        if submitter is not None:
            yield Pod(document, "spec.submitterPodTemplate", submitter, 1, 1)
        if "rayClusterSpec" in spec:
            path = "spec.rayClusterSpec"
            yield from _ray_pods(document, path, spec["rayClusterSpec"])


def _ray_pods(
    document: Mapping[str, Any], path: str, spec: Mapping[str, Any]
) -> Iterator[Pod]:
    head = spec["headGroupSpec"]
    params = head.get("rayStartParams", {})
    where = f"{path}.headGroupSpec.template"
    yield Pod(document, where, head["template"], 1, 1, params, "head")
    for index, group in enumerate(spec.get("workerGroupSpecs", ())):
        yield Pod(
            document,
            f"{path}.workerGroupSpecs[{index}].template",
            group["template"],
            group.get("replicas", group.get("minReplicas", 0)),
            group.get("maxReplicas", group.get("replicas", 0)),
            group.get("rayStartParams", {}),
            group["groupName"],
        )
