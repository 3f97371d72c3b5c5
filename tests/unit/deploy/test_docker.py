"""The inputs of an image build are complete and pinned; no image is built."""

import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata

import pytest
from deploy.docker import check_inputs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = check_inputs.ROOT
FILES = ("Dockerfile", "Dockerfile.cuda")
HERE = "deploy/docker"


@pytest.fixture
def root(tmp_path):
    """A copy of the inputs of an image build, with empty source folders."""
    for name in (
        "constraints.txt",
        "pyproject.toml",
        "CMakeLists.txt",
        ".dockerignore",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("README.md", "LICENSE"):
        (tmp_path / name).touch()
    for name in ("core", "src", "scripts"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "fetch_minigo.py").touch()
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / HERE, tmp_path / HERE, ignore=ignore)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_sound(name):
    assert list(check_inputs.problems(ROOT / HERE / name)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("Dockerfile", "COPY core core", "COPY cor core", "COPY cor) must be there"),
        ("base_image", ":3.11.14-slim-bookworm", "", "(ARG BASE) must be base_image"),
        ("packages.txt", "numpy\n", "", "(numpy, absent) must have what tengen needs"),
        ("packages.txt", "numpy\n", "nunpy\nnumpy\n", "(nunpy) must be pinned"),
        ("packages.txt", "numpy\n", "numpy\nray>=2\n", "(ray>=2) must be pinned"),
        ("packages.txt", "numpy\n", "numpy==1\n", "(numpy==1) must be pinned once"),
        ("../../constraints.txt", "ray==2.60.0\n", "", "(ray) must be pinned"),
        ("../../.dockerignore", "!core\n", "", "(COPY core) must not be in .dockerig"),
    ],
)
def test_an_error_is_named(root, file, old, new, said):
    changed = root / HERE / file
    text = changed.read_text()
    assert old in text
    changed.write_text(text.replace(old, new))
    found = list(check_inputs.problems(root / HERE / "Dockerfile", root))
    assert any(said in line for line in found), found
    assert all("\n" not in line for line in found)


def test_both_images_build_tengen_alike():
    stages = [
        (ROOT / HERE / name).read_text().split("FROM ${BASE} AS build")[1].split("FROM")
        for name in FILES
    ]
    assert stages[0][0] == stages[1][0]


def test_pins_are_within_what_the_project_takes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        lines += extra
    text = (ROOT / "constraints.txt").read_text()
    pins = {
        canonicalize_name(name): version
        for name, version in re.findall(r"^(\S+)==(\S+)$", text, re.M)
    }
    pinned = [Requirement(line) for line in lines]
    pinned = [one for one in pinned if canonicalize_name(one.name) in pins]
    assert len(pinned) > 20
    wrong = [
        str(one)
        for one in pinned
        if not one.specifier.contains(pins[canonicalize_name(one.name)])
    ]
    assert wrong == []


def test_packages_have_what_they_need_themselves():
    """Checks the installed packages; an image build runs pip check on all."""
    names = set()
    for file in ("packages.txt", "packages-cuda.txt"):
        lines = (ROOT / HERE / file).read_text().split()
        names |= {line.partition("==")[0] for line in lines}
    num_looked = 0
    for name in sorted(names):
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        num_looked += 1
        for one in map(Requirement, needed):
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                assert canonicalize_name(one.name) in names, f"{name} needs {one.name}"
    assert num_looked > 20


def run(root, *words, docker=""):
    """Runs build.sh with a shell script as docker."""
    folder = root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "docker").write_text(f"#!/bin/sh\n{docker or 'exit 1'}\n")
    (folder / "docker").chmod(0o755)
    return subprocess.run(
        [root / HERE / "build.sh", *words],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_dry_run_needs_no_docker(root):
    done = run(root, "--cuda", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        *("docker", "build", "--file", f"{HERE}/Dockerfile.cuda", "--build-arg"),
        "BASE=python:3.11.14-slim-bookworm",
        *("--tag", f"tengen:{check_inputs.tag()}-cuda", "."),
    ]


def test_a_build_runs_the_command_of_the_dry_run(root):
    command = run(root, "--dry-run").stdout.split()
    done = run(root, docker='[ "$1" = info ] || echo docker "$@"')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == command


@pytest.mark.parametrize(
    ("words", "docker", "code", "said"),
    [
        ([], "", 1, "docker (no daemon) must answer"),
        (["--gpu"], "", 2, "option (--gpu) is not known"),
        (["--pin"], "echo latest", 1, "digest (latest) must be sha256:"),
    ],
)
def test_what_fails_is_one_line(root, words, docker, code, said):
    base = (root / HERE / "base_image").read_text()
    done = run(root, *words, docker=docker)
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert said in line
    assert (root / HERE / "base_image").read_text() == base


def test_an_input_that_is_refused_builds_nothing(root):
    (root / "src").rmdir()
    done = run(root, docker="echo docker")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "COPY src) must be there" in done.stderr


def test_a_pin_is_the_registrys_digest(root):
    digest = "sha256:" + "3f" * 32
    done = run(root, "--pin", docker=f"echo {digest}")
    assert done.returncode == 0, done.stderr
    base = (root / HERE / "base_image").read_text()
    assert base == f"python:3.11.14-slim-bookworm@{digest}\n"
    # A later build uses the pin, and the check of its inputs passes.
    done = run(root, "--dry-run")
    assert f"BASE={base.strip()}" in done.stdout.split()
