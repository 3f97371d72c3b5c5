"""Each script of benchmarks/ and each page of docs/ that any file names is there.

``test_commands.py`` has what pages name in backticks and blocks. This one has the whole
text of all that a reader follows a path from: pages, results, docstrings and messages
of code, manifests.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.docs.pages import ROOT

FOLDERS = (
    *("benchmarks", "core", "deploy", "docs", "examples", "scripts", "src", "tests"),
    "web",
)
SUFFIXES = {".c", ".cc", ".h", ".ipynb", ".json", ".md", ".py", ".sh", ".toml", ".yaml"}
SUFFIXES |= {".sbatch", ".ts", ".yml"}
# Whole paths, and none that stands for several, as results/curves/ppo-*.csv. A path
# after a commit, as git names it, was there at that commit.
NAMED = re.compile(
    r"(?<![0-9a-f]{8}:)\b"
    r"(?:benchmarks/[\w/-]*\w(?:\.\w+)?/?(?![\w/{*-])|docs/[\w/-]+\.md\b)"
)
# A page of KataGo's repository.
OF_OTHERS = {"docs/GTP_Extensions.md"}


def files() -> list[Path]:
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    found += ROOT.iterdir()
    return sorted(
        path
        for path in found
        if path.is_file()
        and (path.suffix in SUFFIXES or path.name == "Makefile")
        and "node_modules" not in path.parts
        # These name some that are not there: this one, and the history.
        and path not in (Path(__file__), ROOT / "CHANGELOG.md")
    )


def missing(text: str) -> list[str]:
    """Returns the paths that a text names and that are not there."""
    named = set(NAMED.findall(text)) - OF_OTHERS
    return sorted(path for path in named if not (ROOT / path).exists())


def test_scripts_and_pages_that_are_named_are_there() -> None:
    num_named, wrong = 0, []
    for path in files():
        text = path.read_text()
        num_named += len(NAMED.findall(text))
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name in missing(text)]
    assert num_named > 400
    assert wrong == []


def test_a_path_that_is_not_there_is_found() -> None:
    script, page, folder = "benchmarks/a.py", "docs/b.md", "benchmarks/c"
    text = f"`python {script} --help`, ({page}, docs/install.md), {folder}/, {folder}."
    assert missing(text) == [script, folder, f"{folder}/", page]
    assert missing(f"`python 0123abcd:{script}` and 0123abcd:{page}") == []
