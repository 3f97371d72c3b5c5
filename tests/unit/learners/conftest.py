"""A small learner on made-up rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.learners import (
    Learner,
    LearnerConfig,
    OptimizerConfig,
    SgdConfig,
    Update,
)
from tengen.nets import ResNetConfig
from tengen.tensors import BoardSpec
from tests.unit.learners.learner_fakes import NUM_PLANES, SIDE, FakeTable, MakeLearner

# The networks are too small for more.
torch.set_num_threads(1)


@pytest.fixture
def make_learner() -> Iterator[MakeLearner]:
    made: list[Learner] = []

    def make(
        *,
        num_threads: int = 1,
        num_channels: int = 8,
        optimizer: OptimizerConfig | None = None,
        table: FakeTable | None = None,
        update: Update | None = None,
        **fields: Any,
    ) -> Learner:
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
