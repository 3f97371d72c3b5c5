"""The machine under tengen: its processor, its memory, its disks, its programs."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tengen.run import available_cores
from tengen.run.machine import (
    cpu_features,
    cpu_name,
    memory_limit_bytes,
    quota_cores,
)

__all__ = ["Finding", "check_machine", "core", "cores", "kernels"]

State = Literal["ok", "absent", "bad"]


@dataclass(frozen=True)
class Finding:
    """One line of ``tengen doctor``."""

    text: str
    """What is there, and what follows for tengen."""
    state: State = "ok"
    """``absent``: something that not everybody needs; ``bad``: training fails."""
    fix: str = ""
    """What to type, or do, where something is missing; else empty."""


_COMPILERS = ("c++", "g++", "clang++")
# What networks gain most from, best first.
_FEATURES = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "asimd")
# What the kernels of core/simd/dispatch.cc ask for, best first.
_KERNEL_FEATURES = {
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"),
    "avx2": ("avx2", "fma", "bmi1", "bmi2"),
}
_MIN_MEMORY_GIB = 2.0
_MIN_DISK_GIB = 1.0
# A container has 64 MB of it, too little for a table of screens.
_MIN_SHARED_MIB = 256
_SHARED = Path("/dev/shm")


def check_machine() -> dict[str, Finding]:
    """Returns every check of this file by name."""
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
            _COMPILERS, "only to build the core again", "apt-get install g++"
        ),
        "mpirun": _program(
            ("mpirun",), "only for --launch mpi", "apt-get install openmpi-bin"
        ),
    }


def core() -> Finding:
    """Returns whether the compiled part can be used."""
    try:
        found = importlib.import_module("tengen._core")
    except ImportError as error:
        return Finding(
            f"not importable ({error})",
            "bad",
            "install its wheel again; of a checkout: make setup",
        )
    return Finding(str(found.__file__))


def kernels() -> Finding:
    """Returns which vector kernels the core has chosen, and why no better ones."""
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
            reasons.append(f"not {name}: it has no {' '.join(missing)}")
    return Finding(f"{chosen}: {'; '.join(reasons) or 'the only ones there are'}")


def cores() -> Finding:
    """Returns how many threads a command takes, and who says so."""
    quota = quota_cores()
    limit = "no quota" if quota is None else f"a quota of {quota:g}"
    usable = available_cores()
    return Finding(
        f"{usable} of {os.cpu_count()} usable, {limit}; that is --threads' default"
    )


def memory() -> Finding:
    """Returns the memory that this process may use, by machine and cgroup."""
    gib = memory_limit_bytes() / 2**30
    text = f"{gib:.1f} GiB (at least {_MIN_MEMORY_GIB:g})"
    if gib >= _MIN_MEMORY_GIB:
        return Finding(text)
    return Finding(text, "bad", "give this machine or container more")


def disk() -> Finding:
    """Returns the room for ``runs/``, where runs go by default."""
    runs = Path("runs")
    folder = runs if runs.is_dir() else Path.cwd()
    gib = shutil.disk_usage(folder).free / 2**30
    text = f"{gib:.1f} GiB free in {folder.resolve()} (at least {_MIN_DISK_GIB:g})"
    if gib >= _MIN_DISK_GIB:
        return Finding(text)
    return Finding(text, "bad", "free some, or say --out on another disk")


def _python() -> Finding:
    return Finding(f"{platform.python_version()} at {sys.executable}")


def _processor() -> Finding:
    present = [name for name in _FEATURES if name in cpu_features()]
    words = " ".join(present) or "of the baseline"
    return Finding(f"{cpu_name()} ({platform.machine()}): {words}")


def _shared_memory() -> Finding:
    if not _SHARED.is_dir():
        return Finding(f"no {_SHARED}: actors in processes use files", "absent")
    mib = shutil.disk_usage(_SHARED).total / 2**20
    text = f"{mib:,.0f} MiB in {_SHARED}, for --actors"
    if mib >= _MIN_SHARED_MIB:
        return Finding(text)
    return Finding(text, "absent", "of a container: docker run --shm-size=1g")


def _program(names: tuple[str, ...], what_for: str, fix: str) -> Finding:
    for name in names:
        if path := shutil.which(name):
            return Finding(f"{path}, {what_for}")
    return Finding(f"not found, needed {what_for}", "absent", f"on Debian: {fix}")
