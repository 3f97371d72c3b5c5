"""Installs this checkout into .venv, or prints the reason for a failure in one line.

::

    python scripts/install.py         tengen, and the packages for README's commands
    python scripts/install.py test    also the packages of the tests

Runs on the Python that preflight.py accepted, with only the standard library. pip's own
configuration is respected, with one exception: if there is no GPU and pip has no index
configured, torch comes from PyTorch's index of CPU builds, because PyPI's torch needs
another 2.5 GB of CUDA libraries. TORCH=default keeps pip's own choice, but only if
torch is not installed yet.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import venv
from pathlib import Path

from preflight import has_gpu

ENVIRONMENT = Path(".venv")
PYTHON = ENVIRONMENT / "bin" / "python"
PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]
# pip would compile all files of all packages (30 s and 180 MB), but Python compiles a
# file on its first import. PIP_NO_COMPILE=1 would have the opposite effect.
INSTALL = [*PIP, "install", "--no-compile", "-c", "constraints.txt"]
# Stamp file and pip requirement by command-line argument. tengen is installed with all
# extras that README and the tutorials use. The tests' packages are an extra of the
# installed tengen, which is not built again.
PARTS = {
    "": (ENVIRONMENT / "installed", ".[envs,serve]"),
    "test": (ENVIRONMENT / "test-packages", "tengen-rl[test]"),
}
CPU_TORCH = "https://download.pytorch.org/whl/cpu"
OWN_INDEX = re.compile(r"\.(index-url|extra-index-url|find-links|no-index)=")

# pip's output for each cause, most specific cause first, and the advice to print.
CAUSES = (
    (
        ("No space left on device",),
        "disk (full) must have room for the packages; free some and run again",
    ),
    (
        ("CMake Error", "CMake configuration failed", "FAILED: ", "fatal error:"),
        "core (core/) must compile; see the compiler's words above",
    ),
    (
        (
            "Connection refused",
            "Failed to establish a new connection",
            "NewConnectionError",
            "ProxyError",
            "Temporary failure in name resolution",
            "timed out",
        ),
        "package index (see pip config list) must be reachable; check the network, "
        "or point pip at an index that is, and run again",
    ),
    (
        ("Could not find a version", "No matching distribution found"),
        "package index (see pip config list) must hold every package of "
        "constraints.txt for this Python; use another index or Python",
    ),
)


def main(part: str = "") -> int:
    """Creates the environment, installs a part, and returns the exit code."""
    stamp, wanted = PARTS[part]
    if not PYTHON.exists():
        say("making .venv")
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    if not part:
        remove_old_name()
        if wants_cpu_torch():
            install_cpu_torch()
    say(" ".join([*INSTALL[1:], wanted]))
    code, output = run([*INSTALL, wanted])
    if code == 0:
        stamp.touch()
        return 0
    advice = f"pip (exit code {code}) failed; see its words above"
    for words, cause in CAUSES:
        if any(word in output for word in words):
            advice = cause
            break
    print("setup: " + advice, file=sys.stderr)
    return 1


def remove_old_name() -> None:
    """Uninstalls the package under its former name, which would own the same files."""
    if any(ENVIRONMENT.glob("lib/python*/site-packages/tengen-*.dist-info")):
        run([*PIP, "uninstall", "--yes", "tengen"])


def wants_cpu_torch() -> bool:
    """Returns whether torch is missing and should be the CPU build."""
    (pin,) = re.findall(r"^torch==(\S+)$", Path("constraints.txt").read_text(), re.M)
    is_there = any(
        ENVIRONMENT.glob(f"lib/python*/site-packages/torch-{pin}*.dist-info")
    )
    if is_there or has_gpu() or os.environ.get("TORCH") == "default":
        return False
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return False
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True)
    return listed.returncode == 0 and not OWN_INDEX.search(listed.stdout)


def install_cpu_torch() -> None:
    """Installs torch from the index of CPU builds, if the index is reachable."""
    say(f"no GPU is seen, so torch is the CPU build of {CPU_TORCH}")
    say("make clean, then make setup TORCH=default, takes the build of pip's own index")
    source = ["--no-deps", "--index-url", CPU_TORCH, "--retries", "1"]
    code, _ = run([*INSTALL, *source, "torch"])
    if code != 0:
        say("pip's own index gives torch instead; that of PyPI is 2.7 GB with CUDA")


def say(text: str) -> None:
    """Prints one line."""
    print("setup:", text, flush=True)


def run(command: list[str]) -> tuple[int, str]:
    """Runs a command, prints its output immediately, and returns code and output."""
    environment = {
        # Ninja's default is two jobs more than cores, and each job needs about 1 GB.
        "CMAKE_BUILD_PARALLEL_LEVEL": str(num_cores()),
        **os.environ,
    }
    output = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if not line.startswith("Requirement already satisfied"):
                sys.stdout.write(line)
                sys.stdout.flush()
            output.append(line)
    return child.returncode, "".join(output)


def num_cores() -> int:
    """Returns the number of cores that this process may use, at most the host's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:2]))
    except KeyboardInterrupt:
        print("setup: interrupted; run the same command to go on", file=sys.stderr)
        sys.exit(130)
