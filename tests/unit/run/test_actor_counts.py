"""What actors have made: counted once, whoever dies, and never lost."""

import dataclasses
import os
import signal

import pytest

from tengen.errors import RunError
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tengen.run.actor_counts import ActorCounts, read_actor_counts
from tests.refusals import refused


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def test_the_next_process_of_an_actor_goes_on_counting(run):
    assert read_actor_counts(run) == {}
    for index, num_rows in ((0, 128), (1, 64), (0, 32)):
        counts = ActorCounts(run, index)
        counts.add(num_rows, 1)
        counts.close()
    assert read_actor_counts(run) == {"num_rows": 224, "num_episodes": 3}


def test_counts_outlive_a_kill(run):
    child = os.fork()
    if child == 0:
        counts = ActorCounts(run, 0)
        for _ in range(3):
            counts.add(100, 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert read_actor_counts(run) == {"num_rows": 300, "num_episodes": 6}


def test_a_damaged_file_is_named(run):
    counts = ActorCounts(run, 0)
    counts.add(1, 1)
    counts.close()
    path = run.actors / "0"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    for read in (lambda: read_actor_counts(run), lambda: ActorCounts(run, 0)):
        with refused(RunError, "/actors/0)"):
            read()


def test_a_learners_turn_that_is_redone_counts_frames_once(run):
    """A kill comes after the checkpoint and before the runner has the report."""
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", "dqn", None)
    learner = dataclasses.replace(config.learner, batch_size=24)
    config = dataclasses.replace(config, learner=learner)
    write_config(run, config)

    def learn():
        """A learner's process: the turns of one that goes on from the checkpoint."""
        context = RoleContext(at_once=True)
        role = make_role("learn", config, run, context)
        role.turn()
        role._save()
        counts = role._with_acted(role._experience.describe())
        role.close()
        return counts["num_rows"], counts["num_episodes"]

    assert learn() == (0, 0)
    counts = ActorCounts(run, 0)
    counts.add(500, 7)
    counts.close()
    assert [learn() for _ in range(3)] == [(500, 7)] * 3
