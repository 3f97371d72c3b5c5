"""The vector network."""

from __future__ import annotations

import torch

from tengen.nets import FeatureSpec, InferenceHead, MlpConfig, build_net


def test_policy_starts_uniform_and_baseline_unbounded() -> None:
    torch.manual_seed(0)
    net = build_net(FeatureSpec(num_planes=4, num_actions=2), MlpConfig())
    observations = torch.randn(7, 4)
    policy, value = InferenceHead(net)(observations)
    assert policy.shape == (7, 2)
    assert value.shape == (7,)
    assert (policy.softmax(1) - 0.5).abs().max() < 0.01
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1000.0)
    assert net(observations)[1].abs().max() > 1
