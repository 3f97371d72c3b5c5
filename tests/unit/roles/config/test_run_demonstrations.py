"""A run copies its demonstrations once, and only those with which it has begun."""

import json
import shutil
from contextlib import closing

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.experience.made_demos import made_episodes, write_episodes

pytest.importorskip("gymnasium")

CARTPOLE = "CartPole-v1"
SETTINGS = [
    "agent.burn_in=2",
    "agent.unroll_length=4",
    "agent.period=2",
    "agent.actor.num_envs=4",
    "agent.actor.turn_steps=8",
    "net.lstm_units=4",
    "net.num_units=4",
    "store.max_items=2000",
    "learner.batch_size=8",
]
EACH_STEP = [
    "net.lstm_units=0",
    "agent.period=1",
    "agent.burn_in=0",
    "agent.unroll_length=4",
]


def right(seen):
    return np.ones(1, np.int64)


def config_with(folder, *settings):
    config = make_config(CARTPOLE, "r2d3", None)
    return override(config, [*SETTINGS, f"store.demos={folder}", *settings])


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


@pytest.fixture
def folder(tmp_path):
    spec, episodes = made_episodes(CARTPOLE, right, 3)
    write_episodes(tmp_path / "demos", spec, episodes)
    return tmp_path / "demos"


def copied(config, run):
    """Starts a run as ``tengen train`` does; returns its number of demonstrations."""
    config.family.check_given(run)
    with closing(config.family.open_experience(run, None)) as steps:
        return steps.demos.num_inserts


def others(folder):
    """Replaces the episodes by others of the same lengths and returns."""
    spec, episodes = made_episodes(CARTPOLE, right, 3)
    for episode in episodes:
        episode["observation"] = -episode["observation"]
    shutil.rmtree(folder)
    write_episodes(folder, spec, episodes)


def test_a_queue_of_demonstrations_is_refused(folder):
    queue = ["store.sampler=fifo", "store.min_items=1", "store.samples_per_item=1"]
    with refused(UsageError, "store.sampler (fifo)"):
        config_with(folder, *queue)


def test_a_run_that_has_copied_them_needs_no_folder(folder, run):
    config = config_with(folder)
    num_items = copied(config, run)
    assert num_items > 10
    shutil.rmtree(folder)
    assert copied(config, run) == num_items
    # Its table is lost, so it must copy them again.
    shutil.rmtree(run.experience / "steps")
    with refused(UsageError, str(folder)):
        copied(config, run)


def test_a_new_run_reads_all_of_them_before_it_begins(folder, run):
    (folder / "000002.npz").unlink()
    with refused(UsageError, str(folder / "000002.npz")):
        config_with(folder).family.check_given(run)


@pytest.mark.parametrize("settings", [[], EACH_STEP])
def test_a_copy_goes_on_with_the_same_ones(
    folder, run, tmp_path, settings, monkeypatch
):
    config = config_with(folder, *settings)
    # The copy ends at an episode that cannot be read.
    shutil.move(folder / "000002.npz", tmp_path)
    with refused(UsageError, "000002.npz"):
        config.family.open_experience(run, None)
    shutil.move(tmp_path / "000002.npz", folder)
    shutil.copytree(folder, tmp_path / "kept")
    others(folder)
    with refused(UsageError, f"store.demos ({folder})"):
        copied(config, run)
    shutil.rmtree(folder)
    with refused(UsageError, str(folder)):
        copied(config, run)
    shutil.move(tmp_path / "kept", folder)
    num_items = copied(config, run)
    other = RunDirectory.create_or_resume(tmp_path / "whole")
    assert num_items == copied(config, other)


def test_other_settings_of_actors_change_no_demonstration(folder, run):
    num_items = copied(config_with(folder, *EACH_STEP), run)
    for turn_steps in (7, 61):
        config = config_with(folder, *EACH_STEP, f"agent.actor.turn_steps={turn_steps}")
        assert copied(config, run) == num_items


def test_a_record_that_does_not_fit_the_table_is_refused(folder, run):
    config = config_with(folder)
    copied(config, run)
    (path,) = run.experience.glob("*.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "num_items": record["num_items"] - 1}))
    with refused(UsageError, f"store.demos ({folder})"):
        copied(config, run)
