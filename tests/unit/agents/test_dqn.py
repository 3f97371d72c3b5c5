"""DQN's update against worked items and a slow, readable reference."""

import numpy as np
import pytest
import torch

from tengen.agents.dqn import Dqn, DqnUpdate
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.tensors import TensorSpec
from tests.refusals import refused
from tests.unit.agents.agent_fakes import TableNet, item, items_of
from tests.unit.losses.episodes import random_rows

PRIORITIZED = ReplayConfig(sampler="prioritized", max_items=10)
# Added to each TD error, so that every item can be sampled again.
LEAST = 1e-6


def update_of(net, target=None, **settings):
    update = DqnUpdate(
        Dqn(is_duelling=False, discount=0.5, **settings), net, PRIORITIZED
    )
    if target is not None:
        with torch.no_grad():
            update.target.tables["q"].copy_(torch.as_tensor(target))
    return update


def target_of(columns, num_steps=3):
    """Returns the target of an item's first action, whose value is 0.

    The online network prefers action i % 2 in state i. The target network's value is
    100 * (i + 1) for that action, and 7 for the other.
    """
    online, target = np.zeros((8, 2)), np.full((8, 2), 7.0)
    for i in range(1, 8):
        online[i, i % 2] = 0.5
        target[i, i % 2] = 100.0 * (i + 1)
    net = TableNet(q=online)
    found = update_of(net, target, num_steps=num_steps).loss(net, item(**columns))
    return found.priorities.item() - LEAST


STEPS = {"observation": [0, 1, 2, 3], "reward": [1.0, 2.0, 4.0, 64.0]}


def test_a_target_without_an_end_is_n_rewards_and_the_value_after_them():
    assert target_of(STEPS) == pytest.approx(1 + 2 / 2 + 4 / 4 + 400 / 8)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_terminal_value_that_is_not_finite_is_in_no_target(value):
    values = np.zeros((4, 2))
    values[3] = value
    columns = item(**STEPS, terminated=[0, 0, 1, 0], is_reset=[0, 0, 0, 1])
    found = update_of(TableNet(q=values), values).loss(TableNet(q=values), columns)
    assert found.priorities.item() - LEAST == pytest.approx(1 + 2 / 2 + 4 / 4)


@pytest.mark.parametrize("num_steps", [1, 3, 10])
@pytest.mark.parametrize("seed", range(2))
def test_loss_and_priorities_are_the_slow_reference_s(seed, num_steps):
    # The bootstrap row of transition t is t + n, so its item is rows t to t + n.
    rows = random_rows(seed)
    columns, places = items_of(rows, seed=seed)
    rng = np.random.default_rng([seed, 2])
    online = rng.normal(size=(places.size, 3))
    target = rng.normal(size=(places.size, 3))
    net = TableNet(q=online)
    update = update_of(net, target, num_steps=num_steps)
    items, errors, firsts = [], [], []
    for b in range(places.shape[1]):
        for piece in rows.pieces(b):
            for t in range(piece.start, min(piece.stop, len(places) - num_steps)):
                items.append((b, t))
                end, total = min(t + num_steps, piece.stop), 0.0
                for k in range(t, end):
                    total += 0.5 ** (k - t) * rows.reward[k, b]
                if not (piece.terminated and end == piece.stop):
                    reached = places[end, b]
                    value = target[reached, online[reached].argmax()]
                    total += 0.5 ** (end - t) * value
                action = int(columns["action"][b, t])
                errors.append(total - online[places[t, b], action])
                firsts.append(online[places[t, b]].max())
    batch = {
        name: torch.stack([column[b, t : t + num_steps + 1] for b, t in items])
        for name, column in columns.items()
    }
    weights = rng.uniform(0.1, 1.0, len(items)).astype(np.float32)
    batch["importance_weight"] = torch.from_numpy(weights)
    found = update.loss(net, batch)
    sizes = np.abs(errors)
    huber = np.where(sizes < 1, 0.5 * sizes**2, sizes - 0.5)
    assert found.loss.item() == pytest.approx((huber * weights).mean(), rel=1e-4)
    assert found.metrics["td_error"].item() == pytest.approx(sizes.mean(), rel=1e-4)
    assert found.metrics["q"].item() == pytest.approx(np.mean(firsts), rel=1e-4)
    np.testing.assert_allclose(
        found.priorities.detach().numpy(), sizes + LEAST, rtol=1e-3, atol=1e-5
    )
    # Only the first observations of items have gradients.
    (gradient,) = torch.autograd.grad(found.loss, [net.tables["q"]])
    learned = {int(place) for place in gradient.abs().sum(1).nonzero()}
    assert learned <= {int(places[t, b]) for b, t in items}
    assert len(learned) > 50


def test_weights_are_asked_for_where_draws_are_uneven_alone():
    net = TableNet(q=[[0.0, 1.0]])
    assert update_of(net).importance_exponent == 0.4
    even = ReplayConfig(sampler="uniform", max_items=10)
    assert DqnUpdate(Dqn(), net, even).importance_exponent is None
    # Without importance weights, all items have equal weight.
    columns = {name: column.expand(2, -1) for name, column in item(**STEPS).items()}
    net = TableNet(q=np.zeros((4, 2)))
    found = update_of(net).loss(net, columns)
    columns["importance_weight"] = torch.ones(2)
    assert update_of(net).loss(net, columns).loss == found.loss


def test_a_network_with_memory_is_refused():
    layout = Dqn(num_steps=5).layout({})
    assert (layout.num_steps, layout.period, layout.is_closed) == (6, 1, False)
    with refused(UsageError, "net (lstm/hidden)"):
        Dqn().layout({"lstm/hidden": TensorSpec(shape=(8,))})
