"""The packages that training imports, and those that only an extra brings."""

from __future__ import annotations

import importlib
import re
from importlib import metadata

from tengen.cli.doctor.machine import Finding
from tengen.distribution import DISTRIBUTION, pip_install, pip_install_extra

__all__ = ["EXTRAS", "check_extras", "check_required", "package"]

# What tengen imports by itself; openvino alone has another way.
_REQUIRED = ("numpy", "torch", "openvino", "onnx", "safetensors", "rich")
_WITHOUT = {"openvino": "torch computes instead, slower"}

EXTRAS = {
    "envs": "environments of Gymnasium",
    "atari": "Atari games",
    "minatar": "MinAtar",
    "mujoco": "MuJoCo",
    "minigrid": "MiniGrid",
    "popgym": "POPGym",
    "vizdoom": "VizDoom",
    "football": "football",
    "video": "films of episodes",
    "export": "graphs of networks that have no rule of tengen's",
    "openspiel": "games of OpenSpiel",
    "ray": "--launch ray",
    "mpi": "--launch mpi",
    "tensorboard": "the program tensorboard, which shows the curves of runs",
    "wandb": "curves in Weights & Biases",
    "mlperf": "tengen mllog",
    "serve": "tengen serve",
}
"""What each extra is for, but for those of benchmarks, tests and the site of docs/."""


def check_required() -> dict[str, Finding]:
    """Returns what every training uses, by name; imports all of it."""
    return {name: package(name) for name in _REQUIRED}


def package(name: str) -> Finding:
    """Returns whether a package can be imported, and its version."""
    fix = pip_install(name)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name not in _WITHOUT or error.name != name:
            return Finding(f"absent ({error})", "bad", fix)
        return Finding(f"absent: {_WITHOUT[name]}", "absent", fix)
    except Exception as error:  # a library may fail to load in any way it likes
        text = f"not importable ({type(error).__name__}: {error})"
        return Finding(text, "bad", pip_install("--force-reinstall", name))
    try:
        return Finding(metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding("there, installed by something else than pip")


def check_extras() -> dict[str, Finding]:
    """Returns every extra by name, by what pip says is installed; imports nothing."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        text = "unknown: tengen itself was not installed by pip"
        return {
            "extras": Finding(
                text, "absent", "install its wheel by pip; of a checkout: make setup"
            )
        }
    return {
        f"[{name}]": _extra(name, what_for, requirements)
        for name, what_for in EXTRAS.items()
    }


def _extra(name: str, what_for: str, requirements: list[str]) -> Finding:
    names = [
        match[0]
        for text in requirements
        if re.search(rf"extra\s*==\s*[\"']{name}[\"']", text)
        and (match := re.match(r"[\w.-]+", text))
    ]
    missing, found = [], []
    for one in names:
        try:
            found.append(f"{one} {metadata.version(one)}")
        except metadata.PackageNotFoundError:
            missing.append(one)
    if not missing and found:
        return Finding(f"{', '.join(found)}: {what_for}")
    if not names:
        text = f"not an extra of the tengen that pip installed: {what_for}"
        return Finding(
            text, "absent", "install tengen again; of a checkout: make setup"
        )
    text = f"no {', '.join(missing)}: {what_for}"
    return Finding(text, "absent", pip_install_extra(name))
