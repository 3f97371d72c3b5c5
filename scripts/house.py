"""Counts code-size measures that must not grow, such as lines and unused options.

    python scripts/house.py [COUNT]

Without COUNT it prints every count; with COUNT it lists the counted items, one per
line. ``tests/test_house.py`` holds each count to a limit.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "tengen"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def files_of(*folders: str, suffixes: Iterable[str] = (".py",)) -> list[Path]:
    """Returns the files below folders of the checkout that end with a suffix."""
    found = {path for name in folders for path in (ROOT / name).rglob("*")}
    return sorted(path for path in found if path.suffix in suffixes)


def lines_of(paths: Iterable[Path]) -> list[str]:
    """Returns all lines of files, each prefixed with its file's name."""
    return [
        f"{name}: {line}"
        for path in paths
        for name in [path.relative_to(ROOT)]
        for line in path.read_text().splitlines()
    ]


def is_native_test(path: Path) -> bool:
    """Returns whether a file of the core is a test, a test helper or a fuzz target."""
    return path.stem.endswith(("_test", "testing")) or "fuzz" in path.parts


@cache
def native_files(tests: bool) -> list[Path]:
    """Returns the core's test files, or all of its other files."""
    found = files_of("core", suffixes=(".cc", ".h"))
    return [path for path in found if is_native_test(path) == tests]


def lines_of_tests() -> list[str]:
    """Returns the lines of the tests in Python and in C++."""
    return lines_of([*files_of("tests"), *native_files(True)])


def lines_of_tools() -> list[str]:
    """Returns the lines of benchmarks and scripts."""
    return lines_of(files_of("benchmarks", "scripts", suffixes=(".py", ".sh", ".c")))


def last_name(node: ast.AST | None) -> str:
    """Returns the last name of a dotted expression, or "" for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


@cache
def trees() -> dict[str, ast.Module]:
    """Returns the syntax tree of every module of the package, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        words = path.relative_to(SOURCES).with_suffix("").parts
        name = ".".join(words).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text())
    return found


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Returns the nodes of every module's syntax tree, outer nodes first."""
    return {name: list(ast.walk(tree)) for name, tree in trees().items()}


def nodes_for_types(found: list[ast.AST]) -> set[int]:
    """Returns the identities of the nodes below ``if TYPE_CHECKING``."""
    return {
        id(node)
        for block in found
        if isinstance(block, ast.If) and last_name(block.test) == "TYPE_CHECKING"
        for child in block.body
        for node in ast.walk(child)
    }


@cache
def imports(for_types: bool = True) -> dict[str, set[str]]:
    """Returns the modules that each module imports, including imports in functions.

    Args:
        for_types: Whether imports below ``if TYPE_CHECKING`` count.
    """
    modules = trees()
    found = {}
    for name in modules:
        targets = set()
        skipped = set() if for_types else nodes_for_types(nodes()[name])
        for node in nodes()[name]:
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= inner & set(modules)
                targets |= {node.module} if inner - set(modules) else set()
        found[name] = targets & set(modules) - {name}
    return found


def one_importer() -> list[str]:
    """Returns the modules that exactly one other module imports."""
    counts = Counter(target for targets in imports().values() for target in targets)
    return sorted(name for name, count in counts.items() if count == 1)


def packages() -> list[str]:
    """Returns the top-level packages."""
    return sorted(path.name for path in PACKAGE.iterdir() if list(path.glob("*.py")))


def import_ranks() -> dict[str, int]:
    """Returns the rank of each part of the package in the import order, low first."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    block = page.split("## Import order")[1].split("```")[1]
    lines = block.strip().splitlines()
    return {name: rank for rank, line in enumerate(lines) for name in line.split()}


def imports_up(for_types: bool = True) -> list[str]:
    """Returns imports of a higher part by a lower; ``for_types`` as in ``imports``."""
    ranks = import_ranks()
    parts = {name: [*name.split("."), ""][1] for name in trees()}
    return sorted(
        f"{name} imports {target}"
        for name, targets in imports(for_types).items()
        for target in targets
        if ranks.get(parts[target], -1) > ranks.get(parts[name], len(ranks))
    )


def circles() -> list[str]:
    """Returns the import cycles, as sets of modules; imports for types count.

    Imports of and by the ``__init__`` of a package do not count, because it imports
    nearly every module below it.
    """
    inner = {name.rpartition(".")[0] for name in trees()}
    graph = {
        name: sorted(targets - inner)
        for name, targets in imports().items()
        if name not in inner
    }
    return sorted(" ".join(sorted(found)) for found in components(graph))


def components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Returns the strongly connected components of two or more (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    work: list[tuple[str, Iterator[str]]] = []

    def enter(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        work.append((name, iter(graph[name])))

    for start in graph:
        if start not in index:
            enter(start)
        while work:
            name, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    place = stack.index(name)
                    found.append(stack[place:])
                    del stack[place:]
            elif target not in index:
                enter(target)
            elif target in stack:
                low[name] = min(low[name], index[target])
    return [component for component in found if len(component) > 1]


@cache
def words_of_users() -> Counter[str]:
    """Returns the number of uses of each name outside the tests, with definitions."""
    found: Counter[str] = Counter()
    paths = files_of("src", "benchmarks", "scripts", "examples")
    paths += [*files_of("docs", suffixes=(".md", ".ipynb")), ROOT / "README.md"]
    for path in paths:
        found.update(re.findall(r"[A-Za-z_]\w*", path.read_text()))
    return found


def definitions() -> Iterator[tuple[str, ast.AST, str]]:
    """Yields functions, classes and module constants as (module, node, name)."""
    for module, tree in trees().items():
        for node in nodes()[module]:
            if isinstance(node, Function | ast.ClassDef):
                yield module, node, node.name
            elif isinstance(node, ast.Assign) and node in tree.body:
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield module, node, target.id


def symbols_without_caller() -> list[str]:
    """Returns the public functions, classes, methods and constants without a caller.

    The name of such a symbol occurs only in its definition: not in the package, the
    benchmarks, the scripts, the examples or the documentation. Tests do not count as
    callers. Names that begin with ``visit_``, ``do_`` and ``test_`` are skipped,
    because libraries call them, and so are names that end with ``_arguments`` and
    classes with a ``kind``, because ``tengen.cli`` and ``OpenConfig`` look them up.
    """
    words = words_of_users()
    return sorted(
        f"{module}.{name}"
        for module, node, name in definitions()
        if not name.startswith(("_", "visit_", "do_", "test_"))
        and not name.endswith("_arguments")
        and not any(
            isinstance(line, ast.AnnAssign) and last_name(line.target) == "kind"
            for line in getattr(node, "body", [])
        )
        and words[name] == 1
    )


def enum_values_without_reader() -> list[str]:
    """Returns the enum values whose names occur only in their definitions."""
    words = words_of_users()
    found = []
    for module, found_nodes in nodes().items():
        for node in found_nodes:
            bases = {last_name(base) for base in getattr(node, "bases", [])}
            if isinstance(node, ast.ClassDef) and any(
                base.endswith(("Enum", "Flag")) for base in bases
            ):
                found += [
                    f"{module}.{node.name}.{target.id}"
                    for line in node.body
                    if isinstance(line, ast.Assign)
                    for target in line.targets
                    if isinstance(target, ast.Name) and words[target.id] == 1
                ]
    return sorted(found)


class Calls:
    """The arguments that calls pass to each function name, by position and keyword."""

    def __init__(self) -> None:
        self.positions: Counter[str] = Counter()
        self.keywords: defaultdict[str, set[str]] = defaultdict(set)
        # Functions that are passed as values, or called with ``*`` or ``**``.
        self.open: set[str] = set()
        for path in files_of("benchmarks", "scripts", "examples"):
            self.read(list(ast.walk(ast.parse(path.read_text()))))
        for found in nodes().values():
            self.read(found)

    def read(self, found: list[ast.AST]) -> None:
        """Records the calls in a module; ``found`` lists parents before children."""
        called = {id(node.func) for node in found if isinstance(node, ast.Call)}
        for node in found:
            name = last_name(node)
            if name and id(node) not in called:
                self.open.add(name)
            elif isinstance(node, ast.Call):
                self.read_call(last_name(node.func), node)

    def read_call(self, name: str, node: ast.Call) -> None:
        """Records the arguments of one call of ``name``."""
        self.positions[name] = max(self.positions[name], len(node.args))
        self.keywords[name] |= {word.arg for word in node.keywords if word.arg}
        if any(isinstance(value, ast.Starred) for value in node.args) or any(
            word.arg is None for word in node.keywords
        ):
            self.open.add(name)


def options_without_caller() -> list[str]:
    """Returns the parameters with a default that no call of their function passes.

    Calls are matched to functions by name alone, so some unused options are missed, but
    none is reported by mistake. Skips functions that are passed as values, called with
    ``*`` or ``**``, or named in the documentation, because users call them.
    """
    calls = Calls()
    pages = Counter(
        word
        for path in [*files_of("docs", suffixes=(".md", ".ipynb")), ROOT / "README.md"]
        for word in re.findall(r"[A-Za-z_]\w*", path.read_text())
    )
    found = []
    for module, nodes_of_module in nodes().items():
        for owner, node in functions(nodes_of_module):
            name = owner if node.name == "__init__" else node.name
            if name.startswith("__") or name in calls.open or pages[name]:
                continue
            found += [
                f"{module}.{name}({option})"
                for place, option in options(node, is_method=bool(owner))
                if option not in calls.keywords[name]
                and (place is None or calls.positions[name] <= place)
            ]
    return sorted(found)


def functions(found: list[ast.AST]) -> Iterator[tuple[str, Function]]:
    """Yields a module's functions, each with its class's name or ""."""
    for node in found:
        if isinstance(node, ast.Module | ast.ClassDef | Function):
            for child in node.body:
                if isinstance(child, Function):
                    yield node.name if isinstance(node, ast.ClassDef) else "", child


def options(node: Function, is_method: bool) -> Iterator[tuple[int | None, str]]:
    """Yields parameters with a default and their positions; None if keyword-only."""
    decorators = {last_name(line) for line in node.decorator_list}
    skipped = 1 if is_method and "staticmethod" not in decorators else 0
    places = [*node.args.posonlyargs, *node.args.args][skipped:]
    defaults = len(node.args.defaults)
    for place in range(len(places) - defaults, len(places)):
        yield place, places[place].arg
    for argument, default in zip(
        node.args.kwonlyargs, node.args.kw_defaults, strict=True
    ):
        if default is not None:
            yield None, argument.arg


@cache
def nodes_of_tests() -> list[tuple[Path, ast.AST]]:
    """Returns the nodes of the tests' syntax trees, each with its file."""
    return [
        (name, node)
        for path in files_of("tests")
        for name in [path.relative_to(ROOT)]
        for node in ast.walk(ast.parse(path.read_text()))
    ]


def tests_of_prose() -> list[str]:
    """Returns the tests that match an error message's wording."""
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, node in nodes_of_tests()
        if isinstance(node, Function)
        and node.name.startswith("test_")
        and any(
            isinstance(word, ast.keyword) and word.arg == "match"
            for word in ast.walk(node)
        )
    ]


def monkeypatches() -> list[str]:
    """Returns the calls that replace an attribute for one test."""
    return [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, node in nodes_of_tests()
        if isinstance(node, ast.Call)
        and last_name(node.func) == "setattr"
        and last_name(getattr(node.func, "value", None)) == "monkeypatch"
    ]


def private_attributes() -> list[str]:
    """Returns the places where a test reads another object's undocumented attribute."""
    return [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, node in nodes_of_tests()
        if isinstance(node, ast.Attribute)
        and re.match(r"_[a-z]", node.attr)
        and not re.fullmatch(r"_(core|asdict|replace|exit|repr_\w+_)", node.attr)
        and last_name(node.value) != "self"
    ]


COUNTS: dict[str, Callable[[], list[str]]] = {
    "lines_of_src": lambda: lines_of(files_of("src")),
    "lines_of_core": lambda: lines_of(native_files(False)),
    "lines_of_tests": lines_of_tests,
    "lines_of_benchmarks_and_scripts": lines_of_tools,
    "packages": packages,
    "modules_with_one_importer": one_importer,
    "imports_up": imports_up,
    "circles": circles,
    "symbols_without_caller": symbols_without_caller,
    "enum_values_without_reader": enum_values_without_reader,
    "options_without_caller": options_without_caller,
    "tests_of_prose": tests_of_prose,
    "monkeypatches": monkeypatches,
    "private_attributes": private_attributes,
}


def main(arguments: list[str]) -> int:
    """Prints every count, or the items of the given counts; returns the exit code."""
    if arguments and arguments[0] not in COUNTS:
        print(
            f"COUNT ({arguments[0]}) must be one of {', '.join(COUNTS)}",
            file=sys.stderr,
        )
        return 2
    for name in arguments:
        print("\n".join(COUNTS[name]()))
    for name, count in COUNTS.items() if not arguments else ():
        print(f"{name:32} {len(count())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
