"""PPO's update against slow references: its minibatches and its clipped losses."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from tengen.agents.bases.unrolls import unroll
from tengen.agents.ppo import Ppo, PpoUpdate
from tengen.envs import ActionSpec
from tengen.errors import UsageError
from tengen.losses import gae_targets
from tengen.overrides import override
from tengen.recipes import make_config
from tests.refusals import refused
from tests.unit.agents.agent_fakes import LeakyNet, TableNet, item, items_of
from tests.unit.losses.episodes import random_rows, tensor, tensors

DISCOUNT, TRACE_LAMBDA = 0.9, 0.7


def update_of(**settings):
    given = {
        "discount": DISCOUNT,
        "trace_lambda": TRACE_LAMBDA,
        "uses_vtrace": False,
        **settings,
    }
    return PpoUpdate(Ppo(**given), ActionSpec(num_choices=(3,)))


def rows_of(seed):
    """Returns random rows with small returns, which are not scaled."""
    rows = random_rows(seed)
    return dataclasses.replace(rows, reward=0.1 * rows.reward)


def net_of(rows):
    logits = np.random.default_rng(5).normal(size=(rows.v.size, 3))
    return TableNet(policy=logits, value=rows.v.flatten())


class MemoryNet(LeakyNet):
    """A recurrent policy, which learns from complete items."""

    def __init__(self, rows):
        size = rows.v.size
        super().__init__(0.5, np.linspace(-1, 1, size), np.zeros((size, 3)))

    def unroll(self, inputs, state, is_first):
        outputs, state = super().unroll(inputs, state, is_first)
        return {"policy": outputs["q"], "value": outputs["q"][..., 0]}, state


def targets_of(rows, ratio=None):
    """Returns advantages and returns ``[T, B]``; tests/unit/losses checks the sums."""
    found = gae_targets(
        v=tensor(rows.v),
        **tensors(rows),
        discount=DISCOUNT,
        trace_lambda=TRACE_LAMBDA,
        ratio=None if ratio is None else tensor(ratio),
    )
    return found.advantages.numpy(), found.returns.numpy()


def test_every_transition_is_used_once_an_epoch_and_resets_never():
    rows = rows_of(0)
    columns, places = items_of(rows)
    update = update_of(num_epochs=3, num_minibatches=4)
    minibatches = list(update.minibatches(net_of(rows), columns))
    assert len(minibatches) == 12
    live = sorted(places[:-1][~rows.is_reset[:-1]].tolist())
    sizes = set()
    for epoch in range(3):
        used = [m["observation"] for m in minibatches[4 * epoch : 4 * epoch + 4]]
        sizes |= {len(part) for part in used}
        assert sorted(torch.cat(used).flatten().tolist()) == live
    assert max(sizes) - min(sizes) <= 1
    orders = [m["observation"].flatten().tolist() for m in minibatches[::4]]
    assert orders[0] != orders[1] != orders[2]


def test_minibatches_have_the_columns_of_their_transitions_and_the_targets():
    rows = rows_of(1)
    columns, places = items_of(rows)
    net = net_of(rows)
    advantages, _ = targets_of(rows)
    flat = {name: column[:, :-1].T.flatten() for name, column in columns.items()}
    where = {int(place): i for i, place in enumerate(places[:-1].flatten())}
    for minibatch in update_of(num_epochs=1).minibatches(net, columns):
        chosen = [where[int(place)] for place in minibatch["observation"].flatten()]
        for name in ("action", "behaviour_log_prob", "reward", "terminated"):
            assert minibatch[name].flatten().tolist() == flat[name][chosen].tolist()
        raw = advantages.flatten()[chosen]
        expected = (raw - raw.mean()) / raw.std()
        np.testing.assert_allclose(
            minibatch["advantage"].flatten(), expected, rtol=1e-3, atol=1e-5
        )
        values = rows.v[:-1].flatten()[chosen]
        np.testing.assert_allclose(
            minibatch["behaviour_value"].flatten(), values, rtol=1e-5
        )
        np.testing.assert_allclose(
            minibatch["returns"].flatten(), raw + values, rtol=1e-3, atol=1e-5
        )
        assert {tuple(c.shape[:2]) for c in minibatch.values()} == {(len(chosen), 1)}
        assert not any(c.requires_grad for c in minibatch.values())


def test_targets_are_of_the_network_as_it_was_before_the_batch():
    rows = rows_of(2)
    columns, _ = items_of(rows)
    net = net_of(rows)
    found = []
    torch.manual_seed(3)
    for minibatch in update_of(num_epochs=2).minibatches(net, columns):
        found.append(minibatch)
        with torch.no_grad():
            net.tables["value"].add_(100.0)
    torch.manual_seed(3)
    same = list(update_of(num_epochs=2).minibatches(net_of(rows), columns))
    for one, other in zip(found, same, strict=True):
        for name in ("advantage", "returns", "behaviour_value"):
            assert torch.equal(one[name], other[name])


def test_the_unit_of_large_rewards_does_not_matter():
    rows = rows_of(1)
    columns, _ = items_of(rows)
    found = []
    for unit in (100.0, 4000.0):
        update = update_of(num_epochs=1)
        scaled = {**columns, "reward": unit * columns["reward"]}
        # The scale is a running estimate; after 100 batches its start hardly matters.
        for _ in range(100):
            torch.manual_seed(3)
            last = list(update.minibatches(net_of(rows), scaled))
        found.append(last)
        assert update.state()["return_scale"][0] > 0
    for one, other in zip(*found, strict=True):
        for name in ("advantage", "returns"):
            torch.testing.assert_close(one[name], other[name], rtol=0.05, atol=0.05)
    returns = torch.cat([part["returns"].flatten() for part in found[0]])
    assert returns.abs().max() < 10


def test_the_order_is_of_torch_s_generator():
    rows = rows_of(0)
    columns, _ = items_of(rows)

    def order(seed):
        torch.manual_seed(seed)
        parts = update_of(num_epochs=1).minibatches(net_of(rows), columns)
        return [int(i) for part in parts for i in part["observation"].flatten()]

    assert order(1) == order(1) != order(2)


def test_a_network_with_memory_learns_from_whole_unrolls():
    rows = rows_of(0)
    columns, places = items_of(rows)
    net = MemoryNet(rows)
    columns["state/memory"] = torch.arange(6.0)
    minibatches = list(
        update_of(num_epochs=2, num_minibatches=3).minibatches(net, columns)
    )
    assert len(minibatches) == 6
    for epoch in (minibatches[:3], minibatches[3:]):
        seen = torch.cat([minibatch["state/memory"] for minibatch in epoch])
        assert sorted(seen.tolist()) == list(range(6))
    for minibatch in minibatches:
        chosen = [int(item) for item in minibatch["state/memory"]]
        expected = places[:-1, chosen].T
        assert minibatch["observation"].tolist() == expected.tolist()
        is_live = ~rows.is_reset[:-1, chosen].T
        advantage = minibatch["advantage"].numpy()
        assert np.abs(advantage[~is_live]).max() == 0
        assert advantage[is_live].mean() == pytest.approx(0, abs=1e-5)
        assert advantage[is_live].std() == pytest.approx(1, abs=1e-4)


def test_nothing_of_a_row_that_resets_is_learnt_with_memory():
    rows = rows_of(0)
    columns, places = items_of(rows)
    columns["state/memory"] = torch.arange(6.0)
    update = update_of(num_epochs=1, num_minibatches=1)

    def gradients(net, columns):
        torch.manual_seed(0)  # the order of rows affects rounding
        (minibatch,) = update.minibatches(net, columns)
        order = minibatch["state/memory"].argsort()
        minibatch = {name: column[order] for name, column in minibatch.items()}
        with torch.no_grad():  # as after the optimizer step of an earlier minibatch
            net.table.add_(torch.tensor([0.3, 0.0, -0.3]))
        loss = update.loss(net, minibatch).loss
        return list(torch.autograd.grad(loss, [net.seen, net.table]))

    before = gradients(MemoryNet(rows), columns)
    assert before[0].abs().sum() > 0
    is_reset = columns["is_reset"].bool()
    is_reset[:, -1] = True  # the last row is used only for bootstrapping
    other = {name: column.clone() for name, column in columns.items()}
    other["reward"][is_reset] = -50.0
    other["action"][is_reset] = 0
    other["behaviour_log_prob"][is_reset] = -90.0
    after = gradients(MemoryNet(rows), other)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    # Neither observations of resets nor the previous episode's state get gradients.
    resets = places[:-1][rows.is_reset[:-1]]
    assert before[0][torch.from_numpy(resets)].abs().max() == 0


def worked_minibatch(**columns):
    """Returns transitions ``[rows, 1]`` in the format of ``minibatches``."""
    dtypes = {"observation": torch.int64, "action": torch.int64}
    length = len(columns["action"])
    given = {
        "observation": list(range(length)),
        "is_reset": [0] * length,
        **columns,
    }
    return {
        name: torch.tensor(column, dtype=dtypes.get(name, torch.float32))[:, None]
        for name, column in given.items()
    }


@pytest.mark.parametrize(
    ("ratio", "advantage", "surrogate", "has_gradient", "is_clipped"),
    [
        (1.0, 2.0, 2.0, True, 0.0),
        (1.1, 2.0, 2.2, True, 0.0),
        (1.5, 2.0, 2.4, False, 1.0),
        (1.5, -2.0, -3.0, True, 1.0),
        (0.5, 2.0, 1.0, True, 1.0),
        (0.5, -2.0, -1.6, False, 1.0),
    ],
)
def test_the_clipped_loss_of_a_worked_transition(
    ratio, advantage, surrogate, has_gradient, is_clipped
):
    net = TableNet(policy=[[0.0, 0.0, 0.0]], value=[4.0])
    minibatch = worked_minibatch(
        action=[1],
        behaviour_log_prob=[math.log(1 / 3) - math.log(ratio)],
        advantage=[advantage],
        behaviour_value=[4.5],
        returns=[7.0],
    )
    update = update_of(entropy_cost=0.1, baseline_cost=0.3)
    found = update.loss(net, minibatch)
    expected = {
        "policy_loss": -surrogate,
        "baseline_loss": 0.5 * 3.0**2,
        "entropy": math.log(3.0),
        "approximate_kl": ratio - 1 - math.log(ratio),
        "clip_fraction": is_clipped,
    }
    for name, value in expected.items():
        assert found.metrics[name].item() == pytest.approx(value, rel=1e-5), name
    total = -surrogate + 0.3 * 4.5 - 0.1 * math.log(3.0)
    assert found.loss.item() == pytest.approx(total, rel=1e-5)
    assert found.priorities is None
    (gradient,) = torch.autograd.grad(
        found.metrics["policy_loss"], net.tables["policy"]
    )
    assert (gradient.abs().sum() > 0) == has_gradient


def test_v_trace_corrects_for_the_policy_that_acted():
    rows = rows_of(3)
    columns, places = items_of(rows)
    net = net_of(rows)
    logits = net.tables["policy"].detach().numpy().astype(np.float64)
    log_policy = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    action = columns["action"].numpy().T[:-1]
    now = log_policy[places[:-1], action]
    acted = columns["behaviour_log_prob"].numpy().T[:-1]
    ratio = np.exp(now - acted)
    assert ratio.min() < 0.5
    assert ratio.max() > 2
    advantages, returns = targets_of(rows, ratio)
    where = {int(place): i for i, place in enumerate(places[:-1].flatten())}
    update = update_of(uses_vtrace=True, num_epochs=1, num_minibatches=1)
    (minibatch,) = update.minibatches(net, columns)
    chosen = [where[int(place)] for place in minibatch["observation"].flatten()]
    np.testing.assert_allclose(
        minibatch["returns"].flatten(), returns.flatten()[chosen], rtol=1e-3, atol=1e-4
    )
    advantages = advantages.flatten()[chosen]
    expected = (advantages - advantages.mean()) / advantages.std()
    np.testing.assert_allclose(
        minibatch["advantage"].flatten(), expected, rtol=1e-3, atol=1e-4
    )
    # The ratio of the clipped loss is relative to the policy that acted.
    assert minibatch["behaviour_log_prob"].flatten().tolist() == pytest.approx(
        acted.flatten()[chosen].tolist()
    )


@pytest.mark.parametrize("has_memory", [False, True])
def test_v_trace_changes_nothing_where_the_policy_that_acted_learns(has_memory):
    rows = rows_of(4)
    columns, _ = items_of(rows)
    net = MemoryNet(rows) if has_memory else net_of(rows)
    columns["state/memory"] = torch.zeros(6)
    with torch.no_grad():
        answers = unroll(net, columns).outputs["policy"]
    log_policy = answers.log_softmax(-1).transpose(0, 1)
    action = columns["action"][..., None]
    columns["behaviour_log_prob"][:] = log_policy.gather(-1, action).squeeze(-1)

    def minibatches(uses_vtrace):
        torch.manual_seed(0)
        update = update_of(uses_vtrace=uses_vtrace, num_epochs=1)
        return list(update.minibatches(net, columns))

    for one, other in zip(minibatches(False), minibatches(True), strict=True):
        assert one.keys() == other.keys()
        for name, column in one.items():
            torch.testing.assert_close(column, other[name], rtol=1e-4, atol=1e-5)


def test_the_bound_on_lag_is_of_25_batches_unless_it_is_set():
    assert update_of(num_epochs=10, num_minibatches=4).max_lag == 1000
    assert update_of(num_epochs=1, num_minibatches=1).max_lag == 25
    assert update_of(max_lag=0).max_lag == 0


@pytest.mark.parametrize(("value", "loss"), [(4.9, 0.5 * 2.1**2), (6.0, 0.5 * 2.0**2)])
def test_values_may_be_clipped_too(value, loss):
    # The value exceeds 4.5 + 0.5, so the larger of the two losses counts.
    net = TableNet(policy=[[0.0, 0.0, 0.0]], value=[value])
    minibatch = worked_minibatch(
        action=[0],
        behaviour_log_prob=[-1.0],
        advantage=[0.0],
        behaviour_value=[4.5],
        returns=[7.0],
    )
    found = update_of(clip_value=0.5).loss(net, minibatch)
    assert found.metrics["baseline_loss"].item() == pytest.approx(loss, rel=1e-5)


def test_a_batch_of_resets_alone_has_no_loss():
    columns = item(observation=[0, 1], reward=[5.0, 0.0], is_reset=[1, 0])
    net = TableNet(policy=np.zeros((2, 3)), value=[1.0, 2.0])
    update = update_of(num_epochs=2)
    minibatches = list(update.minibatches(net, columns))
    assert [update.loss(net, m).loss.item() for m in minibatches] == [0.0, 0.0]


def test_a_memory_needs_whole_unrolls_in_each_minibatch():
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", "ppo", None)
    several = ["learner.batch_size=8", "agent.num_minibatches=9"]
    config = override(config, several)
    config.check_task()
    with_memory = override(config, ["net.lstm_units=4"])
    with refused(UsageError, "agent.num_minibatches (9)"):
        with_memory.check_task()
    fewer = override(with_memory, ["agent.num_minibatches=8"])
    fewer.check_task()
