"""An actor whose turn is redone in a new process, before the learner has one."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

from tengen.agents import EnvironmentAgent
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.recipes import make_config
from tengen.roles import RoleContext, change_config, make_role, write_config
from tengen.roles.host import RoleHost
from tengen.run import RunDirectory
from tests.refusals import refused

pytest.importorskip("gymnasium")

DETAILS = {"sealed": 0}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run of DQN whose process was killed after a turn of the actor."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("CartPole-v1", "dqn", None)
    store = ReplayConfig(
        sampler="prioritized", max_items=2_000, min_items=64, samples_per_item=0.5
    )
    write_config(run, dataclasses.replace(config, store=store))
    host = RoleHost(run, RoleContext(), None)
    for role in ("learn", "export", "gate", "actor", "learn"):
        host.turn(role, DETAILS)
    host.close()
    return run


def test_its_experience_is_that_of_the_checkpoint(run: RunDirectory) -> None:
    host = RoleHost(run, RoleContext(), None)
    report = host.turn("actor", DETAILS)
    assert report is not None
    assert report["num_items"] > 0
    learned = host.turn("learn", DETAILS)
    assert learned is not None
    # What the first process counted goes on.
    assert learned["table"]["num_rows"] > report["num_rows"]
    host.close()


def test_a_stop_ends_a_turn(run: RunDirectory) -> None:
    stop = threading.Event()
    config = make_config("CartPole-v1", "dqn", None)
    agent = config.agent
    assert isinstance(agent, EnvironmentAgent)
    actor = dataclasses.replace(agent.actor, turn_steps=1_000_000)
    config = dataclasses.replace(config, agent=dataclasses.replace(agent, actor=actor))
    role = make_role("actor", config, run, RoleContext(stop=stop))
    threading.Timer(0.2, stop.set).start()
    report = role.turn()
    assert report is not None
    assert report["stopped"]
    role.close()


@pytest.mark.parametrize(
    ("agent", "setting"),
    [
        ("dqn", "agent.is_duelling=false"),
        ("dqn", "agent.num_steps=2"),
        ("dqn", "agent.sees_last_step=true"),
        ("r2d2", "agent.burn_in=1"),
        ("ppo", "agent.sees_last_step=true"),
    ],
)
def test_what_the_experience_was_made_for_is_fixed(agent: str, setting: str) -> None:
    config = make_config("CartPole-v1", agent, None)
    name = setting.partition("=")[0]
    with refused(UsageError, name):
        change_config(config, [setting])
