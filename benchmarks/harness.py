"""Helpers shared by benchmarks/: commands, CPU-seconds and processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

TENGEN = (sys.executable, "-P", "-m", "tengen")

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def tengen(*words: object, settings: dict[str, Any] | None = None) -> list[str]:
    """Returns a tengen command line: ``words``, then ``--set`` for each setting."""
    pairs = [f"--set={name}={value}" for name, value in (settings or {}).items()]
    return [*TENGEN, *map(str, words), *pairs]


def run_command(command: list[str], log: Path | None = None) -> float:
    """Runs a command to completion and returns its CPU-seconds, children included.

    Args:
        command: The program and its arguments.
        log: File to which the output is appended; None discards the output.

    Raises:
        CalledProcessError: The command failed.
    """
    before_s = children_cpu_s()
    with (log or Path(os.devnull)).open("ab") as out:
        subprocess.run(command, check=True, stdout=out, stderr=out)
    return children_cpu_s() - before_s


def report_of(*words: object) -> dict[str, Any]:
    """Returns the report that a tengen command prints with ``--json``."""
    done = subprocess.run(
        tengen(*words, "--json"), check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def children_cpu_s() -> float:
    """Returns the CPU-seconds of ended children, including their own children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Process(NamedTuple):
    """A living process, with data from ``/proc``."""

    parent: int
    started: int
    """Clock ticks from boot to the process's start; unique together with its ID."""
    cpu_s: float
    name: str
    words: list[str]


def processes() -> dict[int, Process]:
    """Returns the processes of this machine by process ID."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "comm").read_text().strip()
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # the process has just ended
        cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        found[int(folder.name)] = Process(
            int(fields[1]), int(fields[19]), cpu_s, name, words
        )
    return found


def memory_mib(process: int, *fields: str) -> float:
    """Returns the sum of ``smaps_rollup`` lines that start with ``fields``, in MiB."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields)) / 1024
