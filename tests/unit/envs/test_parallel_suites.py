"""Suites of environments of several agents."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from tengen import envs
from tengen.envs.suites.suite import ParallelSuite
from tengen.errors import UsageError
from tests.refusals import refused

MODULE = """
from tests.team_environments import {name}

def parallel_env(**how):
    return {name}()
"""


def test_a_suite_has_the_newest_version_of_each_module(tmp_path):
    folder = tmp_path / "team_zoo"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for module, name in (
        *(("walk_v2", "TwoStep"), ("walk_v10", "Signals"), ("run_v0", "Scripted")),
        ("utils", "Missing"),
    ):
        (folder / f"{module}.py").write_text(MODULE.format(name=name))
    suite = ParallelSuite(prefix="zoo/", package="team_zoo", folders=("team_zoo",))
    sys.path.insert(0, str(tmp_path))
    try:
        assert suite.names() == ["zoo/run", "zoo/walk"]
        assert suite.make("zoo/walk", 1, 0).spec.global_state.shape == (8,)
        with refused(UsageError, 'environment ("zoo/wal")', "zoo/walk"):
            suite.make("zoo/wal", 1, 0)
    finally:
        sys.path.remove(str(tmp_path))


def test_a_suite_that_is_not_installed():
    suite = ParallelSuite(prefix="mpe/", package="no_such", folders=("no_such",))
    assert suite.names() == []
    with refused(UsageError, "no_such", "[mpe]"):
        suite.make("mpe/simple_spread", 1, 0)


@pytest.mark.parametrize(
    ("task", "package", "num_agents"),
    [("mpe/simple_spread", "mpe2", 3), ("pettingzoo/pursuit", "pettingzoo", 8)],
)
def test_a_task_of_a_suite(task, package, num_agents):
    pytest.importorskip(package)
    pytest.importorskip("pygame")
    env = envs.make(task, 2, 0)
    first = env.reset()
    for _ in range(3):
        step = env.step(np.zeros(env.num_envs, np.int64))
    assert env.spec.num_agents == num_agents
    assert len(first["agent_id"]) == 2 * num_agents
    assert np.isfinite(step.observation["global_state"]).all()
    env.close()
