"""A small learner on made-up rows."""

import pytest
import torch

from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.learners import (
    Learner,
    LearnerConfig,
    SgdConfig,
)
from tengen.nets import ResNetConfig
from tengen.tensors import BoardSpec
from tests.unit.learners.learner_fakes import NUM_PLANES, SIDE, FakeTable

# The networks are too small for more.
torch.set_num_threads(1)


@pytest.fixture
def make_learner():
    made = []

    def make(
        *,
        num_threads=1,
        num_channels=8,
        optimizer=None,
        table=None,
        update=None,
        **fields,
    ):
        torch.manual_seed(4)
        features = BoardSpec(
            num_planes=NUM_PLANES,
            height=SIDE,
            width=SIDE,
            num_actions=SIDE * SIDE,
            policy_layout="cells",
        )
        net = ResNetConfig(
            num_blocks=2, num_channels=num_channels, head_channels=8
        ).build(features.signature)
        config = LearnerConfig(
            **{"batch_size": 24, **fields}, optimizer=optimizer or SgdConfig()
        )
        learner = Learner(
            config,
            net,
            update or AlphaZeroUpdate(AlphaZeroLossConfig()),
            table or FakeTable(),
            num_threads=num_threads,
        )
        made.append(learner)
        return learner

    yield make
    for learner in made:
        learner.close()
