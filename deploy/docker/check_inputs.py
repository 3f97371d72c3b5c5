#!/usr/bin/env python3
"""Checks the inputs of an image build; needs neither Docker nor packages.

::

    python3 deploy/docker/check_inputs.py deploy/docker/Dockerfile
    python3 deploy/docker/check_inputs.py --tag     prints the tag of an image

Each error is one line. Exit codes: 0 success, 2 an input is refused.
"""

from __future__ import annotations

import fnmatch
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "deploy" / "docker"

# Extras of tengen that the images contain.
_EXTRAS = ("envs", "atari", "mpi", "ray")


def problems(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yields the problems of a Dockerfile's inputs.

    Args:
        path: The Dockerfile.
        root: The build context.
    """
    text = path.read_text()
    base = (root / "deploy" / "docker" / "base_image").read_text().strip()
    if f"ARG BASE={base.partition('@')[0]}\n" not in text:
        yield f"{path.name} (ARG BASE) must be base_image's, {base}; correct it"
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M)
    copied = [word for line in lines for word in line.split()]
    for source in copied:
        if not (root / source).exists():
            yield f"{path.name} (COPY {source}) must be there; correct the path"
        elif _is_ignored(source, root):
            yield f"{path.name} (COPY {source}) must not be in .dockerignore; let it in"
    yield from _packages([one for one in copied if "packages" in one], root)


def _is_ignored(source: str, root: Path) -> bool:
    """Returns whether .dockerignore excludes a path; its last matching line decides."""
    is_ignored = False
    folders = [source, *map(str, Path(source).parents)]
    for pattern in (root / ".dockerignore").read_text().split("\n"):
        if any(fnmatch.fnmatch(one, pattern.lstrip("!")) for one in folders):
            is_ignored = not pattern.startswith("!")
    return is_ignored


def _packages(sources: list[str], root: Path) -> Iterator[str]:
    """Yields unpinned and missing packages, because pip may not install any others."""
    pins, names = _pins(root), set()
    for source in sources:
        for line in (root / source).read_text().split():
            word, _, version = line.partition("==")
            names.add(_normal(word))
            if bool(version) == (_normal(word) in pins):
                yield f"{source} ({line}) must be pinned once; see constraints.txt"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in _EXTRAS:
        wanted += project["optional-dependencies"][extra]
    for name in sorted({_normal(re.split(r"[^\w.-]", one)[0]) for one in wanted}):
        if name not in names:
            yield f"packages.txt ({name}, absent) must have what tengen needs; add it"


def _pins(root: Path) -> dict[str, str]:
    text = (root / "constraints.txt").read_text()
    pairs = re.findall(r"^([\w.-]+)==(\S+)$", text, re.M)
    return {_normal(name): version for name, version in pairs}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def tag(root: Path = ROOT) -> str:
    """Returns the tag of the CPU image."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return f"{project['version']}-ray{_pins(root)['ray']}"


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code."""
    if argv == ["--tag"]:
        print(tag())
        return 0
    if len(argv) != 1 or argv[0].startswith("-"):
        print("check_inputs: arguments must be a Dockerfile, or --tag", file=sys.stderr)
        return 2
    found = [*problems(Path(argv[0]))]
    for line in found:
        print(f"check_inputs: {line}", file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
