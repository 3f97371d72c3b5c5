"""Installs this checkout into .venv, and says in one line why when it cannot.

Runs on the Python that preflight.py accepted, with the standard library alone. pip's
own configuration is respected and no package index is added.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ENVIRONMENT = Path(".venv")
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "installed"

# What pip prints for each cause, most telling first, and what to do about it.
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


def main() -> int:
    """Makes the environment and returns pip's exit code."""
    if not PYTHON.exists():
        print("setup: making .venv", flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["-c", "constraints.txt", ".[test]"]
    print("setup:", " ".join(command[1:]), flush=True)
    code, output = run(command)
    if code == 0:
        STAMP.touch()
        return 0
    advice = f"pip (exit code {code}) failed; see its words above"
    for words, cause in CAUSES:
        if any(word in output for word in words):
            advice = cause
            break
    print("setup: " + advice, file=sys.stderr)
    return 1


def run(command: list[str]) -> tuple[int, str]:
    """Runs a command, shows its output as it comes, and returns it too."""
    # Ninja would start two jobs more than cores, and each takes about a gigabyte.
    environment = {"CMAKE_BUILD_PARALLEL_LEVEL": str(num_cores()), **os.environ}
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
    """Returns the cores this process may use, which may be fewer than the host's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("setup: interrupted; run the same command to go on", file=sys.stderr)
        sys.exit(130)
