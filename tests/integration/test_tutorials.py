"""Runs the files and commands of each tutorial in order, in a new folder.

The commands use an installed copy of tengen in its own virtual environment, without
PYTHONPATH. This file defines all differences from the pages: shorter budgets,
replacements of ``make`` and of the two interactive programs, and skipped lines.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import venv
from importlib import metadata
from pathlib import Path

import pytest

from tengen.distribution import DISTRIBUTION
from tests.integration.runs import SMALL, wait_for
from tests.unit.docs.pages import ROOT, blocks_of

pytestmark = pytest.mark.slow
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))

# Options with budgets, and their shorter values.
BUDGETS = {"--frames": "8k", "--episodes": "2", "--games": "2"}
OF_SCREENS = {"--frames": "2k", "--episodes": "1"}
# Replaces a run of several minutes with three small generations of games.
OF_MINUTES = (*SMALL, "agent.actor.games_per_generation=8", "store.min_rows=20")
# Lets R2D2 learn from a small replay, with little memory.
OF_R2D2 = (
    "agent.actor.num_envs=2",
    "learner.batch_size=8",
    "store.min_items=16",
    "store.samples_per_item=1",
    "store.max_items=1000",
)
NOT_RUN = {
    ". .venv/bin/activate": "the programs of the copy are on PATH already",
    "pip install -c constraints.txt 'tengen-rl[video]'": "the tests' packages film",
    "openssl ": "hosts apart are those of tests/faults/test_hosts_apart.py",
    "tengen train go/9 --games 0 --out runs/go9 ": "as above",
    "tengen learn runs/go9": "as above",
    "TENGEN_RUN_TOKEN=": "as above",
}
NEEDED = {"atari_r2d2": "ale_py", "own_environment": "gymnasium"}
NEEDED |= {"own_agent": "gymnasium", "own_network": "gymnasium"}
# Roles that the page starts in separate terminals.
ROLES = ("learn", "export", "gate", "selfplay")
# Replacements that the page on clusters suggests for a rehearsal.
REHEARSED = {"/shared/go9": "shared/go9", "go/9": "go/5"}


class Place:
    """A folder, and a virtual environment with an installed copy of tengen."""

    def __init__(self, folder):
        self.folder = folder / "checkout"
        self.folder.mkdir()
        shutil.copy(ROOT / "constraints.txt", self.folder)
        environment = folder / "environment"
        venv.create(environment, symlinks=True)
        self.bin = environment / "bin"
        (site,) = environment.glob("lib/python*/site-packages")
        copy_installed(site)
        python = self.bin / "python"
        self.write_program("tengen", f'exec {python} -m tengen "$@"')
        self.write_program("pip", f'exec {python} -m pip "$@"')
        # Stands in for make setup, and only copies Python files. The test of the real
        # command is tests/unit/test_setup.py.
        install = f"[ ! -d src/tengen ] || cp -r src/tengen/. {site}/tengen"
        self.write_program("make", f'[ "$*" = setup ] && {{ {install}; }}')
        self.started: dict[Path, subprocess.Popen[bytes]] = {}

    def write_program(self, name, command):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    @property
    def environment(self):
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "CUDA_VISIBLE_DEVICES": "",
            "PIP_NO_INDEX": "1",
        }

    def run(self, command):
        """Runs a shell command, which must succeed."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            input="quit\n",
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    def start(self, command):
        """Starts a shell command in the background."""
        output = self.folder.parent / f"started-{len(self.started)}"
        with output.open("wb") as file:
            self.started[output] = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=file,
            )

    def end(self):
        """Kills the background commands; fails if one of them has failed."""
        failed = [output for output, one in self.started.items() if one.poll()]
        for process in self.started.values():
            process.kill()
            process.wait()
        told = [output.read_text() for output in failed]
        # On a busy machine, a role may start after the page has stopped the run.
        told = [text for text in told if "has a stop request" not in text]
        assert not told, "\n".join(told)


def copy_installed(site):
    """Copies the installed tengen to ``site``, and adds the paths of dependencies."""
    installed = metadata.distribution(DISTRIBUTION)
    # Whole folders, whose compiled modules save seconds of CPU time.
    for name in {file.parts[0] for file in installed.files or ()} - {".."}:
        shutil.copytree(str(installed.locate_file(name)), site / name)
    # The base environment first, because an environment on top has an old setuptools.
    others = [path for path in sys.path[::-1] if Path(path).name == "site-packages"]
    (site / "others.pth").write_text("".join(f"{path}\n" for path in others))


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.end()


def shortened(command):
    """Returns a command with a smaller budget and otherwise unchanged."""
    for old, new in REHEARSED.items():
        command = command.replace(old, new)
    words = shlex.split(command)
    if words[0] != "tengen" or "--games 0" in command:
        return command
    settings = OF_R2D2 if "r2d2" in words else ()
    if "--minutes" in words:
        place = words.index("--minutes")
        words[place : place + 2] = ["--games", "24"]
        settings = OF_MINUTES
    else:
        if words[1] == "train" and not BUDGETS.keys() & set(words):
            words += ["--frames", ""]
        budgets = {**BUDGETS, **(OF_SCREENS if "atari/" in command else {})}
        for option in BUDGETS.keys() & set(words):
            words[words.index(option) + 1] = budgets[option]
        if words[1:3] == ["env", "check"]:
            words += ["--steps", "100"]
    if words[1] == "train":
        for setting in settings:
            words += ["--set", setting]
    return shlex.join(words)


def file_of(prose):
    """Returns the file name in ``prose`` for the next code block, or None."""
    names = re.findall(r"`([\w/]+\.py)`", prose)
    return names[-1] if names else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_commands_run_as_they_are_printed(page, place):
    if page.stem in NEEDED and importlib.util.find_spec(NEEDED[page.stem]) is None:
        pytest.skip(f"needs the package {NEEDED[page.stem]}")
    text, end = page.read_text(), 0
    num_run = 0
    for block in blocks_of(page):
        begin = text.index(f"```{block.language}\n{block.text}", end)
        prose, end = text[end:begin], begin + len(block.text)
        if block.language == "python":
            take_python(place, block.text, file_of(prose))
        elif block.language == "":
            num_run += run_lines(place, block.text.replace("\\\n", ""))
    assert num_run >= 2


def take_python(place, code, name):
    """Writes a code block to the file ``name``, or runs the block if that is None."""
    if name is None:
        place.run(f"python -c {shlex.quote(code)}")
        return
    (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (place.folder / name).write_text(code)


def run_lines(place, lines):
    """Runs the commands of a block; returns the number of commands."""
    num_run = 0
    for line in lines.splitlines():
        if any(line.startswith(one) for one in NOT_RUN) or not line.strip():
            continue
        command, words = shortened(line), line.split()
        if words[0] == "tengen" and words[1] in ROLES:
            place.start(command)
        else:
            place.run(command)
        num_run += 1
    if place.started and "tengen gate" in lines:
        # "Within seconds the gate has published model 0."
        wait_for(lambda: any(place.folder.glob("shared/go9/models/0*")), 600)
    return num_run


def test_a_started_command_that_fails_is_told(tmp_path):
    made = Place(tmp_path)
    made.start("bash -c 'echo why it failed; exit 3'")
    made.start("sleep 100000")
    made.start("true")
    for output in [*made.started][::2]:
        made.started[output].wait()
    with pytest.raises(AssertionError, match=r"^why it failed\n"):
        made.end()
    assert all(process.poll() is not None for process in made.started.values())


def test_the_copy_is_no_checkouts(place):
    code = """
        import os, sys
        from importlib import metadata
        import tengen, tengen._core
        assert "PYTHONPATH" not in os.environ
        for path in (tengen.__file__, tengen._core.__file__):
            assert path.startswith(sys.prefix), path
        assert str(metadata.distribution("tengen-rl").locate_file("")).startswith(
            sys.prefix
        )
    """
    place.run(f"python -c {shlex.quote(textwrap.dedent(code))}")
    for word, reason in NOT_RUN.items():
        assert any(word in page.read_text() for page in PAGES), word
        assert reason
    assert not (place.folder / "src").exists()
    assert os.environ["PATH"] != place.environment["PATH"]
