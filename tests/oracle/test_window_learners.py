"""Several learners that sample from the window learn the same as one learner.

Tests experience and update together: batches are divided as in a run while games
arrive, and the weights equal those of one learner. Synthetic batches are in
``test_several_learners.py``.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tengen.learners import Learner, SgdConfig
from tengen.learners.follower import Follower
from tengen.learners.peer import LEARNERS, greeting
from tengen.learners.team import Team
from tengen.nets import ResNetConfig
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.run import RunDirectory
from tengen.transport import Client, HostFolder, Server
from tests.oracle.test_several_learners import CLOSE
from tests.unit.experience.store_games import write_generation

torch.set_num_threads(1)

PATIENCE_S = 20.0
BATCH = 18
NUM_STEPS = 12


def config_of(**window: Any) -> RunConfig:
    config = make_config("tictactoe", "alphazero", None)
    # The recipe's learning rate amplifies rounding errors, as in several_learners.py.
    learner = replace(
        config.learner,
        batch_size=BATCH,
        num_shards=4,
        precision="float32",
        optimizer=SgdConfig(learning_rate=0.02),
    )
    return replace(
        config,
        learner=learner,
        net=ResNetConfig(num_blocks=2, num_channels=8, head_channels=8),
        store=replace(config.store, min_rows=20, **window),
    )


def make_learner(config: RunConfig, experience: Any, team: Team | None) -> Learner:
    torch.manual_seed(4 if experience is not None else 5)
    net = config.net.build(config.agent.signature(config.task))
    update = config.agent.make_update(config.task, net, config.store)
    return Learner(config.learner, net, update, experience, team=team)


def learned(config: RunConfig, run: RunDirectory, size: int) -> tuple[Any, list[Any]]:
    """Returns the learner state after some steps, and each step's metrics."""
    write_generation(run.experience, 1, 30)
    experience: Any = config.family.open_experience(run, None)
    team = Team(experience, size, patience_s=PATIENCE_S) if size > 1 else None
    learner = make_learner(config, experience, team)
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        host = HostFolder("learners", Path(folder) / "door")
        ends: list[Callable[[], None]] = []
        if team is not None:
            server = Server(host.listen(), team.service)
            ends.append(server.close)
            for index in range(1, size):
                ends.append(follow(config, run, Path(folder) / "door", index))
            while team.size < size:
                team.settle(learner)
        metrics = []
        for generation in range(2, 5):
            experience.refresh()
            metrics += list(learner.steps(NUM_STEPS // 3))
            # The followers learn of these games with the next batch.
            write_generation(run.experience, generation, 10)
        if team is not None:
            team.check_same()
            assert (team.size, team.num_lost) == (size, 0)
            team.close()
        for end in ends:
            end()
        host.remove()
    state = learner.state()
    learner.close()
    window = experience.state()
    experience.close()
    assert window["num_batches"] == len(metrics) == NUM_STEPS
    return state, metrics


def follow(
    config: RunConfig, run: RunDirectory, folder: Path, index: int
) -> Callable[[], None]:
    """Starts a follower in a thread; returns a function that waits for its end."""

    def no_way() -> Any:
        raise AssertionError("games lie in files")

    follower = Follower(
        Client(LEARNERS, folder).open(greeting(index, ""))[0],
        config.family.open_part(run, no_way),
        lambda stage: make_learner(config, None, None),
        threading.Event(),
        patience_s=PATIENCE_S,
    )

    def work() -> None:
        follower.begin()
        try:
            follower.work()
        finally:
            follower.close()

    thread = threading.Thread(target=work)
    thread.start()

    def end() -> None:
        thread.join(900)
        assert not thread.is_alive()
        assert follower.num_steps == NUM_STEPS

    return end


@pytest.mark.parametrize("with_replacement", [True, False])
@pytest.mark.parametrize("size", [2, 3])
def test_learners_of_a_window_learn_what_one_does(
    tmp_path: Path, size: int, with_replacement: bool
) -> None:
    config = config_of(with_replacement=with_replacement)
    several, their = learned(config, RunDirectory(tmp_path / "several"), size)
    alone, its = learned(config, RunDirectory(tmp_path / "alone"), 1)
    assert several.num_samples == alone.num_samples == BATCH * NUM_STEPS
    for name, tensor in alone.tensors.items():
        if name != "generator":
            found, wanted = several.tensors[name].double(), tensor.double()
            assert (found - wanted).abs().max().item() <= CLOSE, name
    for found, wanted in zip(their, its, strict=True):
        assert found["loss"] == pytest.approx(wanted["loss"], 1e-4)
