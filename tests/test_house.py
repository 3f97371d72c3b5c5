"""Rules for the code of this repository: import order, and the contents of files."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import house

from tengen.cli import COMMANDS, command_parser

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tengen"
MAX_LINES = 500
LIMITS = {
    "lines_of_src": 98_691,
    "lines_of_core": 33_278,
    "lines_of_tests": 114_800,
    "lines_of_benchmarks_and_scripts": 9_182,
    "packages": 27,
    "modules_with_one_importer": 115,
    "imports_up": 0,
    "circles": 0,
    "symbols_without_caller": 1,
    "enum_values_without_reader": 0,
    "options_without_caller": 0,
    "tests_of_prose": 5,
    "monkeypatches": 164,
    "private_attributes": 69,
}
TEXT = {".py", ".cc", ".h", ".md", ".toml", ".txt", ".cmake", ".yaml", ".sh", ""}
TEXT |= {".sbatch", ".cuda"}


def include_ranks():
    page = (ROOT / "core" / "README.md").read_text()
    return {
        name: rank
        for rank, name in enumerate(re.findall(r"^- `([\w/]+)/`", page, re.M))
    }


def include_rank(path, ranks, is_test):
    """Returns the rank of a file's folder; for a test, the highest rank of its part.

    A folder that is not listed has the rank of its parent.
    """
    folders = path.split("/")[:-1]
    if is_test:
        return max(
            rank for name, rank in ranks.items() if name.split("/")[0] == folders[0]
        )
    while (name := "/".join(folders)) not in ranks:
        folders.pop()
    return ranks[name]


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def project_files():
    folders = (
        *("src", "core", "tests", "scripts", "docs", "examples", "benchmarks"),
        "deploy",
    )
    files = [path for name in folders for path in (ROOT / name).rglob("*")]
    files += [path for path in ROOT.iterdir() if not path.name.startswith(".")]
    return sorted(
        path
        for path in files
        if path.is_file() and path.suffix in TEXT and "golden" not in path.parts
    )


def test_every_part_has_its_place():
    parts = {part_of(path) for path in PACKAGE.rglob("*.py")}
    assert parts - {"__init__", "__main__"} <= set(house.import_ranks())
    folders = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()}
    assert folders <= set(include_ranks())


def test_the_house_only_shrinks():
    """Limits may only fall: a commit that reduces a count also lowers its limit.

    They were raised once, for action masks, PQN, exploration, demonstrations, several
    agents, and recorded steps of learners: by 7,000 lines of src and 900 of the core;
    then by 88 lines of src, for batches of small networks that are sampled together,
    and by 216 for networks without parameter sharing, and for QMIX on large teams;
    then by 918 for the Python functions of ``tengen.api``, the examples in help, and
    transfer between board sizes. ``tengen.api`` uses three commands' modules.
    One test compares all counts, so that one process reads the files.
    """
    counts = {name: len(house.COUNTS[name]()) for name in LIMITS}
    risen = {name: count for name, count in counts.items() if count > LIMITS[name]}
    assert risen == {}, "python scripts/house.py COUNT lists them"
    # The limit ``imports_up`` also counts imports that only type checkers see.
    assert house.imports_up(for_types=False) == []


PLANTED = {
    "docs/architecture.md": "## Import order\n```\nlow\nhigh\n```\n",
    "README.md": "",
    "src/tengen/low/__init__.py": "",
    "src/tengen/low/first.py": """
from typing import TYPE_CHECKING
from enum import Enum
if TYPE_CHECKING:
    from tengen.low.second import Second
    from tengen.high.top import open_top
class Color(Enum):
    RED = 1
    BLUE = 2
def shut(): ...
""",
    "src/tengen/low/second.py": """
from tengen.low.first import Color
class Second:
    def paint(self, color=Color.RED, *, twice=False): ...
Second().paint(Color.RED)
""",
    "src/tengen/high/__init__.py": "",
    "src/tengen/high/top.py": "def open_top(): ...\n",
    "tests/test_low.py": """
def test_paint(monkeypatch):
    monkeypatch.setattr("tengen.low", 1)
    with pytest.raises(ValueError, match="words"):
        Second()._paint()
""",
    "core/a.cc": "int a;\n",
    "core/a_test.cc": "int b;\nint c;\n",
    "scripts/tool.sh": "true\n",
}
COUNTED = {
    "lines_of_src": 16,
    "lines_of_core": 1,
    "lines_of_tests": 7,
    "lines_of_benchmarks_and_scripts": 1,
    "packages": ["high", "low"],
    "modules_with_one_importer": [
        "tengen.high.top",
        "tengen.low.first",
        "tengen.low.second",
    ],
    "imports_up": ["tengen.low.first imports tengen.high.top"],
    "circles": ["tengen.low.first tengen.low.second"],
    "symbols_without_caller": ["tengen.low.first.shut"],
    "enum_values_without_reader": ["tengen.low.first.Color.BLUE"],
    "options_without_caller": ["tengen.low.second.paint(twice)"],
    "tests_of_prose": ["tests/test_low.py:2 test_paint"],
    "monkeypatches": ["tests/test_low.py:3 monkeypatch.setattr('tengen.low', 1)"],
    "private_attributes": ["tests/test_low.py:5 Second()._paint"],
}


def test_each_count_finds_what_is_planted(tmp_path):
    assert set(COUNTED) == set(LIMITS) == set(house.COUNTS)
    for name, text in PLANTED.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # The script counts the checkout that contains it.
    script = tmp_path / "house" / "house.py"
    script.parent.mkdir()
    script.write_text((ROOT / "scripts" / "house.py").read_text())
    for name, expected in COUNTED.items():
        command = [sys.executable, str(script), name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = done.stdout.splitlines()
        assert (len(found) if isinstance(expected, int) else found) == expected, name


def test_imports_are_by_full_name():
    """Also, only user code may call ``games.make``, which imports ``module:Class``."""
    wrong = []
    for module, nodes in house.nodes().items():
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                is_wrong = node.level > 0 or (
                    node.module in ("tengen.games", "tengen.games.registry")
                    and any(alias.name == "make" for alias in node.names)
                    and module not in ("tengen", "tengen.games")
                )
            else:
                is_wrong = (
                    isinstance(node, ast.Attribute)
                    and node.attr == "make"
                    and isinstance(node.value, ast.Name)
                    and node.value.id in ("games", "registry")
                )
            if is_wrong:
                wrong.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    assert wrong == []


def test_only_launch_imports_a_cluster():
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted(PACKAGE.rglob("*.py"))
        if part_of(path) != "launch"
        and re.search(r"^\s*(import|from) (ray|mpi4py)\b", path.read_text(), re.M)
    ]
    assert wrong == []


def test_includes_go_one_way():
    ranks = include_ranks()
    wrong = []
    for path in sorted((ROOT / "core").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        is_test = path.stem.endswith(("_test", "testing"))
        own = include_rank(str(path.relative_to(ROOT / "core")), ranks, is_test)
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            is_known = name.split("/")[0] in ranks
            if not is_known or include_rank(name, ranks, False) > own:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert wrong == []


def test_only_the_bindings_know_python():
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "core").rglob("*.[hc]*"))
        if "python" not in path.parts
        and re.search(r"nanobind|Python\.h", path.read_text())
    ]
    assert wrong == []


def test_files_are_ascii():
    wrong = [
        str(path.relative_to(ROOT))
        for path in project_files()
        if not path.read_bytes().isascii()
    ]
    assert wrong == []


def test_no_merge_is_half_done():
    sides = re.compile("^" + 7 * "[<>]" + " ", re.M)
    wrong = [
        str(path.relative_to(ROOT))
        for path in project_files()
        if sides.search(path.read_text())
    ]
    assert wrong == []


def test_files_hold_one_idea():
    wrong = {
        str(path.relative_to(ROOT)): num_lines
        for path in project_files()
        if path.suffix in (".py", ".cc", ".h")
        and (num_lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert wrong == {}


def test_light_parts_import_no_torch():
    light = ["games", "search", "store", "run", "observe", "cli"]
    present = [
        f"tengen.{name}"
        for name in light
        if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()
    ]
    code = (
        f"import sys, {', '.join(['tengen', *present])}\n"
        "assert not {'torch', 'openvino', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_its_function(command):
    module_name, function = command.target.split(":")
    module = importlib.import_module(module_name)
    assert callable(getattr(module, function))
    assert command_parser(command).prog == f"tengen {command.name}"


# Modules that a page asks its reader to write.
OWN_NAMES = {"tengen.launch.nice"}


def resolves(name):
    """Returns whether a dotted name is that of a module, an attribute or a field."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            found = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            fields = getattr(found, "__dataclass_fields__", {})
            if word in fields and not hasattr(found, word):
                return word == words[-1]
            if not hasattr(found, word):
                return False
            found = getattr(found, word)
        return True
    return False


def test_names_in_the_docs_resolve():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"(?<![\w/.:-])tengen(?:\.\w+)+", page.read_text())
    }
    assert len(names) > 20
    wrong = [
        f"{page}: {name}"
        for page, name in sorted(names)
        if name not in OWN_NAMES and not resolves(name)
    ]
    assert not wrong
