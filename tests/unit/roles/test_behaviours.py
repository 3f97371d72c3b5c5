"""What an actor's bandits know outlives the actor's process."""

import contextlib
import json

import pytest

from tengen.errors import RunError
from tengen.games import allow
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tests.refusals import refused

pytest.importorskip("gymnasium")

TASK = "tests.environments:Catch"
SETTINGS = ("agent.actor.num_envs=3", "agent.actor.turn_steps=20")


def turned(run, agent):
    """Makes a turn of each role in a new process, as it were."""
    allow(TASK)
    config = override(make_config(TASK, agent, None), SETTINGS)
    if run.is_new:
        write_config(run, config)
    context = RoleContext()
    with contextlib.ExitStack() as stack:
        for name in ("learn", "export", "gate", "actor"):
            role = make_role(name, config, run, context)
            stack.callback(role.close)
            role.turn()


def kept(run):
    content = json.loads((run.actors / "behaviour-0.json").read_text())
    assert content["schema"] == 1
    return content["copies"]


def test_bandits_go_on_after_a_restart(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "agent57")
    first = kept(run)
    assert [len(rows) > 0 for rows in first] == [True] * 3
    assert {entry[1] for rows in first for entry in rows} <= {-1.0, 1.0}
    turned(run, "agent57")
    second = kept(run)
    for before, after in zip(first, second, strict=True):
        assert after[: len(before)] == before
        assert len(after) > len(before)


def test_a_damaged_file_is_named_and_nothing_is_overwritten(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "agent57")
    path = run.actors / "behaviour-0.json"
    for content in (b"{", b'{"schema": 1}', b'{"schema": 1, "copies": [[["a"]]]}'):
        path.write_bytes(content)
        with refused(RunError, str(path)):
            turned(run, "agent57")
        assert path.read_bytes() == content


def test_an_agent_without_bandits_writes_no_file(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    turned(run, "ngu")
    assert not run.actors.exists()
