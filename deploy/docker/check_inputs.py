#!/usr/bin/env python3
"""Checks what a build of an image takes in; needs no Docker and no package.

::

    python3 deploy/docker/check_inputs.py deploy/docker/Dockerfile
    python3 deploy/docker/check_inputs.py --tag     prints the tag of an image

An error is one line. Exit codes: 0 all is well, 2 something is refused.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "deploy" / "docker"

_KNOWN = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "RUN",
    "USER",
    "WORKDIR",
]
# What the images have besides tengen's own dependencies.
_EXTRAS = ("envs", "atari", "mpi", "ray")


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile."""

    line: int
    """Where it begins, from 1."""
    word: str
    """As ``COPY``."""
    rest: str
    """On one line."""


def instructions(path: Path) -> list[Instruction]:
    """Returns the instructions of a Dockerfile.

    Raises:
        ValueError: One is not known, or a line goes on after the last.
    """
    found = []
    lines = iter(enumerate(path.read_text().splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = line
        while whole.endswith("\\"):
            follows = next(lines, None)
            if follows is None:
                raise ValueError(f"{path.name}:{number} (\\) must have a next line")
            whole = f"{whole[:-1].rstrip()} {follows[1].strip()}"
        word, _, rest = whole.strip().partition(" ")
        if word not in _KNOWN:
            raise ValueError(
                f"{path.name}:{number} ({word}) must be an instruction; correct it"
            )
        found.append(Instruction(number, word, rest.strip()))
    return found


def problems(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yields what is wrong with a Dockerfile and what it takes in.

    Args:
        path: The Dockerfile.
        root: The folder that is sent to the build.
    """
    try:
        found = instructions(path)
    except (ValueError, OSError) as error:
        yield str(error)
        return
    yield from _structure(path, found, root)
    yield from _copies(path, found, root)
    yield from _packages(path, found, root)


def _structure(path: Path, found: list[Instruction], root: Path) -> Iterator[str]:
    words = [one.word for one in found]
    stages = [one for one in found if one.word == "FROM"]
    base = (root / "deploy" / "docker" / "base_image").read_text().strip()
    tag = base.partition("@")[0]
    if not re.fullmatch(r"[\w./-]+:\w+\.\w+\.[\w.-]+(@sha256:[0-9a-f]{64})?", base):
        yield f"base_image ({base}) must be NAME:EXACT.VERSION.TAG; name one"
    arguments = [one.rest for one in found if one.word == "ARG"]
    if f"BASE={tag}" not in arguments:
        yield f"{path.name} (ARG BASE) must be base_image's, {tag}; correct it"
    for one in stages:
        if not one.rest.startswith("${BASE}"):
            yield f"{path.name}:{one.line} (FROM {one.rest}) must be ${{BASE}}; use it"
    if len(stages) < 2:
        yield f"{path.name} (stages, {len(stages)}) must be two; build apart"
    if "HEALTHCHECK" in words:
        yield f"{path.name} (HEALTHCHECK) must be absent, as roles end; remove it"
    users = [one.rest for one in found if one.word == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        last = users[-1] if users else "absent"
        yield f"{path.name} (USER {last}) must be numbers above 0, UID:GID; set it"
    entries = [one.rest for one in found if one.word == "ENTRYPOINT"]
    try:
        program = json.loads(entries[-1])[0] if entries else "absent"
    except ValueError:
        program = entries[-1]
    if program != "/usr/bin/tini":
        yield f"{path.name} (ENTRYPOINT {program}) must be a list with tini; set it"


def _copies(path: Path, found: list[Instruction], root: Path) -> Iterator[str]:
    ignored = _ignored(root)
    stages = {
        one.rest.split()[-1]
        for one in found
        if one.word == "FROM" and " AS " in one.rest
    }
    for one in found:
        if one.word not in ("COPY", "ADD"):
            continue
        where = f"{path.name}:{one.line}"
        words = one.rest.split()
        options = [word for word in words if word.startswith("--")]
        sources = [word for word in words if not word.startswith("--")][:-1]
        stage = next((o.partition("=")[2] for o in options if "--from=" in o), None)
        if stage is not None:
            if stage not in stages:
                yield f"{where} (--from={stage}) must be a stage above; correct it"
            continue
        for source in sources:
            if not (root / source).exists():
                yield f"{where} (COPY {source}) must be there; correct the path"
            elif ignored(source):
                yield f"{where} (COPY {source}) must not be in .dockerignore; let it in"


def _ignored(root: Path) -> Callable[[str], bool]:
    """Returns whether .dockerignore keeps a path out: its last pattern that fits."""
    patterns = [
        line.strip()
        for line in (root / ".dockerignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]

    def is_ignored(source: str) -> bool:
        out = False
        parts = source.rstrip("/").split("/")
        heads = ["/".join(parts[: i + 1]) for i in range(len(parts))]
        for pattern in patterns:
            kept = pattern.startswith("!")
            wanted = pattern.lstrip("!").strip("/")
            if any(fnmatch.fnmatch(head, wanted) for head in heads):
                out = not kept
        return out

    return is_ignored


def _packages(path: Path, found: list[Instruction], root: Path) -> Iterator[str]:
    pins = _pins(root)
    copied = " ".join(one.rest for one in found if one.word == "COPY")
    names: set[str] = set()
    for source in re.findall(r"\S*packages\S*\.txt", copied):
        for line in (root / source).read_text().split():
            word, _, version = line.partition("==")
            name = _normal(word)
            if not re.fullmatch(r"[a-z0-9-]+", name):
                yield f"{source} ({line}) must be a name, or NAME==VERSION; correct it"
            elif version and name in pins:
                yield f"{source} ({line}) must be pinned once; see constraints.txt"
            elif not version and name not in pins:
                yield f"{source} ({line}) must be pinned in constraints.txt; pin it"
            names.add(name)
    for name in sorted(_wanted(root) - names):
        yield f"packages.txt ({name}, absent) must have what tengen needs; add it"
    for one in found:
        installs = re.findall(r"pip install [^&]*", one.rest)
        for install in installs:
            if one.word == "RUN" and "--no-deps" not in install:
                yield f"{path.name}:{one.line} (pip install) must be --no-deps; add it"


def _wanted(root: Path) -> set[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"]]
    for extra in _EXTRAS:
        lines += project["optional-dependencies"][extra]
    return {_normal(re.match(r"[\w.-]+", line)[0]) for line in lines}  # type: ignore[index]


def _pins(root: Path) -> dict[str, str]:
    text = (root / "constraints.txt").read_text()
    pairs = re.findall(r"^([\w.-]+)==(\S+)$", text, re.M)
    return {_normal(name): version for name, version in pairs}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def tag(root: Path = ROOT) -> str:
    """Returns the tag of an image for processors."""
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
