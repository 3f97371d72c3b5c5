"""An actor in a process of its own, before there is anything to connect to."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tengen.agents import EnvironmentAgent
from tengen.errors import RunError
from tengen.inference import central
from tengen.recipes import make_config
from tengen.roles import RoleContext
from tengen.roles.actor.remote_link import RemoteLink
from tengen.run import RunDirectory
from tests.refusals import refused

pytest.importorskip("gymnasium")


def test_what_is_waited_for_is_said_once(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("CartPole-v1", "ppo", None)
    said: list[str] = []
    stop = threading.Event()
    context = RoleContext(at_once=True, stop=stop, say=said.append)
    threading.Timer(1.0, stop.set).start()
    with pytest.raises(central.Interrupted):
        RemoteLink(EnvironmentAgent.of(config.agent, "actor"), config, run, context)
    assert said == [f"waits for inference of {run.path}"]


class Hasty(RemoteLink):
    patience_s = 0.3


def test_whom_it_waited_for_too_long_is_named(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("CartPole-v1", "ppo", None)
    context = RoleContext(at_once=True, say=lambda line: None)
    with refused(RunError, f"inference of {run.path}", "0.3 s"):
        Hasty(EnvironmentAgent.of(config.agent, "actor"), config, run, context)
