"""Two and four learners in separate processes learn the same as one learner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.oracle.several_learners import (
    BATCH,
    CASES,
    Followers,
    Learned,
    learned_alone,
)

torch.set_num_threads(1)

# Differences due to the order of summation; the weights are of order 1.
CLOSE = 1e-5


@pytest.fixture(scope="module")
def followers() -> Iterator[Followers]:
    made = Followers(3)
    yield made
    made.close()


def check_equal(several: Learned, alone: Learned) -> None:
    assert several.num_steps == alone.num_steps
    assert several.num_samples == alone.num_samples
    assert several.tensors.keys() == alone.tensors.keys()
    for name, tensor in alone.tensors.items():
        found, wanted = several.tensors[name].double(), tensor.double()
        # Running sums are large.
        scale = max(1.0, wanted.abs().max().item())
        difference = (found - wanted).abs().max().item() / scale
        assert difference <= CLOSE, f"{name} differs by {difference}"
    # Each row received its own priority.
    for number, (_, wanted_ones) in alone.priorities[0].items():
        parts = sorted(one[number] for one in several.priorities if number in one)
        np.testing.assert_allclose(
            np.concatenate([part for _, part in parts]), wanted_ones, rtol=1e-3
        )
        assert parts[0][0] == 0
        assert sum(len(part) for _, part in parts) == BATCH
    for found_ones, wanted in zip(several.metrics, alone.metrics, strict=True):
        for name in wanted.keys() - {"sample_wait_s", "train_s"}:
            if name != "explained_variance":
                assert found_ones[name] == pytest.approx(wanted[name], 1e-3, 1e-4), name


@pytest.mark.parametrize("case", CASES)
def test_two_learners_learn_what_one_does(
    followers: Followers, case: str, tmp_path: Path
) -> None:
    alone = learned_alone(case, 12)
    check_equal(followers.learned(case, 12, 2, tmp_path / "learners"), alone)
    if case in ("dqn", "iqn", "r2d2"):
        assert len(alone.priorities[0]) == 12


# Agents with a target network: 12 steps are too few to copy the weights twice. For the
# other agents, all steps work like the first. IQN copies its weights as DQN does.
HAS_TARGETS = ("dqn", "r2d2", "sac")


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case in HAS_TARGETS else pytest.mark.soak)
        for case in CASES
    ],
)
def test_a_hundred_steps(
    followers: Followers, case: str, size: int, tmp_path: Path
) -> None:
    alone = learned_alone(case, 100)
    check_equal(followers.learned(case, 100, size, tmp_path / "learners"), alone)
