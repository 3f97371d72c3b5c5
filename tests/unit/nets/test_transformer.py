"""The transformer for boards: a network that one file adds."""

import re
from pathlib import Path

import pytest
import torch

import tengen
from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.errors import UsageError
from tengen.learners import AdamWConfig, Learner, LearnerConfig
from tengen.nets import InferenceHead
from tengen.nets.transformer import TransformerConfig
from tengen.tensors import BoardSpec
from tests.refusals import refused
from tests.unit.learners.learner_fakes import NUM_PLANES, SIDE, FakeTable

LAYOUTS = {
    "cells": (5, 6, 30),
    "cells_and_pass": (5, 6, 31),
    "columns": (6, 7, 7),
    "flat": (4, 5, 11),
}
SMALL = TransformerConfig(num_layers=2, num_units=16, num_heads=2)


def made(layout):
    torch.manual_seed(0)
    height, width, num_actions = LAYOUTS[layout]
    board = BoardSpec(
        num_planes=3,
        height=height,
        width=width,
        num_actions=num_actions,
        policy_layout=layout,
        max_score=9,
    )
    planes = torch.randint(0, 2, (4, 3, height, width)).float()
    planes[:, 0] = 1.0
    return SMALL.build(board.signature), planes


def test_no_other_file_names_it():
    root = Path(tengen.__file__).parent
    naming = [
        path.name
        for path in root.rglob("*.py")
        if re.search("transformer", path.read_text(), re.IGNORECASE)
    ]
    assert naming == ["transformer.py"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_of_every_layout(layout):
    net, planes = made(layout)
    policy, outcome, auxiliary = net.learn(planes)
    assert policy.shape == (4, LAYOUTS[layout][2])
    assert outcome.shape == (4, 3)
    assert auxiliary is None
    found = InferenceHead(net.eval())(planes)
    win, _, loss = outcome.softmax(1).unbind(1)
    for answer, wanted in zip(found, (policy, win - loss), strict=True):
        torch.testing.assert_close(answer, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_cell_counts_for_every_logit_by_its_place(layout):
    net, planes = made(layout)
    planes.requires_grad_()
    policy, outcome = net(planes)
    for answer in (policy[0, 0], outcome[0, 0]):
        (gradient,) = torch.autograd.grad(answer, planes, retain_graph=True)
        assert (gradient[0].abs().sum(0) > 0).all()
    with torch.no_grad():
        other = net(planes.flip(3))[1]
    assert not torch.allclose(other, outcome)


def test_it_learns_who_has_more_stones():
    torch.manual_seed(0)
    board = BoardSpec(
        num_planes=NUM_PLANES,
        height=SIDE,
        width=SIDE,
        num_actions=SIDE * SIDE,
        policy_layout="cells",
    )
    config = LearnerConfig(
        batch_size=64, optimizer=AdamWConfig(learning_rate=3e-3, num_warmup_steps=0)
    )
    net, loss = SMALL.build(board.signature), AlphaZeroUpdate(AlphaZeroLossConfig())
    with Learner(config, net, loss, FakeTable()) as learner:
        metrics = list(learner.steps(80))
    assert metrics[-1]["value_loss"] < 0.5 * metrics[0]["value_loss"]
    assert metrics[-1]["policy_loss"] < 0.8 * metrics[0]["policy_loss"]


def test_a_size_that_does_not_divide_is_refused():
    with refused(UsageError, "num_units (30)"):
        TransformerConfig(num_units=30)
