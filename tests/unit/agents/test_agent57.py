"""Agent57's update against NGU's parts, its mixed values, and its bandit's file."""

import numpy as np
import pytest
import torch

from tengen import losses
from tengen.actors import INTRINSIC, is_legal
from tengen.agents.agent57 import Agent57, Agent57Update
from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.envs import ActionSpec
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.losses import mixed_values, signed_hyperbolic, signed_parabolic
from tengen.nets.modules.novelty import Judged
from tengen.tensors import ILLEGAL, POLICY
from tests.refusals import refused
from tests.unit.agents.agent_fakes import LeakyNet, items_of
from tests.unit.losses.episodes import random_rows

STORE = ReplayConfig(sampler="prioritized", max_items=10, importance_exponent=0.6)
ACTIONS = ActionSpec(num_choices=(3,))
SHARED = {
    "is_duelling": False,
    "burn_in": 7,
    "unroll_length": 33,
    "num_steps": 3,
    "rescaling_epsilon": 0.01,
}
AGENT = Agent57(**SHARED, num_policies=4, beta=0.5, discount=0.9, least_discount=0.5)


class TwoValues(LeakyNet):
    """A ``LeakyNet`` with a second table for the intrinsic values."""

    def __init__(self, *args, other):
        super().__init__(*args)
        self.other = torch.nn.Parameter(torch.as_tensor(other, dtype=torch.float32))

    def unroll(self, inputs, state, is_first):
        outputs, state = super().unroll(inputs, state, is_first)
        return {**outputs, "intrinsic_q": self.other[inputs["observation"]]}, state

    def judge(self, inputs):
        rows = len(inputs["observation"])
        return Judged(torch.zeros(rows, 32), torch.zeros(rows), torch.ones(rows))


def net(leak):
    rng = np.random.default_rng([3, int(10 * leak)])
    size = random_rows(0).v.size
    tables = [rng.normal(size=(size, 3)) for _ in range(2)]
    return TwoValues(leak, rng.normal(size=size), tables[0], other=tables[1])


def batch(policy):
    columns, _ = items_of(random_rows(0))
    rng = np.random.default_rng(4)
    num_items, num_steps = columns["reward"].shape
    floats = {
        "state/memory": rng.normal(size=num_items),
        "importance_weight": rng.uniform(0.1, 1, num_items),
        INTRINSIC: rng.uniform(0, 5, (num_items, num_steps)),
        "predictor_weight": np.ones(num_items),
        POLICY: np.eye(4)[np.full((num_items, num_steps), policy)],
    }
    return columns | {
        n: torch.from_numpy(a.astype(np.float32)) for n, a in floats.items()
    }


def update_of(online, target):
    update = Agent57Update(AGENT, online, STORE, ACTIONS)
    update.target = target
    return update


def test_policy_0_learns_the_extrinsic_value_as_r2d2_does():
    columns = batch(0)
    online, target = net(0.8), net(0.5)
    reference = R2d2Update(R2d2(**SHARED, discount=0.9), online, STORE)
    reference.target = target
    expected = torch.autograd.grad(
        reference.loss(online, columns).loss, [online.seen, online.table]
    )
    loss = update_of(online, target).loss(online, columns).loss
    found = torch.autograd.grad(loss, [online.seen, online.table])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_intrinsic_value_bootstraps_from_the_action_of_the_mixed_values():
    columns = batch(3)
    online, target = net(0.8), net(0.5)
    loss = update_of(online, target).loss(online, columns).loss
    [found] = torch.autograd.grad(loss, [online.other])
    # By hand, from the definitions, with one more network pass each.
    burn_in, weights = AGENT.burn_in, columns["importance_weight"]
    steps = {n: c.transpose(0, 1) for n, c in columns.items() if c.dim() > 1}
    is_first = steps["is_reset"].bool().roll(1, 0)
    is_first[0] = False
    inputs = {"observation": steps["observation"]}
    state = {"memory": columns["state/memory"]}
    q, q_target = (
        {n: x[burn_in:] for n, x in each.unroll(inputs, state, is_first)[0].items()}
        for each in (online, target)
    )
    extrinsic, intrinsic = (signed_parabolic(x.detach(), 0.01) for x in q.values())
    best = signed_hyperbolic(extrinsic + 0.5 * intrinsic, 0.01).argmax(-1)
    reached = q_target["intrinsic_q"].gather(-1, best[..., None]).squeeze(-1)
    learned = {name: column[burn_in:] for name, column in steps.items()}
    targets = losses.n_step_targets(
        reward=learned[INTRINSIC][1:],
        terminated=learned["terminated"][:-1],
        is_reset=learned["is_reset"],
        bootstrap=reached.detach(),
        num_steps=3,
        discount=0.5,
        rescaling_epsilon=0.01,
    )
    taken = learned["action"][:-1, :, None]
    errors = targets - q["intrinsic_q"][:-1].gather(-1, taken).squeeze(-1)
    errors = errors * (learned["is_reset"][:-1] == 0)
    by_hand = ((0.5 * errors**2).mean(0) * weights).mean()
    [expected] = torch.autograd.grad(by_hand, [online.other])
    torch.testing.assert_close(found, expected)


def test_each_error_is_divided_by_its_own_scale():
    online, target = net(0.8), net(0.5)
    update = update_of(online, target)
    columns = batch(2)
    before = update.loss(online, columns)
    metrics = dict.fromkeys(before.metrics, 1.0)
    metrics |= {"td_square": 4.0, "intrinsic_td_square": 100.0}
    update.stepped(online, 1, metrics)
    after = update.loss(online, columns)
    for part, scale in ((online.table, 2.0), (online.other, 10.0)):
        [one], [other] = (
            torch.autograd.grad(found.loss, [part], retain_graph=True)
            for found in (before, after)
        )
        torch.testing.assert_close(one, scale**2 * other)
    again = update_of(online, target)
    again.load_state(update.state())
    assert torch.equal(again.loss(online, columns).loss, after.loss)


@pytest.mark.parametrize("policy", [0, 3])
def test_priorities_are_of_both_errors_with_the_weights_of_acting(policy):
    online, target = net(0.8), net(0.5)
    update, columns = update_of(online, target), batch(policy)
    columns["importance_weight"][:] = 1.0
    found = update.loss(online, columns)
    # An error is the derivative of the loss by a Q value, as no row is in two steps.
    num_items, num_steps = columns["reward"].shape[0], AGENT.unroll_length
    grads = torch.autograd.grad(found.loss, [online.table, online.other])
    sizes = [
        (grad[columns["observation"]] * num_items * num_steps).abs().sum(-1)
        for grad in grads
    ]
    both = (sizes[0] + AGENT.betas()[policy] * sizes[1])[:, AGENT.burn_in : -1]
    num_live = (columns["is_reset"][:, AGENT.burn_in : -1] == 0).sum(1)
    expected = 0.9 * both.amax(1) + 0.1 * both.sum(1) / num_live
    torch.testing.assert_close(found.priorities, expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("is_duelling", [False, True])
def test_acting_mixes_as_learning_does(is_duelling):
    agent = Agent57(num_policies=4, beta=0.5, is_duelling=is_duelling)
    rng = np.random.default_rng(0)
    outputs = {
        name: 10 * rng.normal(size=(8, *spec.shape)).astype(np.float32)
        for name, spec in agent.outputs_of(ACTIONS).items()
    }
    policies = np.arange(8) % 4
    alone = agent.values_of(outputs)
    found = agent.values_of({**outputs, POLICY: np.eye(4, dtype=np.float32)[policies]})
    names = ("value", "advantage") if is_duelling else ("q",)
    own = {name: outputs["intrinsic_" + name] for name in names}
    parts = [
        torch.from_numpy(q)
        for q in (alone, R2d2(is_duelling=is_duelling).values_of(own))
    ]
    betas = torch.tensor(agent.betas()[policies])[:, None]
    expected = mixed_values(*parts, betas, agent.rescaling_epsilon)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    # Policy 0 takes the extrinsic values as they are.
    np.testing.assert_allclose(found[::4], alone[::4], rtol=1e-4, atol=1e-4)


def test_an_illegal_action_stays_illegal_in_mixed_values():
    agent = Agent57(num_policies=2, beta=5.0, is_duelling=False)
    row = np.array([[1.0, ILLEGAL, 2.0]], np.float32)
    outputs = {"q": row, "intrinsic_q": row, POLICY: np.eye(2, dtype=np.float32)[[1]]}
    assert is_legal(agent.values_of(outputs)).tolist() == [[True, False, True]]
    tensors = [torch.from_numpy(row)] * 2
    mixed = mixed_values(*tensors, torch.ones(1, 1), 1e-9)
    assert mixed[0, 1] == ILLEGAL
    assert mixed.argmax() == 2


def test_a_window_with_too_little_or_too_much_room_is_refused():
    with refused(UsageError, "bandit_window (7)"):
        Agent57(bandit_window=7, num_policies=8)
    with refused(UsageError, "bandit_window (100000) must be at most 25000 with 16"):
        Agent57(bandit_window=100_000)
