"""Only a family's own folder may branch on the kind of agent, network or experience."""

import ast
from pathlib import Path

import pytest

from tengen.agents import Agent
from tengen.experience import ExperienceConfig
from tengen.launch import __file__ as launch_file
from tengen.nets import NetConfig

PACKAGE = Path(launch_file).parent.parent
FAMILIES = {"agents": Agent, "nets": NetConfig, "experience": ExperienceConfig}
ASKING = {"isinstance", "issubclass", "type"}
# Functions that test for an attribute that only some classes of a family have.
PROBING = {"hasattr", "getattr"}
# Files that may branch on experience: agents choose it, and these configs open it.
OPENING = {
    *(Path("agents", f"{name}.py") for name in ("alphazero", "dqn", "iqn", "r2d2")),
    *(Path("agents", f"{name}.py") for name in ("ngu", "agent57", "qmix")),
    *(Path("agents/bases", f"{name}.py") for name in ("environment_agent", "q_agent")),
    *(Path("agents/bases", f"{name}.py") for name in ("team_agent",)),
    *(Path("roles", "config", f"{name}.py") for name in ("environments", "games")),
}
# Names of variables and fields that hold a member of a family.
MEMBERS = {"agent", "net", "nets", "store", "experience"}
# Kinds that are also common words elsewhere.
COMMON_KINDS = {"table", "window", "minigo"}


def own_folder(path):
    return path.relative_to(PACKAGE).parts[0]


def classes_of(family):
    """Returns the names of a family's public classes, except errors."""
    return {
        node.name
        for path in (PACKAGE / family).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not any("Error" in ast.unparse(base) for base in node.bases)
    }


def names_in(*nodes):
    return {
        child.id if isinstance(child, ast.Name) else child.attr
        for node in nodes
        for child in ast.walk(node)
        if isinstance(child, ast.Name | ast.Attribute)
    }


def texts_in(*nodes):
    return {
        child.value
        for node in nodes
        for child in ast.walk(node)
        if isinstance(child, ast.Constant) and isinstance(child.value, str)
    }


def reads_kind(*nodes):
    """Returns whether the code reads the kind or the class of a member."""
    return any(
        (child.attr == "kind" and names_in(child.value) & MEMBERS)
        or child.attr == "__class__"
        for node in nodes
        for child in ast.walk(node)
        if isinstance(child, ast.Attribute)
    )


def asks(node, classes, kinds):
    """Returns whether a node tests for a class, kind or class name of a family."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ASKING:
            return bool(names_in(*node.args[1:]) & classes)
        if node.func.id in PROBING and len(node.args) > 1:
            return bool(names_in(node.args[0]) & MEMBERS)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("startswith", "endswith") and (
            reads_kind(node.func.value) or "__name__" in names_in(node.func.value)
        )
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return reads_kind(*sides) or bool(
            texts_in(*sides) & kinds or names_in(*sides) & classes
        )
    if isinstance(node, ast.Subscript):
        return reads_kind(node.slice)
    if isinstance(node, ast.Match):
        return reads_kind(node.subject)
    if isinstance(node, ast.MatchClass):
        return bool(names_in(node.cls) & classes)
    if isinstance(node, ast.MatchValue):
        return bool(texts_in(node) & kinds)
    if isinstance(node, ast.ImportFrom):
        return any(one.asname and one.name in classes for one in node.names)
    if isinstance(node, ast.ExceptHandler):
        return isinstance(node.type, ast.Name) and node.type.id == "AttributeError"
    return False


def branches(source, classes, kinds):
    """Returns the line numbers of all branches on a class or kind of a family."""
    return sorted(
        {
            getattr(node, "lineno", 0)
            for node in ast.walk(ast.parse(source))
            if asks(node, classes, kinds)
        }
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_asks_which_one_runs(family):
    classes, kinds = classes_of(family), set(FAMILIES[family].kinds())
    kinds -= COMMON_KINDS
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if own_folder(path) != family
        for line in branches(path.read_text(), classes, kinds)
        if not (family == "experience" and path.relative_to(PACKAGE) in OPENING)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(config.net, MlpConfig)",
        "type(net) is MlpConfig",
        "net.__class__ == MlpConfig",
        "net.__class__.__name__ == 'MlpConfig'",
        "config.agent.kind == 'vtrace'",
        "kind == 'vtrace'",
        "config.agent.kind in FAST",
        "config.agent.kind.startswith('vt')",
        "{'vtrace': f}[config.agent.kind]",
        "getattr(config.store, 'max_ahead', None)",
        "hasattr(experience, 'validation')",
        "from tengen.nets.mlp import MlpConfig as Config",
        "match net:\n    case MlpConfig(): pass",
        "match kind:\n    case 'vtrace': pass",
        "match config.agent.kind:\n    case _: pass",
        "try: pass\nexcept AttributeError: pass",
    ],
)
def test_a_branch_is_found(line):
    assert branches(line, {"MlpConfig"}, {"vtrace"})


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(x, int)",
        "array.dtype.kind == 'f'",
        "reply.kind != ERROR",
        "store.name == 'a'",
        "from tengen.nets.mlp import MlpConfig",
    ],
)
def test_what_is_no_branch_is_not_found(line):
    assert branches(line, {"MlpConfig"}, {"vtrace"}) == []
