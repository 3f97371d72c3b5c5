"""The environment of ``docs/howto/train/several_agents.md`` keeps the contract."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from tengen.envs import check_own_env, make_own

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "train" / "several_agents.md"


def test_the_environment_of_the_page():
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    defined = {}
    exec(program, defined)
    check_own_env(defined["Team"], num_steps=200)
    env = make_own(defined["Team"], "team", 2, 0)
    assert env.spec.agents == ("left", "right")
    assert env.num_envs == 4


@pytest.mark.parametrize("name", re.findall(r"`(test_\w+)`", PAGE.read_text()))
def test_a_test_of_a_known_bug_exists(name):
    tests = Path(__file__).parents[1]
    assert any(f"def {name}(" in path.read_text() for path in tests.rglob("*.py"))
