"""Growth leaves the function alone and lets new weights learn."""

import copy
from dataclasses import replace

import pytest
import torch

from tengen.errors import UsageError
from tengen.nets import ResNet, ResNetConfig, parse_net
from tengen.tensors import BoardSpec
from tests.refusals import refused

FEATURES = {
    "cells": (6, 6, 36),
    "cells_and_pass": (6, 6, 37),
    "columns": (6, 7, 7),
    "flat": (4, 4, 9),
}


def make_net(layout, config):
    torch.manual_seed(3)
    height, width, num_actions = FEATURES[layout]
    features = BoardSpec(
        num_planes=4,
        height=height,
        width=width,
        num_actions=num_actions,
        policy_layout=layout,
        max_score=20 * config.auxiliary,
    )
    net = ResNet(features.signature, config)
    planes = torch.randn(6, 4, height, width)
    planes[:, 0] = 1.0
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
        net(planes)  # moves the running statistics away from their start
    return net, planes


def difference(a, b, planes):
    answers = []
    for net in (a, b):
        policy, value, auxiliary = net.learn(planes)
        heads = [answer for answer in auxiliary or () if answer is not None]
        answers.append((policy, value, *heads))
    pairs = zip(*answers, strict=True)
    # Scores are in points and not of size 1.
    return max(((x - y).abs() / (1 + x.abs())).max().item() for x, y in pairs)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("auxiliary", [True, False])
@pytest.mark.parametrize("layout", FEATURES)
def test_growing_keeps_outputs(layout, auxiliary, training):
    first = replace(parse_net("2x32"), auxiliary=auxiliary, lead=auxiliary)
    net, planes = make_net(layout, first)
    net.train(training)
    before = copy.deepcopy(net.state_dict())
    for text in ("4x64", "6x96"):
        config = replace(
            parse_net(text), head_channels=48, auxiliary=auxiliary, lead=auxiliary
        )
        grown = net.grown(config)
        assert grown.config == config
        assert difference(copy.deepcopy(net), copy.deepcopy(grown), planes) < 1e-5
        assert all(torch.equal(net.state_dict()[k], before[k]) for k in before)
        net, before = grown, copy.deepcopy(grown.state_dict())


def test_a_network_may_gain_a_head_for_the_lead_and_not_lose_it():
    plain = replace(parse_net("2x32"), auxiliary=True)
    net, planes = make_net("cells_and_pass", plain)
    grown = net.grown(replace(plain, lead=True))
    before, after = net.learn(planes)[2], grown.learn(planes)[2]
    assert before.lead is None
    assert after.lead is not None
    for old, new in zip(before[:5], after[:5], strict=True):
        torch.testing.assert_close(old, new)
    with refused(UsageError, "lead (False)"):
        grown.grown(plain)


def test_a_network_may_gain_auxiliary_heads_and_not_lose_them():
    plain = parse_net("2x32")
    net, planes = make_net("cells_and_pass", plain)
    grown = net.grown(replace(plain, auxiliary=True))
    for old, new in zip(net(planes), grown(planes), strict=True):
        torch.testing.assert_close(old, new)
    assert grown.learn(planes)[2] is not None
    with refused(UsageError, "auxiliary (False)"):
        grown.grown(plain)


def test_new_weights_get_gradients():
    net, planes = make_net("cells", parse_net("2x32"))
    grown = net.grown(parse_net("4x64"))
    optimizer = torch.optim.SGD(grown.parameters(), lr=0.1)
    first = {name: p.detach().clone() for name, p in grown.named_parameters()}
    for _ in range(3):
        policy, value = grown(planes)
        loss = policy.square().mean() + value.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for name, parameter in grown.named_parameters():
        if name.endswith("weight") and "conv" in name:
            moved = (parameter - first[name]).flatten(1).abs().amax(1)
            assert (moved > 0).all(), f"a filter of {name} does not learn"
    # Deeper blocks started as the identity and have left it.
    assert grown.get_parameter("blocks.3.conv2.weight").abs().max() > 0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"num_blocks": 2}, "num_blocks"),
        ({"num_channels": 16}, "num_channels"),
        ({"head_channels": 8}, "head_channels"),
        ({"pool_every": 2}, "pool_every"),
        ({"mixed_sizes": True}, "mixed_sizes"),
    ],
)
def test_shrinking_or_changing_is_refused(change, name):
    net, _ = make_net("cells", ResNetConfig(num_blocks=3, num_channels=32))
    with refused(UsageError, f"{name} ("):
        net.grown(replace(net.config, **change))


def test_a_net_that_fits_no_machine_is_refused():
    assert parse_net("40x512").num_blocks == 40
    with refused(UsageError, "net (256x2048)"):
        parse_net("256x2048")
