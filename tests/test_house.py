"""The house's own rules: who may import whom, what a file may hold."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tengen"
MAX_LINES = 500
TEXT = {".py", ".cc", ".h", ".md", ".toml", ".txt", ".cmake", ".yaml", ".sh", ""}
TEXT |= {".sbatch", ".cuda"}


def import_ranks() -> dict[str, int]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = page.split("## Import order")[1].split("```")[1]
    lines = block.strip().splitlines()
    return {name: rank for rank, line in enumerate(lines) for name in line.split()}


def include_ranks() -> dict[str, int]:
    page = (ROOT / "core" / "README.md").read_text()
    return {
        name: rank
        for rank, name in enumerate(re.findall(r"^- `([\w/]+)/`", page, re.M))
    }


def include_rank(path: str, ranks: dict[str, int], is_test: bool) -> int:
    """Returns the rank of a file's folder; for a test, of the last one in its part.

    A folder that is not listed has that of the one that it lies in.
    """
    folders = path.split("/")[:-1]
    if is_test:
        return max(
            rank for name, rank in ranks.items() if name.split("/")[0] == folders[0]
        )
    while (name := "/".join(folders)) not in ranks:
        folders.pop()
    return ranks[name]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    """Returns the parts of tengen that a file imports, in functions too."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for child in block.body
        for node in ast.walk(child)
    }
    names = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    parts = [name.split(".") for name in names]
    ranks = import_ranks()
    return {
        words[1]
        for words in parts
        if words[0] == "tengen" and len(words) > 1 and words[1] in ranks
    }


def project_files() -> list[Path]:
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
    assert parts - {"__init__", "__main__"} <= set(import_ranks())
    folders = {path.name for path in (ROOT / "core").iterdir() if path.is_dir()}
    assert folders <= set(include_ranks())


def test_imports_go_one_way():
    ranks = import_ranks()
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if part_of(path) in ranks
        for name in imported_parts(path)
        if ranks[name] > ranks[part_of(path)]
    ]
    assert wrong == []


def test_games_are_opened_by_the_door_that_imports_nothing_untyped():
    """``games.make`` imports ``module:Class`` whoever wrote it: it is for users."""
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                found = node.module in ("tengen.games", "tengen.games.registry")
                found &= any(alias.name == "make" for alias in node.names)
                found &= path != PACKAGE / "games" / "__init__.py"
            else:
                found = isinstance(node, ast.Attribute) and (
                    ast.unparse(node) in ("games.make", "registry.make")
                )
            if found:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: use open_game")
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
    assert callable(module.add_arguments)


# What a page has its reader write.
OWN_NAMES = {"tengen.launch.nice"}


def resolves(name: str) -> bool:
    """Returns whether a dotted name is a module's, a class's or a field's."""
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
