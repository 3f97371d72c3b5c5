"""The virtual environments of the peers, one per peer and separate from tengen's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# tengen's own store is measured with the Python that runs this script.
OWN = "tengen"


@dataclass(frozen=True)
class Environment:
    """Packages that are installed together.

    Attributes:
        packages: Arguments of ``pip install``.
        shown: Packages whose versions are reported with a result.
    """

    packages: tuple[str, ...]
    shown: tuple[str, ...]


ENVIRONMENTS = {
    "reverb": Environment(
        # dm-reverb's last wheels are for Python 3.11 and one TensorFlow version.
        ("dm-reverb[tensorflow]==0.14.0", "torch==2.13.0", "numpy<2"),
        ("dm-reverb", "tensorflow", "torch", "numpy"),
    ),
    "ray": Environment(
        ("ray==2.60.0", "cpprb==11.0.0", "numpy<2"), ("ray", "cpprb", "numpy")
    ),
    "cpprb": Environment(("cpprb==11.0.0",), ("cpprb", "numpy")),
    "ding": Environment(
        ("DI-engine==0.5.3", "torch==2.12.1"), ("DI-engine", "torch", "numpy")
    ),
    "torchrl": Environment(
        ("torchrl==0.14.1", "torch==2.15.0"), ("torchrl", "torch", "numpy")
    ),
}
# Each store's name in the tables, its environment and its module:class.
STORES = {
    "tengen": (OWN, "tengen_peer:AcrossProcesses"),
    "Reverb": ("reverb", "reverb_peer:AcrossProcesses"),
    "Ray, replay actor": ("ray", "ray_peer:ReplayActor"),
    "Ray, objects": ("ray", "ray_peer:Objects"),
    "cpprb, shared memory": ("cpprb", "cpprb_peer:Shared"),
    "tengen, one process": (OWN, "tengen_peer:InProcess"),
    "cpprb, one process": ("cpprb", "cpprb_peer:InProcess"),
    "TorchRL, one process": ("torchrl", "torchrl_peer:InProcess"),
    "DI-engine, one process": ("ding", "ding_peer:InProcess"),
}
# The stores whose environments include torch.
FEEDS = ("tengen", "Reverb", "DI-engine, one process", "TorchRL, one process")


def python_of(directory: Path, environment: str) -> str | None:
    """Returns an environment's Python; None if the environment does not exist."""
    if environment == OWN:
        return sys.executable
    path = directory / environment / "bin" / "python"
    return str(path) if path.exists() else None


def versions_of(directory: Path, environment: str) -> str:
    """Returns the versions of an environment's ``shown`` packages."""
    code = (
        "import sys; from importlib.metadata import version; "
        "print(', '.join(f'{name} {version(name)}' for name in sys.argv[1:]))"
    )
    words = [python_of(directory, environment) or "", "-c", code]
    words += ENVIRONMENTS[environment].shown
    return subprocess.run(words, text=True, capture_output=True).stdout.strip()


def setup(directory: Path, python: str) -> None:
    """Creates every environment, and prints the reason if one fails."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, environment in ENVIRONMENTS.items():
        folder = directory / name
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        made = subprocess.run(
            [*pip, *environment.packages], text=True, capture_output=True
        )
        last = made.stderr.strip().splitlines()[-1:]
        print(f"{name}: {versions_of(directory, name) or last}", flush=True)
