"""Schedule, decay groups, clipping and the averaged weights."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tengen.errors import RunError, UsageError
from tengen.learners import AdamWConfig, SgdConfig
from tengen.learners.optimizer import Optimizer, learning_rate_at
from tengen.nets.modules.norm import BoardNorm
from tests.refusals import refused

PLAIN = SgdConfig(
    learning_rate=0.5, num_warmup_steps=0, weight_decay=0.0, max_grad_norm=1e9
)


def test_schedule_rises_stays_and_falls():
    config = SgdConfig(learning_rate=1.0, num_warmup_steps=4, cooldown=0.5)
    rates = [learning_rate_at(config, step, None) for step in range(6)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert learning_rate_at(config, 9, 0.5) == 1.0
    assert learning_rate_at(config, 9, 0.25) == 0.5
    assert learning_rate_at(config, 9, 0.0) == 0.0
    assert learning_rate_at(config, 9, -0.1) == 0.0
    assert learning_rate_at(config, 0, 0.25) == 0.125
    assert learning_rate_at(replace(config, cooldown=0.0), 9, 0.0) == 1.0


def test_cool_downs_go_by_the_run_and_leave_half_of_a_call():
    config = SgdConfig(learning_rate=1.0, num_warmup_steps=0, cooldown=0.2)
    # Fifty minutes after ten cool as sixty at once do: over the last twelve.
    for left in (12.0, 6.0, 3.0):
        rate = learning_rate_at(config, 9, left / 60, 50 / 60)
        assert rate == learning_rate_at(config, 9, left / 60, 1.0)
        assert rate == pytest.approx(left / 12)
    # The tenth call of six minutes: over three of them, not from 6 / 12 on.
    rates = [learning_rate_at(config, 9, left / 60, 6 / 60) for left in (6, 3, 1.5, 0)]
    assert rates == pytest.approx([1.0, 1.0, 0.5, 0.0])


def test_rates_hold_up_to_their_boundaries():
    config = SgdConfig(rates=(0.5, 4.0, 2.0), boundaries=(2, 5))
    rates = [learning_rate_at(config, step, 0.01) for step in range(8)]
    assert rates == [0.5, 0.5, 0.5, 4.0, 4.0, 4.0, 2.0, 2.0]
    assert learning_rate_at(SgdConfig(rates=(0.3,)), 10**9, 0.0) == 0.3


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", [SgdConfig, AdamWConfig])
def test_steps_are_those_of_torch_to_the_bit(kind, decay):
    """Also where a second optimizer resumes from the moments of the first."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    twin = copy.deepcopy(net)
    config = kind(
        learning_rate=0.1, num_warmup_steps=0, weight_decay=decay, max_grad_norm=1e9
    )
    decayed = [p for p in twin.parameters() if p.dim() > 1]
    others = [p for p in twin.parameters() if p.dim() == 1]
    groups = [
        {"params": decayed, "weight_decay": decay},
        {"params": others, "weight_decay": 0.0},
    ]
    by_torch = (
        torch.optim.SGD(
            groups, 0.1, config.momentum, nesterov=config.nesterov, fused=True
        )
        if kind is SgdConfig
        else torch.optim.AdamW(
            groups, 0.1, (config.beta1, config.beta2), config.epsilon, fused=True
        )
    )
    optimizer = Optimizer(config, net)
    for step in range(6):
        gradients = [torch.randn(p.shape) for p in net.parameters()]
        for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
            parameter.grad = gradient.clone()
        by_torch.step()
        optimizer.step(gradients)
        for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
            assert torch.equal(ours, theirs)
        if step == 2:
            moments = optimizer.state()
            optimizer = Optimizer(config, net)
            optimizer.load_state(moments, step + 1)


@pytest.mark.parametrize("change", ["absent", "reshaped"])
def test_moments_of_another_network_are_refused(change):
    net = nn.Linear(3, 4)
    optimizer = Optimizer(AdamWConfig(), net)
    optimizer.step([torch.ones(4, 3), torch.ones(4)])
    moments = optimizer.state()
    if change == "absent":
        del moments["1.exp_avg"]
    else:
        moments["1.exp_avg"] = torch.zeros(5)
    with refused(RunError, r"optimizer.1.exp_avg"):
        Optimizer(AdamWConfig(), net).load_state(moments, 1)


def test_moments_are_all_loaded_or_none():
    """The first group fits, and the second, without weight decay, does not."""
    net = nn.Linear(3, 4)
    optimizer = Optimizer(AdamWConfig(weight_decay=0.1), net)
    optimizer.step([torch.ones(4, 3), torch.ones(4)])
    moments = optimizer.state()
    moments["1.exp_avg"] = torch.zeros(5)
    other = Optimizer(AdamWConfig(weight_decay=0.1), net)
    with refused(RunError, "optimizer.1.exp_avg"):
        other.load_state(moments, 1)
    assert other.state() == {}
    assert other.num_steps == 0


def test_steps_of_the_benchmarks_update():
    """MLPerf training v2.1, minigo: momentum, L2 in the loss, rates in steps."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), BoardNorm(4))
    config = SgdConfig(
        nesterov=False,
        rates=(0.5, 2.0),
        boundaries=(1,),
        weight_decay=1e-2,
        decays_scales=True,
        max_grad_norm=0.0,
        average_decay=0.0,
    )
    optimizer = Optimizer(config, net)
    # weight, bias, scale and shift; of the first and the third there is a cost of
    # 1e-2 * sum(w^2) / 2.
    wanted = [p.detach().double().numpy().copy() for p in net.parameters()]
    momenta = [np.zeros_like(w) for w in wanted]
    for step in range(4):
        gradients = [torch.randn(p.shape) for p in net.parameters()]
        rate = 0.5 if step <= 1 else 2.0
        for index, gradient in enumerate(gradients):
            total = gradient.double().numpy()
            if index in (0, 2):
                total = total + 1e-2 * wanted[index]
            momenta[index] = 0.9 * momenta[index] + total
            wanted[index] = wanted[index] - rate * momenta[index]
        metrics = optimizer.step(gradients)
        optimizer.update_average()
        assert metrics["learning_rate"] == rate
    for weight, array in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(weight.detach(), array, rtol=1e-6, atol=1e-6)


def test_without_averaging_the_last_weights_and_statistics_are_published():
    net = BoardNorm(2)
    optimizer = Optimizer(replace(PLAIN, average_decay=0.0), net)
    for _ in range(3):
        net(torch.randn(4, 2, 3, 3), None)
        optimizer.step([torch.randn(2), torch.randn(2)])
        optimizer.update_average()
    for name, tensor in optimizer.average.state_dict().items():
        assert torch.equal(tensor, net.state_dict()[name]), name


def test_nesterov_steps_of_a_worked_parameter():
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)
    optimizer = Optimizer(PLAIN, net)
    # Momentum 1, step 0.5 * (1 + 0.9 * 1) = 0.95; then 1.9, 0.5 * (1 + 0.9 * 1.9).
    optimizer.step([torch.ones(1, 1)])
    assert net.weight.item() == pytest.approx(0.05)
    optimizer.step([torch.ones(1, 1)])
    assert net.weight.item() == pytest.approx(0.05 - 0.5 * 2.71)


def test_long_gradients_are_scaled_to_the_limit():
    net = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(net.weight)
    optimizer = Optimizer(replace(PLAIN, max_grad_norm=1.0, learning_rate=1.0), net)
    metrics = optimizer.step([torch.tensor([[30.0, 40.0]])])
    assert metrics == {"grad_norm": 50.0, "learning_rate": 1.0}
    torch.testing.assert_close(
        net.weight.detach(), torch.tensor([[-0.6, -0.8]]) * 1.9, rtol=1e-4, atol=0
    )


def test_a_gradient_that_is_not_finite_changes_nothing():
    net = nn.Linear(1, 1, bias=False)
    before = net.weight.detach().clone()
    optimizer = Optimizer(PLAIN, net)
    with refused(RunError, "grad_norm (inf)", "step 0"):
        optimizer.step([torch.full((1, 1), float("inf"))])
    assert torch.equal(net.weight.detach(), before)
    assert optimizer.num_steps == 0


def test_the_average_follows_weights_and_norm_statistics():
    net = BoardNorm(1)
    optimizer = Optimizer(replace(PLAIN, average_decay=0.5), net)
    optimizer.num_steps = 1000  # beyond its warm-up
    with torch.no_grad():
        net.weight.fill_(3.0)
        net.running_mean.fill_(8.0)
    optimizer.update_average()
    optimizer.update_average()
    average = dict(optimizer.average.state_dict())
    assert average["weight"].item() == pytest.approx(1 + 2 * 0.75)
    assert average["running_mean"].item() == pytest.approx(8 * 0.75)
    assert not optimizer.average.training
    assert not any(p.requires_grad for p in optimizer.average.parameters())


def test_the_first_weights_do_not_linger_in_the_average():
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 100.0)
    optimizer = Optimizer(replace(PLAIN, average_decay=0.999), net)
    nn.init.constant_(net.weight, 1.0)
    for step in range(40):
        optimizer.num_steps = step + 1
        optimizer.update_average()
    assert abs(optimizer.average.weight.item() - 1.0) < 0.1


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        (SgdConfig, {"rates": (0.1,), "boundaries": (3,)}, "rates"),
        (SgdConfig, {"boundaries": (3,)}, "rates"),
        (SgdConfig, {"rates": (0.1, 0.2, 0.3), "boundaries": (3, 3)}, "boundaries"),
        (SgdConfig, {"rates": (0.1,), "learning_rate": 0.1}, "learning_rate"),
        (SgdConfig, {"rates": (0.1,), "num_warmup_steps": 0}, "num_warmup_steps"),
        (AdamWConfig, {"rates": (0.1,), "cooldown": 0.0}, "cooldown"),
    ],
)
def test_configs_name_the_bad_field(kind, fields, name):
    with refused(UsageError, f"{name} ("):
        kind(**fields)
