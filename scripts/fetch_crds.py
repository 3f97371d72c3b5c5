#!/usr/bin/env python3
"""Fetches the definitions that deploy/k8s/schemas was written after.

::

    python scripts/fetch_crds.py FOLDER
    python scripts/check_manifests.py --crds FOLDER

They are the projects' own, under the Apache License 2.0, and no part of tengen. A file
whose SHA-256 is another than below is not kept. It needs a network; the tests do not.
Exit codes: 0 all are there, 1 a file was refused or not reached, 2 bad usage.
"""

from __future__ import annotations

import hashlib
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_HOST = "https://raw.githubusercontent.com"
_RAY = "ray-project/kuberay", "v1.7.0", "ray-operator/config/crd/bases"
_VOLCANO = "volcano-sh/volcano", "v1.15.1", "config/crd/volcano/bases"
_KUEUE = "kubernetes-sigs/kueue", "v0.19.2", "config/components/crd/bases"
_MPI = "kubeflow/mpi-operator", "v0.8.0", "manifests/base"


@dataclass(frozen=True)
class Definition:
    """A file of a release."""

    source: tuple[str, str, str]
    """Repository, tag and folder."""
    name: str
    """Of the file."""
    sha256: str
    """In hex."""

    @property
    def url(self) -> str:
        """Where it is."""
        return "/".join((_HOST, *self.source, self.name))


DEFINITIONS = (
    Definition(
        _RAY,
        "ray.io_rayclusters.yaml",
        "c44704442eef0c6721ad40c1d66782c8bd3fdab9d3344306a5820910a679baa1",
    ),
    Definition(
        _RAY,
        "ray.io_rayjobs.yaml",
        "01a5cf3b17c1769fda44af7e82debcd98722f0c27b9ab84d084681c6649121f5",
    ),
    Definition(
        _VOLCANO,
        "scheduling.volcano.sh_queues.yaml",
        "92203dee889b6d3bb628f96d27779e98967d8ba21e58c425c7379bcbcee8b482",
    ),
    Definition(
        _KUEUE,
        "kueue.x-k8s.io_clusterqueues.yaml",
        "e0a5fc9b370c70f3d993d4f599865817338ecf94187b30b15b12ff33c579bd55",
    ),
    Definition(
        _KUEUE,
        "kueue.x-k8s.io_localqueues.yaml",
        "dd10ef8d3578e7212fa52763549e7b6be0949793a5b924495fcd293330109fed",
    ),
    Definition(
        _KUEUE,
        "kueue.x-k8s.io_resourceflavors.yaml",
        "19e339c47e9ca3fa2c9eeddd27715a512f765c4794ed859733408a9715720173",
    ),
    Definition(
        _MPI,
        "kubeflow.org_mpijobs.yaml",
        "78b0131f931fcc8d99f6ce0407281f41b62527e443ec691d26d9634b390ad3bb",
    ),
)


def fetch(definition: Definition, folder: Path) -> str:
    """Writes a definition into a folder. Blocks for 60 s at most without an answer.

    Returns:
        What is wrong, one line; empty: nothing.
    """
    try:
        with urllib.request.urlopen(definition.url, timeout=60) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        return f"file ({definition.url}) cannot be reached, {error}; try again"
    found = hashlib.sha256(content).hexdigest()
    if found != definition.sha256:
        return (
            f"file ({definition.url}) must have the SHA-256 {definition.sha256}, not "
            f"{found}; do not use it"
        )
    (folder / definition.name).write_bytes(content)
    return ""


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code."""
    if len(argv) != 1 or argv[0].startswith("-"):
        print("fetch_crds: arguments must be one folder; name it", file=sys.stderr)
        return 2
    folder = Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    problems = [problem for one in DEFINITIONS if (problem := fetch(one, folder))]
    for problem in problems:
        print(f"fetch_crds: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
