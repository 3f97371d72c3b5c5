"""Versions that must agree: of the images, of Ray, of the project."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import ROOT, Overlay

__all__ = ["check_images", "check_ray_version", "image_tag", "ray_version"]

_CUDA = "-cuda"
_GPU = "nvidia.com/gpu"


@functools.cache
def ray_version() -> str:
    """Returns the Ray of constraints.txt, which the images have."""
    pins: dict[str, str] = dict(re.findall(r"^(\S+)==(\S+)$", _constraints(), re.M))
    return pins["ray"]


@functools.cache
def image_tag() -> str:
    """Returns the tag that deploy/docker/build.sh gives an image, but for ``-cuda``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return f"{project['version']}-ray{ray_version()}"


def check_images(overlay: Overlay) -> Iterator[Finding]:
    """Yields images of another repository or build, and those that fit no GPU.

    A container that asks for GPUs needs the image that can compute on them.
    """
    repositories = set()
    for pod in overlay.pods():
        for path, container in pod.containers():
            image = str(container.get("image", ""))
            match = re.fullmatch(r"(.+):([^:/]+)", image)
            repository, tag = (match[1], match[2]) if match else (image, "")
            repositories.add(repository)
            if tag.removesuffix(_CUDA) != image_tag():
                rule = f"must have the build's tag, {image_tag()}; correct the tag"
                yield pod.finding(
                    f"{path}.image", image, f"{rule} in components/images"
                )
            elif repository != sorted(repositories)[0] or len(repositories) > 1:
                rule = "must be of one repository with the others; name no other"
                yield pod.finding(f"{path}.image", image, rule)
            limits = container.get("resources", {}).get("limits", {})
            if limits.get(_GPU) and not tag.endswith(_CUDA):
                rule = "must be the image for GPUs, as the container asks for one"
                yield pod.finding(f"{path}.image", image, f"{rule}; use tengen-cuda")


def check_ray_version(overlay: Overlay) -> Iterator[Finding]:
    """Yields clusters of another Ray than their images have."""
    for one in overlay.of_kind("RayCluster", "RayJob"):
        is_cluster = one["kind"] == "RayCluster"
        path = "spec" if is_cluster else "spec.rayClusterSpec"
        spec = one["spec"] if is_cluster else one["spec"].get("rayClusterSpec")
        if spec is not None and spec.get("rayVersion") != ray_version():
            rule = f"must be the Ray of constraints.txt, {ray_version()}; correct it"
            yield overlay.finding(
                one, f"{path}.rayVersion", spec.get("rayVersion", "absent"), rule
            )


def _constraints() -> str:
    return (ROOT / "constraints.txt").read_text()
