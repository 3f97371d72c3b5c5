"""``tengen doctor``: whether this machine can train, and with what."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from tengen.run.machine import (
    available_cores,
    cpu_features,
    cpu_name,
    memory_limit_bytes,
    quota_cores,
)

__all__ = ["add_arguments", "doctor", "examine"]

_COMPILERS = ("c++", "g++", "clang++")
# What the net's kernels gain most from, best first.
_FEATURES = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "asimd")
_LIBRARIES = (
    "numpy",
    "torch",
    "openvino",
    "onnx",
    "safetensors",
    "gymnasium",
    "tensorboard",
    "wandb",
)
_REQUIRED = ("numpy", "torch")
_DRAWING = ("tensorboard", "wandb")
_MIN_MEMORY_GIB = 2.0
_MIN_DISK_GIB = 1.0

Finding = tuple[bool, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds nothing: ``doctor`` takes no arguments of its own."""


def doctor(args: argparse.Namespace) -> dict[str, Any]:
    """Prints one line a check; returns ``exit_code`` and the ``checks`` by name.

    Blocks for some seconds: it imports every library that training uses.
    """
    checks = examine()
    if not args.json:
        width = max(map(len, checks))
        for name, (ok, text) in checks.items():
            print(f"{'ok  ' if ok else 'BAD '} {name:<{width}}  {text}")
    return {
        "exit_code": 0 if all(ok for ok, _ in checks.values()) else 1,
        "checks": {
            name: {"ok": ok, "text": text} for name, (ok, text) in checks.items()
        },
    }


def examine() -> dict[str, Finding]:
    """Returns every check by name: whether it is well, and what was found."""
    checks: dict[str, Callable[[], Finding]] = {
        "python": _python,
        "compiler": _compiler,
        "cpu": _cpu,
        "cores": _cores,
        "memory": _memory,
        "disk": _disk,
        "core": _core,
        "gpu": _gpu,
    }
    found = {name: check() for name, check in checks.items()}
    found.update({name: _library(name) for name in _LIBRARIES})
    return found


def _python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    return sys.version_info >= (3, 11), text


def _compiler() -> Finding:
    found = [path for name in _COMPILERS if (path := shutil.which(name))]
    text = found[0] if found else "absent; only needed to build the core again"
    return True, text


def _cpu() -> Finding:
    present = [name for name in _FEATURES if name in cpu_features()]
    return True, f"{cpu_name()} ({platform.machine()}): {' '.join(present) or 'basic'}"


def _cores() -> Finding:
    quota = quota_cores()
    limit = "no quota" if quota is None else f"quota {quota:g}"
    return True, f"{available_cores()} usable of {os.cpu_count()} ({limit})"


def _memory() -> Finding:
    gib = memory_limit_bytes() / 2**30
    return gib >= _MIN_MEMORY_GIB, f"{gib:.1f} GiB (at least {_MIN_MEMORY_GIB:g})"


def _disk() -> Finding:
    gib = shutil.disk_usage(Path.cwd()).free / 2**30
    return gib >= _MIN_DISK_GIB, f"{gib:.1f} GiB free here (at least {_MIN_DISK_GIB:g})"


def _core() -> Finding:
    try:
        core = importlib.import_module("tengen._core")
    except ImportError as error:
        return False, f"not importable ({error}); run make setup"
    return True, str(core.__file__)


def _gpu() -> Finding:
    try:
        cuda = importlib.import_module("torch").cuda
        count = cuda.device_count() if cuda.is_available() else 0
        found = [f"cuda:{i} {cuda.get_device_name(i)}" for i in range(count)]
    except ImportError:
        found = []  # the line of torch says why
    return True, ", ".join(found) or "none that torch sees"


def _library(name: str) -> Finding:
    try:
        importlib.import_module(name)
        return True, metadata.version(name)
    except ModuleNotFoundError:
        advice = f"; pip install 'tengen[{name}]' to draw curves by it"
        return name not in _REQUIRED, "absent" + (advice if name in _DRAWING else "")
    except Exception as error:  # a library may fail to load in any way it likes
        return False, f"not importable ({type(error).__name__}: {error})"
