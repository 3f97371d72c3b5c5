"""``tengen doctor``: checks the machine, the compiled core and the Python packages."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from tengen.cgroups import memory_limit_bytes, quota_cores
from tengen.distribution import DISTRIBUTION, pip_install, pip_install_extra
from tengen.errors import TengenError
from tengen.observe.progress_line import ProgressLine
from tengen.run import available_cores
from tengen.run.machine import cpu_features, cpu_name

State = Literal["ok", "absent", "bad"]


@dataclass(frozen=True)
class Finding:
    """The result of one check of ``tengen doctor``."""

    text: str
    """What the check found, and what follows for tengen."""
    state: State = "ok"
    """``absent``: an optional part is missing; ``bad``: training would fail."""
    fix: str = ""
    """The command or action that fixes the problem; empty if nothing needs fixing."""


_COMPILERS = ("c++", "g++", "clang++")
# CPU features that speed up networks, most beneficial first.
_FEATURES = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "asimd")
# CPU features required by each set of kernels in core/simd/dispatch.cc, fastest first.
_KERNEL_FEATURES = {
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"),
    "avx2": ("avx2", "fma", "bmi1", "bmi2"),
}
_MIN_MEMORY_GIB = 2.0
_MIN_DISK_GIB = 1.0
# The default of containers, 64 MB of shared memory, is too little for image replay.
_MIN_SHARED_MIB = 256
_SHARED = Path("/dev/shm")


def check_machine() -> dict[str, Finding]:
    """Checks the machine; returns the findings by name of the check."""
    return {
        "python": _python(),
        "core": core(),
        "processor": _processor(),
        "kernels": kernels(),
        "cores": cores(),
        "memory": memory(),
        "disk": disk(),
        "shared memory": _shared_memory(),
        "compiler": _program(
            _COMPILERS, "only to build the core", "apt-get install g++"
        ),
        "mpirun": _program(
            ("mpirun",), "only for --launch mpi", "apt-get install openmpi-bin"
        ),
    }


def core() -> Finding:
    """Checks whether the compiled core can be imported."""
    try:
        found = importlib.import_module("tengen._core")
    except ImportError as error:
        return Finding(
            f"not importable ({error})",
            "bad",
            "reinstall the wheel; in a checkout: make setup",
        )
    return Finding(str(found.__file__))


def kernels() -> Finding:
    """Reports the SIMD kernels that the core uses, and why faster ones are not used."""
    try:
        chosen = importlib.import_module("tengen._core").kernel_name()
    except ImportError:
        return Finding("unknown without the core", "bad", "see core")
    features = cpu_features()
    reasons = []
    for name, needed in _KERNEL_FEATURES.items():
        if name == chosen:
            reasons.append(f"the processor has {' '.join(needed)}")
            break
        missing = [feature for feature in needed if feature not in features]
        if missing and platform.machine() in ("x86_64", "AMD64"):
            reasons.append(f"not {name}: the processor lacks {' '.join(missing)}")
    return Finding(f"{chosen}: {'; '.join(reasons) or 'the only ones there are'}")


def cores() -> Finding:
    """Reports the number of usable cores, which is the default number of threads."""
    quota = quota_cores()
    limit = "no quota" if quota is None else f"a CPU quota of {quota:g}"
    usable = available_cores()
    return Finding(
        f"{usable} of {os.cpu_count()} usable, {limit}; --threads defaults to {usable}"
    )


def memory() -> Finding:
    """Reports the memory that this process may use, by machine and cgroup."""
    gib = memory_limit_bytes() / 2**30
    text = f"{gib:.1f} GiB (at least {_MIN_MEMORY_GIB:g})"
    if gib >= _MIN_MEMORY_GIB:
        return Finding(text)
    return Finding(text, "bad", "give this machine or container more memory")


def disk() -> Finding:
    """Reports the free disk space at ``runs/``, the default folder of runs."""
    runs = Path("runs")
    folder = runs if runs.is_dir() else Path.cwd()
    gib = shutil.disk_usage(folder).free / 2**30
    text = f"{gib:.1f} GiB free in {folder.resolve()} (at least {_MIN_DISK_GIB:g})"
    if gib >= _MIN_DISK_GIB:
        return Finding(text)
    return Finding(text, "bad", "free some space, or use --out on another disk")


def _python() -> Finding:
    return Finding(f"{platform.python_version()} at {sys.executable}")


def _processor() -> Finding:
    present = [name for name in _FEATURES if name in cpu_features()]
    words = " ".join(present) or "of the baseline"
    return Finding(f"{cpu_name()} ({platform.machine()}): {words}")


def _shared_memory() -> Finding:
    if not _SHARED.is_dir():
        return Finding(f"no {_SHARED}: actor processes use files", "absent")
    mib = shutil.disk_usage(_SHARED).total / 2**20
    text = f"{mib:,.0f} MiB in {_SHARED}, for --actors"
    if mib >= _MIN_SHARED_MIB:
        return Finding(text)
    return Finding(text, "absent", "in a container: docker run --shm-size=1g")


def _program(names: tuple[str, ...], what_for: str, fix: str) -> Finding:
    for name in names:
        if path := shutil.which(name):
            return Finding(f"{path}, {what_for}")
    return Finding(f"not found, needed {what_for}", "absent", f"on Debian: {fix}")


# Packages that tengen requires. Only openvino has a fallback: torch.
_REQUIRED = ("numpy", "torch", "openvino", "onnx", "safetensors", "rich")
_WITHOUT = {"openvino": "torch is used instead, which is slower"}

EXTRAS = {
    "envs": "environments of Gymnasium",
    "atari": "Atari games",
    "minatar": "MinAtar",
    "mujoco": "MuJoCo",
    "minigrid": "MiniGrid",
    "popgym": "POPGym",
    "pettingzoo": "PettingZoo",
    "mpe": "MPE, the particle environments of several agents",
    "lbf": "level-based foraging, for several agents",
    "gobigger": "GoBigger",
    "smax": "SMAX, battles of several agents in JAX",
    "vizdoom": "VizDoom",
    "football": "football",
    "minari": "tengen demos import",
    "video": "films of episodes",
    "export": "export of networks for which tengen has no ONNX rules",
    "openspiel": "games of OpenSpiel",
    "ray": "--launch ray",
    "mpi": "--launch mpi",
    "tensorboard": "the program tensorboard, which plots the curves of runs",
    "wandb": "curves in Weights & Biases",
    "mlperf": "tengen mllog",
    "serve": "tengen serve",
}
"""The purpose of each extra, without the extras for benchmarks, tests and docs."""


def check_required() -> dict[str, Finding]:
    """Imports the packages that training requires; returns findings by package."""
    return {name: package(name) for name in _REQUIRED}


def package(name: str) -> Finding:
    """Imports the package ``name``; reports its version or the reason of a failure."""
    fix = pip_install(name)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name not in _WITHOUT or error.name != name:
            return Finding(f"absent ({error})", "bad", fix)
        return Finding(f"absent: {_WITHOUT[name]}", "absent", fix)
    except Exception as error:  # A library may raise anything while it loads.
        text = f"not importable ({type(error).__name__}: {error})"
        return Finding(text, "bad", pip_install("--force-reinstall", name))
    try:
        return Finding(metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding("installed, but not by pip")


def check_extras() -> dict[str, Finding]:
    """Checks which extras are installed, without imports; returns findings by name."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        text = "unknown: tengen was not installed by pip"
        return {
            "extras": Finding(
                text, "absent", "install the wheel with pip; in a checkout: make setup"
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
        text = f"not an extra of the installed tengen: {what_for}"
        return Finding(text, "absent", "reinstall tengen; in a checkout: make setup")
    text = f"no {', '.join(missing)}: {what_for}"
    return Finding(text, "absent", pip_install_extra(name))


def check_choices() -> dict[str, Finding]:
    """Reports the default device, inference backend and learning backend.

    Imports torch and the core.
    """
    try:
        importlib.import_module("torch")
    except Exception:  # The finding for torch gives the reason.
        unknown = Finding("unknown without torch", "bad", "see torch")
        return {"device": unknown, "inference": unknown, "learning": unknown}
    from tengen.inference.config import default_devices

    device = default_devices()
    return {
        "device": _device(device),
        "inference": _inference(device),
        "learning": _learning(device),
    }


def _device(device: str) -> Finding:
    import torch

    from tengen.inference.config import has_driver

    cuda = torch.cuda
    if device != "cpu":
        names = [cuda.get_device_name(i) for i in range(cuda.device_count())]
        return Finding(f"{device}, the first of: {', '.join(names)}")
    is_driven = has_driver()
    if is_driven and torch.version.cuda is None:
        return Finding(
            "cpu: there is a GPU, but this torch was built without CUDA",
            "absent",
            f"uninstall torch, then {pip_install('torch')}, from an index whose torch "
            f"has CUDA, such as PyPI",
        )
    if is_driven:
        return Finding(
            "cpu: there is a GPU driver, but torch finds no GPU",
            "absent",
            "check nvidia-smi and CUDA_VISIBLE_DEVICES",
        )
    return Finding("cpu: torch finds no GPU")


def _inference(device: str) -> Finding:
    if device != "cpu":
        return Finding("torch on the GPU, in bf16 if the GPU supports it, else fp32")
    from tengen.inference.openvino_backend import is_installed, supported_precisions

    if not is_installed():
        return Finding(
            "torch, in fp32 or bf16, whichever a trial run finds faster; OpenVINO is "
            "missing",
            "absent",
            pip_install("openvino"),
        )
    try:
        native = supported_precisions()
    except (TengenError, RuntimeError) as error:
        return Finding(
            f"OpenVINO does not work ({error})", "bad", "set inference.backend=torch"
        )
    rest = [name for name in ("bf16", "int8") if name not in native]
    why = f"; the processor has no native {' or '.join(rest)}" if rest else ""
    if len(native) == 1:
        return Finding(f"OpenVINO in {native[0]}{why}")
    return Finding(
        f"OpenVINO in {', '.join(native)}; a run measures which is best" + why
    )


def _learning(device: str) -> Finding:
    if device != "cpu":
        return Finding(f"torch on {device}")
    from tengen.inference.config import has_bfloat16

    if has_bfloat16():
        return Finding("torch on the CPU, in bf16")
    return Finding("torch on the CPU, in fp32, because it has no native bf16")


_MARKS = {"ok": "ok ", "absent": "-- ", "bad": "BAD"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds nothing: ``doctor`` has no arguments of its own."""


def doctor(args: argparse.Namespace) -> dict[str, Any]:
    """Runs all checks; prints a line per check, and a fix below it if needed.

    Blocks for several seconds while it imports the packages that training uses.

    Returns:
        ``exit_code``, 1 if a check is bad, else 0; and ``checks`` by name, with the
        keys ``ok``, ``state``, ``text`` and ``fix``.
    """
    with ProgressLine("importing the packages that training uses"):
        checks = examine()
    if not args.json:
        width = max(map(len, checks))
        for name, found in checks.items():
            print(f"{_MARKS[found.state]} {name:<{width}}  {found.text}")
            if found.fix:
                print(f"{'':{width + 6}}fix: {found.fix}")
    return {
        "exit_code": 1 if any(one.state == "bad" for one in checks.values()) else 0,
        "checks": {
            name: {
                "ok": one.state != "bad",
                "state": one.state,
                "text": one.text,
                "fix": one.fix,
            }
            for name, one in checks.items()
        },
    }


def examine() -> dict[str, Finding]:
    """Runs all checks; returns the findings by name, in the order of printing."""
    found = {**check_machine(), **check_required()}
    if found["core"].state == "ok":
        found.update(check_choices())
    return {**found, **check_extras()}
