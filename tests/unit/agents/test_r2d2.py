"""R2D2's update against a slow, readable reference, and its initial states."""

import numpy as np
import pytest
import torch

from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tests.refusals import refused
from tests.unit.agents.agent_fakes import LeakyNet, items_of
from tests.unit.losses.episodes import random_rows

PRIORITIZED = ReplayConfig(sampler="prioritized", max_items=10, importance_exponent=0.6)
LEAST = 1e-6
# Steps of burn-in before the learned sequence, and steps of the n-step returns.
BURN_IN, NUM_STEPS = 7, 3


def nets_of(rows, seed):
    """Returns an online network and a different target network."""
    rng = np.random.default_rng([seed, 3])
    size = rows.v.size
    one, other = (
        LeakyNet(leak, rng.normal(size=size), rng.normal(size=(size, 3)))
        for leak in (0.8, 0.5)
    )
    return one, other


def update_of(net, target, num_rows=40):
    agent = R2d2(
        is_duelling=False,
        burn_in=BURN_IN,
        unroll_length=num_rows - BURN_IN,
        num_steps=NUM_STEPS,
        discount=0.9,
        eta=0.7,
        rescaling_epsilon=0.01,
    )
    update = R2d2Update(agent, net, PRIORITIZED)
    update.target = target
    return update


def batch_of(rows, seed):
    columns, places = items_of(rows, seed=seed)
    rng = np.random.default_rng([seed, 4])
    num_items = places.shape[1]
    columns["state/memory"] = torch.from_numpy(
        rng.normal(size=num_items).astype(np.float32)
    )
    columns["importance_weight"] = torch.from_numpy(
        rng.uniform(0.1, 1, num_items).astype(np.float32)
    )
    return columns, places


def slow_q(net, rows, columns, places):
    """Returns ``[T + 1, B, A]``, computed step by step like an actor."""
    leak = net.leak.item()
    seen, table = net.seen.detach().numpy(), net.table.detach().numpy()
    q = np.zeros((*places.shape, table.shape[1]))
    for b in range(places.shape[1]):
        memory = columns["state/memory"][b].item()
        for t in range(len(places)):
            if t > 0 and rows.is_reset[t - 1, b]:
                memory = 0.0
            memory = leak * memory + seen[places[t, b]]
            q[t, b] = memory + table[places[t, b]]
    return q


def rescaled(x):
    return float(np.sign(x) * (np.sqrt(abs(x) + 1) - 1) + 0.01 * x)


def scaled_back(y):
    root = np.sqrt(1 + 4 * 0.01 * (abs(y) + 1 + 0.01))
    return float(np.sign(y) * (((root - 1) / (2 * 0.01)) ** 2 - 1))


def slow_errors(rows, columns, q, q_target):
    """Returns ``[T, B]`` TD errors after the burn-in; NaN without a transition."""
    num_steps = len(rows.reward)
    errors = np.full(rows.reward.shape, np.nan)
    for b in range(rows.reward.shape[1]):
        for piece in rows.pieces(b):
            for t in range(max(BURN_IN, piece.start), piece.stop):
                end, total = min(t + NUM_STEPS, piece.stop), 0.0
                for k in range(t, end):
                    total += 0.9 ** (k - t) * rows.reward[k, b]
                if not (piece.terminated and end == piece.stop):
                    assert end <= num_steps
                    value = q_target[end, b, q[end, b].argmax()]
                    total += 0.9 ** (end - t) * scaled_back(value)
                action = int(columns["action"][b, t])
                errors[t, b] = rescaled(total) - q[t, b, action]
    return errors[BURN_IN:]


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_priorities_are_the_slow_reference_s(seed):
    rows = random_rows(seed)
    columns, places = batch_of(rows, seed)
    net, target = nets_of(rows, seed)
    found = update_of(net, target).loss(net, columns)
    q = slow_q(net, rows, columns, places)
    q_target = slow_q(target, rows, columns, places)
    errors = slow_errors(rows, columns, q, q_target)
    weights = columns["importance_weight"].numpy()
    losses = 0.5 * np.nan_to_num(errors) ** 2
    assert found.loss.item() == pytest.approx(
        (losses.mean(0) * weights).mean(), rel=1e-4
    )
    sizes = np.abs(errors)
    priorities = 0.7 * np.nanmax(sizes, 0) + 0.3 * np.nanmean(sizes, 0)
    np.testing.assert_allclose(
        found.priorities.detach().numpy(), priorities + LEAST, rtol=1e-3
    )
    assert found.metrics["q"].item() == pytest.approx(
        q[BURN_IN:].max(-1).mean(), rel=1e-4
    )


def test_both_networks_burn_in_from_the_stored_state_without_gradient():
    rows = random_rows(0)
    columns, places = batch_of(rows, 0)
    net, target = nets_of(rows, 0)
    loss = update_of(net, target).loss(net, columns).loss
    for each, learns in ((net, True), (target, False)):
        (given, had_gradients, first), (_, learned, then) = each.unrolls
        assert torch.equal(given, columns["state/memory"])
        assert not had_gradients
        assert learned == learns
        assert first.tolist() == places[0].tolist()
        assert then.tolist() == places[BURN_IN].tolist()
    found = torch.autograd.grad(loss, [net.seen, net.table])
    burnt_in = torch.from_numpy(places[:BURN_IN].flatten())
    for gradient in found:
        assert gradient[burnt_in].abs().max() == 0
        assert gradient.abs().max() > 0


def test_an_episode_before_plays_no_part_in_the_memory():
    rows = random_rows(0)
    columns, _ = batch_of(rows, 0)
    ended = [b for b in range(6) if rows.is_reset[: BURN_IN - 1, b].any()]
    assert ended
    net, target = nets_of(rows, 0)
    update_of(net, target).loss(net, columns)
    changed = {name: column.clone() for name, column in columns.items()}
    changed["state/memory"] += 100.0
    other, _ = nets_of(rows, 0)
    update_of(other, target).loss(other, changed)
    before, after = net.unrolls[1][0], other.unrolls[1][0]
    same = [b for b in range(6) if before[b] == after[b]]
    is_begun = rows.is_reset[BURN_IN - 1]
    assert same == sorted({*ended, *is_begun.nonzero()[0].tolist()})


def test_a_target_is_of_the_next_step_and_not_of_its_own():
    # One step: reward 1, then the bootstrap value; no burn-in.
    net = LeakyNet(0.0, np.zeros(3), [[5.0, 0], [0.0, 8.0], [0.0, 0.0]])
    agent = R2d2(
        is_duelling=False,
        burn_in=0,
        unroll_length=1,
        period=1,
        num_steps=1,
        discount=0.5,
        rescaling_epsilon=1.0,
    )
    update = R2d2Update(agent, net, PRIORITIZED)
    columns = {
        "observation": torch.tensor([[0, 1]]),
        "action": torch.tensor([[0, 0]]),
        "reward": torch.tensor([[1.0, 99.0]]),
        "terminated": torch.zeros(1, 2, dtype=torch.uint8),
        "is_reset": torch.zeros(1, 2, dtype=torch.uint8),
        "state/memory": torch.zeros(1),
    }
    # h(x) = sqrt(x + 1) - 1 + x: h(x) = 8 at x = 19/2 - sqrt(19/2 ** 2 - 80).
    x = 9.5 - np.sqrt(9.5**2 - 80)
    assert np.sqrt(x + 1) - 1 + x == pytest.approx(8)
    y = 1 + 0.5 * x
    found = update.loss(net, columns)
    assert found.priorities.item() == pytest.approx(
        abs(np.sqrt(y + 1) - 1 + y - 5), rel=1e-4
    )


def test_priorities_are_of_learned_transitions_alone():
    rows = random_rows(0)
    columns, _ = batch_of(rows, 0)
    net, target = nets_of(rows, 0)
    before = update_of(net, target).loss(net, columns).priorities
    changed = {name: column.clone() for name, column in columns.items()}
    changed["reward"][:, :BURN_IN] = 1e6
    changed["reward"][columns["is_reset"].bool()] = 1e6
    after = update_of(net, target).loss(net, changed).priorities
    assert torch.equal(before, after)


def test_items_are_burn_in_sequence_and_one_step():
    layout = R2d2(unroll_length=40, burn_in=20, period=30).layout({})
    assert (layout.num_steps, layout.period, layout.is_closed) == (61, 30, False)
    with refused(UsageError, "period (41)"):
        R2d2(unroll_length=40, period=41)
