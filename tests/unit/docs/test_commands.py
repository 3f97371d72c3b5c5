"""Every command and file that a page names exists."""

import argparse
import itertools
import re
from pathlib import Path

from tengen.cli import command_parser, find_command
from tests.unit.docs.pages import PAGES, ROOT, blocks_of, name_of, prose_of
from tests.unit.docs.typed import page_commands

# Folders of the checkout; every path below them that a page names must exist.
FOLDERS = (
    *("core", "src", "docs", "tests", "benchmarks", "examples", "scripts"),
    *("deploy", "web"),
)
NAMED = re.compile(rf"(?<![\w/.:~-])(?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]")
# Files that a page tells its reader to create.
TO_WRITE = re.compile(
    r"(tests|core|src)/.*(domineering|corridor|actor_critic|gru|nice|NAME)"
)


def commands():
    return [(name_of(page), typed) for page in PAGES for typed in page_commands(page)]


def long_options(parser):
    """Returns the options of a parser and of its subparsers."""
    found = {text for action in parser._actions for text in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found |= long_options(below)
    return found


def test_commands_and_their_options_are_known():
    found = commands()
    assert len(found) > 300
    wrong = []
    for page, typed in found:
        if not re.fullmatch(r"[a-z]+", typed.words[0]):
            continue  # a placeholder or an option: COMMAND, --version
        known = long_options(command_parser(find_command(typed.words)))
        given = {word.split("=")[0] for word in typed.words if word.startswith("--")}
        if unknown := given - known:
            wrong.append(f"{page}: tengen {' '.join(typed.words)}: {unknown}")
    assert wrong == []


def test_files_that_are_named_are_there():
    wrong = []
    for page in PAGES:
        spans = re.findall(r"`([^`]+)`", prose_of(page))
        shell = [block.text for block in blocks_of(page) if block.language == ""]
        for name in {n for text in (*spans, *shell) for n in NAMED.findall(text)}:
            path = name.rstrip("./")
            is_there = (ROOT / path).exists() or any(
                ROOT.glob(f"{path}*") if path.endswith(("_", "-")) else ()
            )
            if not is_there and not TO_WRITE.match(path):
                wrong.append(f"{name_of(page)}: {name}")
    assert wrong == []


def test_targets_of_make_that_are_named_are_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        (name_of(page), target)
        for page in PAGES
        for text in (*re.findall(r"`(make [^`]*)`", prose_of(page)), page.read_text())
        for target in re.findall(r"^make ([a-z-]+)", text, re.M)
    }
    assert ("README.md", "train") in named
    assert [one for one in sorted(named) if one[1] not in targets] == []


def test_lists_begin_after_an_empty_line():
    """Without an empty line, a list renders on GitHub but not on the site."""
    item, above_it = re.compile(r"([-*]|\d+\.) "), re.compile(r"([-*]|\d+\.) |  |\s*$")
    wrong = [
        f"{name_of(page)}: {below}"
        for page in PAGES
        for above, below in itertools.pairwise(prose_of(page).splitlines())
        if item.match(below) and not above_it.match(above)
    ]
    assert wrong == []


# Complete paths without wildcards, such as results/curves/ppo-*.csv. A path after a
# commit (COMMIT:PATH) is skipped, because it may exist only in that commit.
ANYWHERE = re.compile(
    r"(?<![0-9a-f]{8}:)\b(?:benchmarks/[\w/-]*\w(?:\.\w+)?/?(?![\w/{*-])|docs/[\w/-]+\.md\b)"
)
OF_KATAGO = "docs/GTP_Extensions.md"
SUFFIXES = {".c", ".cc", ".h", ".ipynb", ".json", ".md", ".py", ".sh", ".toml", ".yaml"}
SUFFIXES |= {".sbatch", ".ts", ".yml"}


def test_scripts_and_pages_that_any_file_names_are_there():
    """Checks the full text of results, manifests and code, docstrings included."""
    found = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*found, *ROOT.iterdir())
        if (path.suffix in SUFFIXES or path.name == "Makefile") and path.is_file()
        if "node_modules" not in path.parts and path != Path(__file__)
        for name in set(ANYWHERE.findall(path.read_text())) - {OF_KATAGO}
        if not (ROOT / name).exists()
    ]
    assert wrong == []
