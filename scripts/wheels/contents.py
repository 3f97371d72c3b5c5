"""Checks of a wheel's name and list of files, and of an sdist."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path

MAX_WHEEL_BYTES = 8_000_000

PACKAGE = "tengen/"
# File name of the extension, by Python tag and ABI tag of the wheel.
EXTENSIONS = {
    ("cp311", "cp311"): r"_core\.cpython-311-[\w-]+\.so",
    ("cp312", "abi3"): r"_core\.abi3\.so",
}
PLATFORM = re.compile(r"manylinux_2_\d+_(x86_64|aarch64)")
# Files that every wheel must contain. A comparison of the wheel with the source would
# miss a file that both lack.
NEEDED = (
    "tengen/py.typed",
    "tengen/bundled/players/connect4/weights.safetensors",
    "tengen/cli/__init__.py",
    "tengen/cli/data/bash.txt",
    "tengen/serve/assets/index.html",
    "tengen/serve/assets/app.js",
    "tengen/serve/assets/style.css",
    "tengen/cli/data/game.txt",
    "tengen/tests/test_installed.py",
)
BUILT = "tengen/_core.pyi"
# Files of an sdist from which the core and the package's page are built.
SOURCES = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "core/python/module.cc",
    "pyproject.toml",
    "src/tengen/cli/__init__.py",
)
LEFT_OVER = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv|build|dist|runs|node_modules)/|\.(so|o|pyc|whl)$"
    r"|_core\.pyi$"
)


def package_files(sdist: Path) -> frozenset[str]:
    """Returns an sdist's package files, with their paths in a wheel."""
    return frozenset(
        name.removeprefix("src/")
        for name in _sdist_names(sdist)
        if name.startswith(f"src/{PACKAGE}")
    )


def wheel_problems(
    wheel: Path, expected: Collection[str], max_bytes: int = MAX_WHEEL_BYTES
) -> list[str]:
    """Returns the problems of a wheel, one line per problem.

    Args:
        wheel: The file.
        expected: The source's package files, from ``package_files``.
        max_bytes: Maximum size of the file.
    """
    found = []
    num_bytes = wheel.stat().st_size
    if num_bytes > max_bytes:
        found.append(
            f"size ({num_bytes / 1e6:.2f} MB) must be at most {max_bytes / 1e6:g} MB"
        )
    words = wheel.name.removesuffix(".whl").split("-")
    python, abi, platform = words[-3:]
    extension = EXTENSIONS.get((python, abi))
    if extension is None:
        found.append(f"tag ({python}-{abi}) must be cp311-cp311 or cp312-abi3")
    if not all(PLATFORM.fullmatch(one) for one in platform.split(".")):
        found.append(f"platform ({platform}) must be one of manylinux")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    built = {
        name for name in names if extension and re.fullmatch(PACKAGE + extension, name)
    } | ({BUILT} & names)
    if extension and not built - {BUILT}:
        found.append(f"extension ({extension}) is missing")
    about = f"{'-'.join(words[:2])}.dist-info/"
    wanted = {*expected, *NEEDED, BUILT}
    found += [f"file ({name}) is missing" for name in sorted(wanted - names)]
    found += [
        f"file ({name}) does not belong in a wheel"
        for name in sorted(names - wanted - built)
        if not name.startswith(about)
    ]
    return found


def sdist_problems(sdist: Path) -> list[str]:
    """Returns the problems of an sdist, one line per problem."""
    names = _sdist_names(sdist)
    wanted = {*SOURCES, *(f"src/{name}" for name in NEEDED)}
    found = [f"file ({name}) is missing" for name in sorted(wanted - names)]
    found += [
        f"file ({name}) does not belong in an sdist"
        for name in sorted(names)
        if LEFT_OVER.search(name)
    ]
    return found


def _sdist_names(sdist: Path) -> set[str]:
    """Returns an sdist's files, without its top folder."""
    with tarfile.open(sdist) as archive:
        return {
            one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()
        }
