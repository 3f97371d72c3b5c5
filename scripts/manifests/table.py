"""The only table of names, ports, images and sizes of the manifests.

After a change, run ``scripts/check_manifests.py --write``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tengen.roles import doors

ROOT = Path(__file__).resolve().parents[2]
K8S = ROOT / "deploy" / "k8s"

_CONSTRAINTS = (ROOT / "constraints.txt").read_text()
RAY_VERSION = re.findall(r"^ray==(\S+)$", _CONSTRAINTS, re.M)[0]
IMAGE, CUDA_IMAGE = "tengen", "tengen-cuda"
"""Names to which components/images adds a registry and a tag."""
USER = 10001
"""User ID of the images' user, who owns the files of a run."""

PART_OF = "tengen"
ACCOUNT, AUTOSCALER = "tengen", "tengen-autoscaler"
CLAIM, ENVIRONMENT = "tengen-runs", "tengen-environment"

PORTS = {
    "table": 7070,
    "inference": 7070 + doors.port_offset(doors.INFERENCE),
    "ssh": 2222,
    "dashboard": 8265,
    "gcs": 6379,
    "client": 10001,
}
"""Ports by name; inference's is derived from ``table``, the port of launch.listen."""

MOUNTS = {
    "runs": "/runs",
    "scratch": "/tmp",
    "shared-memory": "/dev/shm",
    "data-scripts": "/etc/tengen/data",
    "mpi": "/etc/tengen/mpi",
    "tls": "/etc/tengen/tls",
}
"""Mount paths of volumes by name; those in /etc are read-only."""

GO9, PONG, MINIGO = "/runs/go9", "/runs/pong", "/runs/minigo"
DATA = "/runs/minigo-data"
DATA_WAIT_S = 21600
MINUTES = 600
"""Training time of the runs of Go 9x9."""
SAVE_S = 90
"""Seconds from SIGTERM to SIGKILL; saving may take long on a shared disk."""


@dataclass(frozen=True)
class Size:
    """A pod's resources; requests equal limits."""

    cpu: str
    memory: str
    shared_memory: str = ""
    """Size of /dev/shm, which counts towards ``memory`` and must be smaller."""
    scratch: str = "20Gi"
    """Size of /tmp."""
    gpus: int = 0


WAITS = Size("100m", "64Mi")
SIZES = {
    "minigo-data": Size("4", "16Gi", "1Gi", "4Gi"),
    "minigo-launcher": Size("1", "1Gi", scratch="1Gi"),
    "minigo-worker": Size("16", "96Gi", "16Gi", gpus=1),
    "minigo-head": Size("4", "8Gi", "1Gi"),
    "minigo-learner": Size("16", "96Gi", "16Gi", gpus=1),
    "minigo-selfplay": Size("16", "32Gi", "16Gi"),
    "go9-head": Size("4", "8Gi", "1Gi"),
    "go9-learner": Size("8", "24Gi", "4Gi"),
    "go9-selfplay": Size("20", "32Gi", "4Gi"),
    "atari-head": Size("2", "8Gi", "1Gi"),
    "atari-learner": Size("8", "32Gi", "8Gi"),
    "atari-actor": Size("8", "16Gi", "2Gi"),
    "job-make-run": Size("2", "4Gi"),
    "job-learn": Size("8", "16Gi", "1Gi"),
    "job-export": Size("2", "4Gi", "1Gi"),
    "job-gate": Size("2", "4Gi", "1Gi"),
    "job-selfplay": Size("4", "6Gi", "1Gi", "4Gi"),
}
"""Pod sizes by component, or container sizes of the plain Jobs."""

MPI_WORKERS = {"mpijob-4gpu-64cpu": 4, "mpijob-8gpu-128cpu": 8}
"""Number of workers of each MPI overlay; half of them learn."""
