"""What an agent will not learn from: items that models of long ago made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tengen.learners import AdamWConfig, Learner, LearnerConfig, LossParts, Update
from tests.unit.agents.agent_fakes import TableNet

# Steps that a batch is good for.
NUM_EPOCHS = 3


@dataclass
class Queue:
    """Batches of items whose two steps were chosen by models of given steps."""

    versions: list[list[list[int]]]
    num_acks: int = 0

    def sample(self, num_rows, /):
        versions = np.array(self.versions.pop(0))
        self.columns: dict[str, NDArray[Any]] = {
            "observation": np.arange(len(versions)),
            "model_version": versions,
        }
        self.keys = np.arange(len(versions))
        return self

    def ack(self, priorities=None):
        assert priorities is None
        self.num_acks += 1


class SeeingUpdate(Update):
    """Goes through a batch three times, and keeps what it saw."""

    def __init__(self, max_lag):
        self.max_lag = max_lag
        self.seen: list[list[int]] = []

    def minibatches(self, net, columns):
        self.seen.append(columns["observation"].tolist())
        for _ in range(NUM_EPOCHS):
            yield columns

    def loss(self, net, columns):
        q = net.answer({"observation": columns["observation"]}, {})[0]["q"]
        return LossParts(q.square().mean(), {})


def learned(max_lag, batches):
    queue = Queue(list(batches))
    update = SeeingUpdate(max_lag)
    config = LearnerConfig(
        batch_size=3, num_shards=1, optimizer=AdamWConfig(num_warmup_steps=0)
    )
    net = TableNet(q=np.ones((4, 2)))
    with Learner(config, net, update, queue) as learner:
        metrics = list(learner.steps(len(batches)))
    # A queue whose items are not taken out would be full of old ones for ever.
    assert queue.num_acks == len(batches)
    return update, learner, metrics


def test_older_items_are_left_out_and_counted():
    # The learner has made 0, 3 and 6 steps.
    batches = [
        [[0, 0], [0, 0], [0, 0]],
        [[0, 3], [3, 3], [1, 1]],
        [[6, 6], [4, 4], [3, 6]],
    ]
    update, learner, metrics = learned(2, batches)
    # An item is as old as its oldest step.
    assert update.seen == [[0, 1, 2], [1, 2], [0, 1]]
    assert [m["too_old"] for m in metrics] == pytest.approx([0, 1 / 3, 1 / 3])
    # Of what was learned from: (0 + 0 + 2 + 2) / 4 and (0 + 0 + 2 + 2) / 4.
    assert [m["lag_steps"] for m in metrics] == [0.0, 1.0, 1.0]
    assert learner.num_samples == 7
    assert learner.num_steps == 3 * NUM_EPOCHS


def test_where_nothing_is_new_no_step_is_made_and_lag_grows_no_further():
    # Models do not reach the actors: every item is the first one's, for ever.
    batches = [[[0, 0], [0, 0], [0, 0]]] * 10
    update, learner, metrics = learned(5, batches)
    assert len(update.seen) == 2
    assert learner.num_steps == 2 * NUM_EPOCHS
    assert max(m.get("lag_steps", 0.0) for m in metrics) <= 5
    assert [m["too_old"] for m in metrics] == [0.0] * 2 + [1.0] * 8
    assert [("loss" in m) for m in metrics] == [True] * 2 + [False] * 8
    # And once they do, learning goes on.
    update, learner, _ = learned(5, [*batches, [[6, 6], [0, 0], [0, 0]]])
    assert update.seen[-1] == [0]
    assert learner.num_steps == 3 * NUM_EPOCHS


def test_all_are_learned_from_without_a_bound():
    batches = [[[0, 0], [0, 0], [0, 0]]] * 4
    update, learner, metrics = learned(None, batches)
    assert len(update.seen) == 4
    assert [m["lag_steps"] for m in metrics] == [0.0, 3.0, 6.0, 9.0]
    assert not any("too_old" in m for m in metrics)
    assert torch.isfinite(learner.net.state_dict()["tables.q"]).all()


def test_demonstrations_have_no_lag():
    batches = [[[-1, -1], [-1, -1], [-1, -1]], [[-1, -1], [3, 3], [2, 2]]]
    _, _, metrics = learned(None, batches)
    assert "lag_steps" not in metrics[0]
    assert metrics[1]["lag_steps"] == 0.5
