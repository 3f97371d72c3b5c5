"""Environments in turns: the actor acts by the learner's own network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tengen.errors import RunError
from tengen.learners.checkpoint import read_model
from tengen.recipes import make_config
from tengen.roles import RoleContext, RunConfig, make_role, write_config
from tengen.roles.learning.learn import LearnRole
from tengen.roles.role import Role
from tengen.run import RunDirectory
from tests.refusals import refused

pytest.importorskip("gymnasium")

NAMES = ("learn", "export", "gate", "actor")


class Turns:
    """A run's roles in one process, as the inline launcher has them."""

    def __init__(self, run: RunDirectory, config: RunConfig) -> None:
        self.run = run
        self.context = RoleContext()
        self.learn = LearnRole(config, run, self.context)
        self.learn.save_s = 1e6
        self.roles: Mapping[str, Role] = {"learn": self.learn} | {
            name: make_role(name, config, run, self.context) for name in NAMES[1:]
        }

    def take(self, names: Sequence[str] = NAMES, *, saves: bool = False) -> None:
        self.context.saves = saves
        for name in names:
            self.roles[name].turn()

    @property
    def num_steps(self) -> int:
        """Steps of the network that the actor is handed."""
        learned = self.context.shared.learned
        assert learned is not None
        return learned.num_steps

    def close(self) -> None:
        for name in reversed(NAMES):
            self.roles[name].close()


@pytest.fixture
def config() -> RunConfig:
    return make_config("CartPole-v1", "ppo", None)


def begun(path: Path, config: RunConfig) -> Turns:
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    return Turns(run, config)


def newest(run: RunDirectory) -> Path:
    number = run.checkpoints.latest()
    assert number is not None
    return run.checkpoints.entry(number)


def test_a_turn_that_another_follows_puts_off_its_checkpoint(
    tmp_path: Path, config: RunConfig
) -> None:
    turns = begun(tmp_path / "run", config)
    for _ in range(3):
        turns.take()
    before = turns.num_steps
    assert before > 0
    # Zero is of the first turn, which had nothing to learn from.
    assert turns.run.checkpoints.latest() == 0
    assert turns.run.models.latest() == 0
    # Nothing new came: the last turn makes a model of what it left for later.
    turns.take(NAMES[:3])
    turns.take(NAMES[:3], saves=True)
    assert turns.num_steps > before
    assert turns.run.checkpoints.latest() == 1
    assert turns.run.models.latest() == 1
    turns.take(NAMES[:3], saves=True)
    assert turns.run.checkpoints.latest() == 1
    turns.close()
    assert turns.run.checkpoints.latest() == 1


def test_the_role_that_is_closed_saves(tmp_path: Path, config: RunConfig) -> None:
    turns = begun(tmp_path / "run", config)
    for _ in range(4):
        turns.take()
    steps = turns.num_steps
    turns.close()
    assert read_model(newest(turns.run)).num_steps == steps


def test_what_cannot_be_saved_at_the_end_is_told(
    tmp_path: Path, config: RunConfig
) -> None:
    turns = begun(tmp_path / "run", config)
    for _ in range(3):
        turns.take()
    shutil.rmtree(turns.run.path / "checkpoints")
    (turns.run.path / "checkpoints").touch()
    with refused(RunError, "cannot be written"):
        turns.close()
    # All else was closed: another process may learn.
    turns.run.lock("learn").release()


def test_a_learner_that_failed_saves_nothing(
    tmp_path: Path, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = begun(tmp_path / "run", config)
    for _ in range(3):
        turns.take()
    monkeypatch.setattr("tengen.learners.loop.Learner.steps", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        turns.take()
    turns.close()
    assert turns.run.checkpoints.latest() == 0


def test_a_checkpoint_comes_once_the_last_one_is_old_enough(
    tmp_path: Path, config: RunConfig
) -> None:
    turns = begun(tmp_path / "run", config)
    for _ in range(3):
        turns.take()
    before = turns.run.checkpoints.latest()
    turns.learn.save_s = 0.0
    turns.take()
    assert before is not None
    assert turns.run.checkpoints.latest() == before + 1
    turns.close()


@pytest.mark.parametrize("agent", ["ppo", "dqn"])
def test_what_is_learned_is_the_same_as_by_models(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models after each turn, and an actor that loads them, change no bit."""
    config = make_config("CartPole-v1", agent, None)
    found = []
    for name in ("memory", "models"):
        with monkeypatch.context() as patch:
            if name == "models":
                patch.setattr("tengen.roles.learning.learn.needs_graph", lambda _: True)
            turns = begun(tmp_path / name, config)
            for _ in range(6):
                turns.take()
            assert (turns.context.shared.learned is None) == (name == "models")
            turns.take(NAMES[:3], saves=True)
            turns.close()
        assert read_model(newest(turns.run)).num_steps > 0
        found.append((newest(turns.run) / "state.safetensors").read_bytes())
    assert found[0] == found[1]
