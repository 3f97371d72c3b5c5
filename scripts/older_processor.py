"""Runs a command as if the processor had no AVX-512, VNNI, bf16 and AMX.

``python scripts/older_processor.py [--kind avx2|v2] COMMAND...``: ``avx2`` keeps the
instructions of most processors from 2013 to 2021; ``v2`` also removes AVX and FMA
(x86-64-v2). The remaining instructions run at full speed, so measurements show an older
instruction set with this processor's clock and caches.

PyTorch's own switches hide instructions from PyTorch. OpenVINO and tengen's core have
no such switches, so older_processor.c emulates their CPUID. Needs Linux on x86-64, cc
and objdump.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path("build") / "older_processor"
SOURCE = Path(__file__).with_suffix(".c")

# Packages whose libraries execute CPUID themselves, and the paths of those libraries.
LIBRARIES = {"openvino": "libs/*.so*", "tengen": "_core*.so"}

# Environment variables of PyTorch, its MKL and oneDNN, and NumPy.
SWITCHES = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4",
    },
    "v2": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    },
}


def main() -> int:
    """Replaces this process by the command; returns only on an error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kind", choices=sorted(SWITCHES), default="avx2")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("command (none) must be given")
    missing = [name for name in ("cc", "objdump") if not shutil.which(name)]
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        missing.append("Linux on x86-64")
    if missing:
        return refuse(
            f"machine (no {', '.join(missing)}) cannot hide instructions; install them"
        )
    # Without these packages, only PyTorch would see an older processor.
    if missing := [name for name in LIBRARIES if not importlib.util.find_spec(name)]:
        return refuse(
            f"python ({sys.executable}) must have {' and '.join(missing)}; run this "
            f"script with the environment's own, as .venv/bin/python"
        )
    environment = environment_of(options.kind)
    os.execvpe(options.command[0], options.command, environment)


def refuse(reason: str) -> int:
    """Prints the reason for an error to stderr, and returns the exit code."""
    print(f"older_processor: {reason}", file=sys.stderr)
    return 2


def environment_of(kind: str) -> dict[str, str]:
    """Returns an environment in which a process sees an older processor.

    Args:
        kind: A key of ``SWITCHES``.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    library = (BUILD / "older_processor.so").resolve()
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        options = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
        subprocess.run(["cc", *options, "-o", library, SOURCE], check=True)
    lines = [
        f"{offset:x} {path.resolve()}\n"
        for path in libraries()
        for offset in sites(path)
    ]
    text = "".join(lines)
    listed = (BUILD / f"sites-{digest(text)}").resolve()
    publish(listed, text)
    return {
        **os.environ,
        **SWITCHES[kind],
        "LD_AUDIT": str(library),
        "OLDER_PROCESSOR": kind,
        "OLDER_PROCESSOR_SITES": str(listed),
    }


def libraries() -> list[Path]:
    """Returns the paths of the libraries whose CPUID is emulated."""
    found = []
    for package, pattern in LIBRARIES.items():
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        for folder in spec.submodule_search_locations:
            found += sorted(Path(folder).glob(pattern))
    # Plug-ins for other devices are never loaded.
    return [path for path in found if not re.search("_gpu_|_npu_", path.name)]


def sites(path: Path) -> list[int]:
    """Returns the positions of CPUID in a library, as offsets from its load address."""
    if b"\x0f\xa2" not in path.read_bytes():
        return []
    stat = path.stat()
    key = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    cache = BUILD / f"{path.name}-{digest(key)}"
    if not cache.exists():
        command = ["objdump", "--disassemble", "--no-show-raw-insn", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        found = [line for line in process.stdout if line.endswith("\tcpuid\n")]
        if process.wait() != 0:
            raise SystemExit(f"older_processor: objdump failed on {path}")
        publish(cache, "".join(found))
    return [int(line.split(":")[0], 16) for line in cache.read_text().splitlines()]


def digest(text: str) -> str:
    """Returns a text's short hash: the first 16 digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def publish(path: Path, text: str) -> None:
    """Writes a file atomically, because another command may read it meanwhile."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
