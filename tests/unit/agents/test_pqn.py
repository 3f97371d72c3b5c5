"""PQN's update against a worked unroll."""

from __future__ import annotations

import pytest

from tengen.agents.pqn import Pqn, PqnUpdate
from tengen.errors import UsageError
from tengen.experience import ItemLayout
from tengen.tensors import TensorSpec
from tests.refusals import refused
from tests.unit.agents.agent_fakes import TableNet, item

# Row 1 terminates, row 2 is a reset, row 3 is truncated, row 4 is a reset; row 5
# closes the unroll. The greatest Q of observation i is VALUES[i].
ACTIONS = [1, 0, 0, 1, 0, 0]
COLUMNS = {
    "observation": [0, 1, 2, 3, 4, 5],
    "action": ACTIONS,
    "reward": [0.25, 0.75, 77.0, 0.25, 77.0, 0.0],
    "terminated": [0, 1, 0, 0, 0, 0],
    "truncated": [0, 0, 0, 1, 0, 0],
    "is_reset": [0, 0, 1, 0, 1, 0],
}
VALUES = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
LIVE = [0, 1, 3]


def net():
    return TableNet(q=[[value, value / 2] for value in VALUES])


def minibatches(agent, columns=COLUMNS):
    return list(PqnUpdate(agent).minibatches(net(), item(**columns)))


def targets(agent, columns):
    """Returns the targets by observation."""
    [batch] = minibatches(agent, columns)
    pairs = (batch[name].flatten().tolist() for name in ("observation", "target"))
    return dict(zip(*pairs, strict=True))


@pytest.mark.parametrize(
    ("trace_lambda", "first"),
    [
        (0.0, 0.25 + 0.5 * 2),  # one step: the greatest Q of observation 1
        (1.0, 0.25 + 0.5 * 0.75),  # the rewards up to the termination
        (0.5, 0.25 + 0.5 * (0.5 * 2 + 0.5 * 0.75)),
    ],
)
def test_targets_stop_at_ends_and_bootstrap_at_truncations(trace_lambda, first):
    agent = Pqn(
        discount=0.5, trace_lambda=trace_lambda, num_epochs=1, num_minibatches=1
    )
    found = targets(agent, COLUMNS)
    # Reset steps are no transitions. Row 3 bootstraps from observation 4.
    assert found == pytest.approx({0: first, 1: 0.75, 3: 0.25 + 0.5 * 16})


def test_large_rewards_are_divided_by_the_scale_of_returns():
    agent = Pqn(discount=0.5, trace_lambda=1.0, num_epochs=1, num_minibatches=1)
    rewards = [10 * reward for reward in COLUMNS["reward"]]
    found = targets(agent, {**COLUMNS, "reward": rewards})
    scale = ((0.625**2 + 0.75**2 + 0.25**2) / 3) ** 0.5  # of the discounted returns
    expected = {0: 0.625 / scale, 1: 0.75 / scale, 3: 0.25 / scale + 0.5 * 16}
    assert found == pytest.approx(expected)


def test_the_scale_is_in_checkpoints():
    agent = Pqn(discount=0.5, trace_lambda=1.0, num_epochs=1, num_minibatches=1)
    first, resumed = PqnUpdate(agent), PqnUpdate(agent)

    def learned(update, factor):
        rewards = [factor * reward for reward in COLUMNS["reward"]]
        columns = item(**{**COLUMNS, "reward": rewards})
        [batch] = update.minibatches(net(), columns)
        return sorted(batch["target"].flatten().tolist())  # they are shuffled

    learned(first, 40)
    resumed.load_state(first.state())
    assert learned(resumed, 10) == learned(first, 10) != learned(PqnUpdate(agent), 10)


def test_each_epoch_has_every_transition_once():
    agent = Pqn(num_epochs=3, num_minibatches=2)
    batches = minibatches(agent)
    assert len(batches) == 6
    seen = [batch["observation"].flatten().tolist() for batch in batches]
    for epoch in range(3):
        assert sorted(seen[2 * epoch] + seen[2 * epoch + 1]) == LIVE


def test_the_loss_is_the_huber_loss_of_the_actions_taken():
    agent = Pqn(discount=0.5, trace_lambda=0.0, num_epochs=1, num_minibatches=1)
    table = net()
    update = PqnUpdate(agent)
    [batch] = update.minibatches(table, item(**COLUMNS))
    found = update.loss(table, batch)
    # Errors: 1.25 - 0.5, 0.75 - 2, 8.25 - 4; the loss is linear beyond 1.
    assert found.loss.item() == pytest.approx((0.75**2 / 2 + 0.75 + 3.75) / 3)
    assert found.metrics["td_error"].item() == pytest.approx((0.75 + 1.25 + 4.25) / 3)
    found.loss.backward()
    gradient = table.tables["q"].grad
    assert gradient is not None
    taken = [(row, ACTIONS[row]) for row in LIVE]
    assert gradient.nonzero().tolist() == [list(place) for place in taken]
    assert [gradient[place].sign().item() for place in taken] == [-1.0, 1.0, -1.0]


def test_a_network_with_memory_is_refused():
    with refused(UsageError, "lstm/cell"):
        Pqn().layout({"lstm/cell": TensorSpec(shape=(4,))})
    assert Pqn(unroll_length=5).layout({}) == ItemLayout(
        num_steps=6, period=5, is_closed=True
    )
