"""Nobody outside a family's own folder asks which agent, network or experience runs."""

import ast
import inspect
from pathlib import Path

import pytest

from tengen.agents import Agent
from tengen.experience import ExperienceConfig
from tengen.launch import __file__ as launch_file
from tengen.nets import NetConfig

PACKAGE = Path(launch_file).parent.parent
FAMILIES = {"agents": Agent, "nets": NetConfig, "experience": ExperienceConfig}
# What a family's classes make, beside the classes themselves.
MADE = {
    "agents": {"EnvironmentAgent", "PolicyAgent", "QAgent", "Update"},
    "nets": {"Net", "BoardNet", "ResNet", "Mlp", "TorsoNet"},
    "experience": {"GameWindow", "ShuffledRows", "StepTable"},
}
ASKING = {"isinstance", "issubclass", "hasattr", "type"}


def own_folder(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def classes_of(name: str) -> set[str]:
    made = {kind.__name__ for kind in FAMILIES[name].kinds().values()}
    return made | MADE[name] | {FAMILIES[name].__name__}


def names_in(node: ast.AST) -> set[str]:
    return {
        child.id if isinstance(child, ast.Name) else child.attr
        for child in ast.walk(node)
        if isinstance(child, ast.Name | ast.Attribute)
    }


def branches(source: str, classes: set[str], kinds: set[str]) -> list[int]:
    """Lines that ask for a class of a family, or for its kind or name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = set().union(*map(names_in, node.args[1:])) if node.args else set()
            strings = {a.value for a in node.args[1:] if isinstance(a, ast.Constant)}
            if node.func.id in ASKING and (asked & classes or strings & {"kind"}):
                found.append(node.lineno)
        elif isinstance(node, ast.MatchClass):
            if names_in(node.cls) & classes:
                found.append(node.lineno)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            values = {
                child.value
                for side in sides
                for child in ast.walk(side)
                if isinstance(child, ast.Constant) and isinstance(child.value, str)
            }
            if values & kinds:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_asks_which_one_runs(family: str) -> None:
    classes, kinds = classes_of(family), set(FAMILIES[family].kinds())
    # Words that mean something else too.
    kinds -= {"table", "window"}
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if own_folder(path) != family
        for line in branches(path.read_text(), classes, kinds)
        # An agent opens its own experience: the two are one algorithm.
        if not (family == "experience" and own_folder(path) == "agents")
    ]
    assert wrong == []


def test_a_branch_is_found() -> None:
    source = inspect.cleandoc(
        """
        if isinstance(config.net, MlpConfig): pass
        if config.agent.kind == "vtrace": pass
        match net:
            case MlpConfig(): pass
        isinstance(x, int)
        """
    )
    assert branches(source, {"MlpConfig"}, {"vtrace"}) == [1, 2, 4]
