"""What a process that hosts roles saves, and in which order it ends them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.errors import DiskFullError, RunError
from tengen.experience import ReplayConfig, StepTable
from tengen.inference.central import InferenceServer, serve_rows
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, host, read_config, write_config
from tengen.roles.doors import STORE, Doors
from tengen.roles.host import RoleHost
from tengen.run import RunDirectory
from tests.refusals import refused

DETAILS = {"sealed": 0}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run of DQN that has a model to act with."""
    pytest.importorskip("gymnasium")
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("CartPole-v1", "dqn", None)
    store = ReplayConfig(
        sampler="prioritized", max_items=2_000, min_items=64, samples_per_item=0.5
    )
    write_config(run, dataclasses.replace(config, store=store))
    made = RoleHost(run, RoleContext(), None)
    for role in ("learn", "export", "gate"):
        made.turn(role, DETAILS)
    made.close()
    return run


@pytest.mark.parametrize("before", [(), ("learn",)], ids=["first", "learned"])
def test_steps_are_durable_before_an_environment_is_closed(
    run: RunDirectory, before: tuple[str, ...]
) -> None:
    """Also those of an actor whose learner has had no turn yet."""
    made = RoleHost(run, RoleContext(), None)
    for role in before:
        made.turn(role, DETAILS)
    acted = made.turn("actor", DETAILS)
    assert acted is not None
    assert not made.is_saved
    made.save()
    again = RoleHost(run, RoleContext(), None)
    learned = again.turn("learn", DETAILS)
    assert learned is not None
    assert learned["num_new"] == acted["num_items"]
    again.close()
    made.close()


@pytest.mark.parametrize("before", [(), ("learn",)], ids=["first", "learned"])
def test_steps_that_cannot_become_durable_are_an_error(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    def close(table: StepTable) -> None:
        raise RunError("disk (full) must have room; free some")

    made = RoleHost(run, RoleContext(), None)
    for role in (*before, "actor"):
        made.turn(role, DETAILS)
    with monkeypatch.context() as full:
        full.setattr(StepTable, "close", close)
        with refused(RunError, "disk (full)"):
            made.save()
    made.close()


class Other:
    """A role that learns, of which another thread asks whether it has saved."""

    def __init__(self, roles: dict[str, Any]) -> None:
        self._roles = roles

    @property
    def is_saved(self) -> bool:
        # Meanwhile the turn's thread makes a role.
        self._roles[f"role-{len(self._roles)}"] = SimpleNamespace(close=lambda: None)
        return True

    def save(self) -> None: ...

    def turn(self) -> None: ...

    def close(self) -> None: ...


def test_another_thread_may_ask_while_a_role_is_made(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RoleHost(run, RoleContext(), None)
    monkeypatch.setattr(host, "make_role", lambda *_: Other(made._roles))
    made.turn("learn", DETAILS)
    assert made.is_saved


def test_a_role_that_is_to_read_the_config_again_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    made: list[Any] = []

    def make(name: str, config: Any, run: Any, context: Any) -> Any:
        assert all(role.is_closed for role in made)  # its locks are free
        role = SimpleNamespace(is_closed=False)
        role.turn = lambda: {"min_rows": config.store.min_rows}
        role.close = lambda: vars(role).update(is_closed=True)
        made.append(role)
        return role

    monkeypatch.setattr(host, "make_role", make)
    hosting = RoleHost(run, RoleContext(), None)
    assert hosting.turn("learn", DETAILS) == {"min_rows": 500}
    write_config(run, override(read_config(run), ("store.min_rows=100",)))
    assert hosting.turn("learn", DETAILS) == {"min_rows": 500}
    assert hosting.turn("learn", {**DETAILS, "is_changed": True}) == {"min_rows": 100}
    assert hosting.turn("learn", DETAILS) == {"min_rows": 100}
    assert len(made) == 2


def refuse(*_: Any, **__: Any) -> Any:
    raise DiskFullError("path (x) cannot be written")


@pytest.mark.parametrize("at_once", [False, True])
def test_a_role_that_could_not_be_made_can_be_made_later(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """A standalone role tries again when a full disk has space."""
    made = RoleHost(run, RoleContext(at_once=at_once), None)
    with monkeypatch.context() as full:
        full.setattr("tengen.roles.learning.learn.load_checkpoint", refuse)
        with refused(DiskFullError, "path (x)"):
            made.turn("learn", DETAILS)
    assert run.lock_holder("learn") is None
    made.turn("learn", DETAILS)
    assert run.lock_holder("learn") is not None
    made.close()


def test_self_play_that_could_not_begin_releases_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    made = RoleHost(run, RoleContext(), None)
    with monkeypatch.context() as full:
        full.setattr("tengen.games.open_game", refuse)
        with refused(DiskFullError, "path (x)"):
            made.turn("selfplay", DETAILS)
    assert made.turn("selfplay", DETAILS) is None
    made.close()
    assert len([*run.experience.glob("selfplay-*")]) == 1  # a locked one stays unused


def test_an_actor_that_is_stopped_before_it_is_connected_holds_nothing(
    run: RunDirectory,
) -> None:
    context = RoleContext(at_once=True, is_vouched=True)
    context.stop.set()
    made = RoleHost(run, context, None)
    assert made.turn("actor", DETAILS) == {"stopped": True}
    assert run.lock_holder("actor-0") is None
    made.close()


def test_a_service_that_could_not_be_published_releases_its_folder(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_config(run)
    doors = Doors(config.launch, run, STORE)
    server = InferenceServer(config.signature, max_rows=1, min_rows=1, max_wait_s=1.0)
    service = serve_rows(server, config.signature)
    with monkeypatch.context() as full:
        full.setattr("tengen.roles.doors.write_endpoint", refuse)
        with refused(DiskFullError, "path (x)"):
            doors.open(service)
    assert not doors.folder.exists()
    doors.open(service)
    doors.close()
