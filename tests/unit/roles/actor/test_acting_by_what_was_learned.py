"""Environments in turns: the actor acts by the learner's own network."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from tengen.errors import RunError
from tengen.learners.checkpoint import read_model
from tengen.overrides import override
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
                patch.setattr(
                    "tengen.roles.learning.learn.needs_graph", lambda *_: True
                )
            turns = begun(tmp_path / name, config)
            for _ in range(6):
                turns.take()
            assert (turns.context.shared.learned is None) == (name == "models")
            turns.take(NAMES[:3], saves=True)
            turns.close()
        assert read_model(newest(turns.run)).num_steps > 0
        found.append((newest(turns.run) / "state.safetensors").read_bytes())
    assert found[0] == found[1]


def test_steps_were_chosen_with_the_weights_of_their_version(tmp_path, config):
    config = override(config, ["inference.backend=torch", "inference.precision=fp32"])
    turns = begun(tmp_path / "run", config)
    experience = turns.context.shared.experience
    sample, drawn, nets = experience.sample, [], {}

    def sampled(num_samples):
        batch = sample(num_samples)
        drawn.append({name: array.copy() for name, array in batch.columns.items()})
        return batch

    experience.sample = sampled
    for _ in range(6):
        turns.take(NAMES[:3])
        if (learned := turns.context.shared.learned) is not None:
            nets[learned.num_steps] = copy.deepcopy(learned.net)
        turns.take(NAMES[3:])
    turns.close()
    # The last step of an item only shows its observation.
    steps = {
        name: np.concatenate([columns[name][:, :-1] for columns in drawn])
        for name in drawn[0]
    }
    steps = {name: array[steps["is_reset"] == 0] for name, array in steps.items()}
    first, *versions = np.unique(steps["model_version"]).tolist()
    assert first == 0  # of the model that is published before the first learner step
    assert len(versions) >= 3
    for version in versions:
        here = steps["model_version"] == version
        seen = torch.from_numpy(steps["observation"][here])
        chosen = torch.from_numpy(steps["action"][here])
        kept = torch.from_numpy(steps["behaviour_log_prob"][here])
        errors = {}
        for number, net in nets.items():
            with torch.no_grad():
                logits = net.answer({"observation": seen}, {})[0]["policy"]
            found = logits.log_softmax(-1).gather(-1, chosen[:, None])[:, 0]
            errors[number] = float((found - kept).abs().max())
        assert errors.pop(version) < 1e-5
        assert min(errors.values()) > 1e-4
