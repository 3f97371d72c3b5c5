"""The pages of ``docs/agents`` agree with the code: every setting and its default.

A page's table of settings has a column per task: the value that ``tengen train TASK
--agent KIND`` sets, or ``-`` if the task's network has no such setting.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tengen import games
from tengen.agents import Agent, EnvironmentAgent
from tengen.recipes import make_config

PAGES = Path(__file__).parents[3] / "docs" / "agents"
KINDS = sorted(k for k, c in Agent.kinds().items() if issubclass(c, EnvironmentAgent))
HEADINGS = [
    "Equations",
    "How it acts",
    "What is stored",
    "Settings",
    "Differs from the paper",
    "Measured",
]
NEEDED = {"atari": "ale_py", "mpe": "mpe2", "mujoco": "mujoco", "smax": "jaxmarl"}
# Tasks with equal settings that need no package.
LIKE = {
    "mpe": "tests.team_environments:ThreeMasked",
    "smax": "tests.team_environments:ManyNumbers",
}
NO_SETTING = "-"


@dataclasses.dataclass(frozen=True)
class Row:
    """A setting in a page's table."""

    defaults: dict[str, str]
    source: str


@cache
def settings_of(kind):
    """Returns a page's table, keyed by setting names as ``--set`` takes them."""
    lines = (PAGES / f"{kind}.md").read_text().splitlines()
    (start,) = (i for i, line in enumerate(lines) if line.startswith("| setting |"))
    _, *tasks, last = cells(lines[start])
    assert last == "source"
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *defaults, source = cells(line)
        assert name not in rows, f"{name} is there twice"
        rows[name] = Row(dict(zip(tasks, defaults, strict=True)), source)
    return rows


def cells(line):
    return [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def tasks_of(kind):
    return list(next(iter(settings_of(kind).values())).defaults)


def config_of(kind, task):
    pytest.importorskip("gymnasium")
    suite, is_suite, _ = task.partition("/")
    if is_suite and suite in LIKE and find_spec(NEEDED[suite]) is None:
        task = LIKE[suite]
        games.allow(task)
    elif is_suite:
        pytest.importorskip(NEEDED[suite])
    return make_config(task, kind, None)


def value_of(config, setting):
    """Returns a setting's value, or ``NO_SETTING``."""
    value = config
    for name in setting.split("."):
        if not dataclasses.is_dataclass(value) or not hasattr(value, name):
            return NO_SETTING
        value = getattr(value, name)
    return value


def read(cell):
    try:
        return ast.literal_eval(cell)
    except (SyntaxError, ValueError):
        return cell


def told(part, path, *, whole):
    """Returns the settings of ``part`` that a page must list.

    Args:
        part: A config.
        path: The config's name, a prefix of its settings.
        whole: Whether all settings are listed, or only those that differ from the
            defaults of ``part``'s class.
    """
    names = []
    for field in dataclasses.fields(part):
        value, name = getattr(part, field.name), f"{path}.{field.name}"
        if dataclasses.is_dataclass(value):
            names += told(value, name, whole=whole)
        elif field.name != "kind" and (
            whole or value != getattr(type(part)(), field.name)
        ):
            names.append(name)
    return names


def test_every_agent_has_a_page_and_every_page_an_agent():
    assert sorted(p.stem for p in PAGES.glob("*.md") if p.stem != "README") == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_its_sections_and_a_command(kind):
    text = (PAGES / f"{kind}.md").read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert f"tengen train {tasks_of(kind)[0]} --agent {kind}" in text
    assert all(row.source for row in settings_of(kind).values())


@pytest.mark.parametrize(
    ("kind", "task"), [(kind, task) for kind in KINDS for task in tasks_of(kind)]
)
def test_defaults_are_those_of_the_code(kind, task):
    config = config_of(kind, task)
    rows = settings_of(kind)
    needed = [
        *told(config.agent, "agent", whole=True),
        *told(config.store, "store", whole=False),
        *told(config.learner, "learner", whole=False),
        *told(config.net, "net", whole=False),
        "net.kind",
    ]
    assert [name for name in needed if name not in rows] == [], "not in the page"
    written = {name: read(row.defaults[task]) for name, row in rows.items()}
    have = {name: value_of(config, name) for name in rows}
    assert written == have


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_names_a_setting_that_is_not_there(kind):
    configs = [config_of(kind, task) for task in tasks_of(kind)]
    text = (PAGES / f"{kind}.md").read_text()
    found = r"(?<![\w./])(?:agent|store|learner|net|inference)(?:\.[a-z]\w*)+"
    for setting in sorted(set(re.findall(found, text))):
        values = [value_of(config, setting) for config in configs]
        assert any(value != NO_SETTING for value in values), setting
