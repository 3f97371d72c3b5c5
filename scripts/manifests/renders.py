"""Overlays with their components, rendered with ``kubectl kustomize``."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from scripts.manifests.table import K8S

from tengen.errors import UsageError

OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir())

# Mirrors patch the same fields as gpu and the queues, so both orders must render.
_OF_JOBS: list[tuple[str, ...]] = [
    *(("gpu",), ("network",), ("mirrors",), ("gpu", "mirrors"), ("mirrors", "gpu")),
    ("mirrors", "network", "queue-volcano"),
]


def _sets(name: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [(), ("queue-volcano",)]
    if name != "raycluster-atari":  # Kueue admits no autoscaling cluster
        found.append(("queue-kueue",))
    return [*found, *(_OF_JOBS if name == "jobs-selfplay" else ())]


RENDERS = [(name, components) for name in OVERLAYS for components in _sets(name)]
"""Each overlay, alone and with every compatible set of components."""


SINGLE = {
    name: K8S / "job_{}GPU_{}CPU.yaml".format(*re.findall(r"\d+", name))
    for name in OVERLAYS
    if name.startswith("mpijob-")
}
"""Overlays that also exist as one file, for ``kubectl apply -f``."""


def single_text(name: str) -> str:
    """Returns an overlay as one file; raises the same errors as ``render``."""
    head = f"# Overlay {name}, rendered by scripts/check_manifests.py --write.\n"
    return head + render(name)


def render(name: str, components: Sequence[str] = ()) -> str:
    """Returns the objects that ``kubectl apply -k`` would apply, in YAML.

    Args:
        name: The overlay.
        components: The components to add.

    Raises:
        UsageError: kubectl rejects the overlay.
        FileNotFoundError: kubectl is not installed.
    """
    with tempfile.TemporaryDirectory() as temporary:
        # Resolve links, because kustomize does not follow links out of a folder.
        folder = Path(temporary).resolve()
        # "images" must come last.
        added = [*components, "images"] if components else []
        content = {
            "resources": [os.path.relpath(K8S / "overlays" / name, folder)],
            "components": [
                os.path.relpath(K8S / "components" / one, folder) for one in added
            ],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
        done = subprocess.run(
            ["kubectl", "kustomize", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = " ".join(done.stderr.split())
        shown = "+".join((name, *components))
        raise UsageError(f"overlay ({shown}) cannot be rendered, {reason}; repair it")
    return done.stdout
