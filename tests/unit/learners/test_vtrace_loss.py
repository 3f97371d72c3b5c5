"""V-trace against the paper's sum, worked arrays and its properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen.actors import Unrolls, unroll_columns
from tengen.envs import EnvSpec, Step
from tengen.learners import VtraceConfig, VtraceLoss
from tengen.learners.losses import (
    baseline_loss,
    entropy_loss,
    policy_gradient_loss,
    vtrace_targets,
)
from tengen.nets import FeatureSpec, MlpConfig, build_net

Array = NDArray[np.float64]


def paper_targets(
    v: Array,
    r: Array,
    discount: Array,
    ratio: Array,
    trace_lambda: float,
    clip_rho: float,
    clip_c: float,
) -> Array:
    """Equation (1) of the paper as it stands: a sum of products for every start.

    Args:
        v: ``[T + 1]`` values; r, discount, ratio ``[T]``.
    """
    num_steps = len(r)
    vs = []
    for s in range(num_steps):
        total = v[s]
        for t in range(s, num_steps):
            product = 1.0
            for i in range(s, t):
                product *= discount[i] * trace_lambda * min(clip_c, ratio[i])
            delta = min(clip_rho, ratio[t]) * (r[t] + discount[t] * v[t + 1] - v[t])
            total += product * delta
        vs.append(total)
    return np.array(vs)


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("trace_lambda", [1.0, 0.7])
@pytest.mark.parametrize("clips", [(1.0, 1.0), (1.5, 0.8), (9.0, 9.0)])
def test_targets_equal_the_sum_of_the_paper(
    trace_lambda: float, clips: tuple[float, float]
) -> None:
    rng = np.random.default_rng(7)
    num_steps, num_rows = 9, 5
    v = rng.normal(size=(num_steps + 1, num_rows))
    r = rng.normal(size=(num_steps, num_rows))
    ratio = np.exp(rng.normal(size=(num_steps, num_rows)))
    discount = 0.9 * (rng.random((num_steps, num_rows)) > 0.2)
    clip_rho, clip_c = clips
    targets = vtrace_targets(
        v_tm1=tensor(v[:-1]),
        v_t=tensor(v[1:]),
        r_t=tensor(r),
        discount_t=tensor(discount),
        rho_tm1=tensor(ratio),
        trace_lambda=trace_lambda,
        clip_rho=clip_rho,
        clip_c=clip_c,
        clip_pg_rho=1.3,
    )
    expected = np.stack(
        [
            paper_targets(
                v[:, b], r[:, b], discount[:, b], ratio[:, b], trace_lambda, *clips
            )
            for b in range(num_rows)
        ],
        axis=1,
    )
    np.testing.assert_allclose(targets.vs_tm1.numpy(), expected, rtol=1e-12)
    vs_t = np.concatenate([expected[1:], v[-1:]])
    advantages = np.minimum(1.3, ratio) * (r + discount * vs_t - v[:-1])
    np.testing.assert_allclose(targets.pg_advantages.numpy(), advantages, rtol=1e-12)


def test_targets_of_a_worked_trace() -> None:
    # delta = (1*(1 + 2/2 - 1), 0.5*(0 + 4/2 - 2), 1*(2 + 8/2 - 4)) = (1, 0, 2);
    # c = (1, 0.5, 1); errors back to front: 2, 0 + 0.25*2 = 0.5, 1 + 0.5*0.5 = 1.25.
    targets = vtrace_targets(
        v_tm1=tensor([[1.0], [2.0], [4.0]]),
        v_t=tensor([[2.0], [4.0], [8.0]]),
        r_t=tensor([[1.0], [0.0], [2.0]]),
        discount_t=tensor([[0.5], [0.5], [0.5]]),
        rho_tm1=tensor([[3.0], [0.5], [1.0]]),
        clip_pg_rho=2.0,
    )
    assert targets.vs_tm1.flatten().tolist() == [2.25, 2.5, 6.0]
    # 2*(1 + 2.5/2 - 1), 0.5*(0 + 6/2 - 2), 1*(2 + 8/2 - 4)
    assert targets.pg_advantages.flatten().tolist() == [2.5, 0.5, 2.0]


def test_on_policy_targets_are_n_step_returns() -> None:
    rng = np.random.default_rng(3)
    v, r = rng.normal(size=8), rng.normal(size=7)
    targets = vtrace_targets(
        v_tm1=tensor(v[:-1, None]),
        v_t=tensor(v[1:, None]),
        r_t=tensor(r[:, None]),
        discount_t=torch.full((7, 1), 0.9, dtype=torch.float64),
        rho_tm1=torch.ones(7, 1, dtype=torch.float64),
    )
    expected = [
        sum(0.9 ** (t - s) * r[t] for t in range(s, 7)) + 0.9 ** (7 - s) * v[7]
        for s in range(7)
    ]
    np.testing.assert_allclose(targets.vs_tm1[:, 0].numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
def test_a_trace_of_two_episodes_is_two_traces(ending: str) -> None:
    rng = np.random.default_rng(11)
    first, second = 4, 5
    num_rows = first + 1 + second  # one row between resets the environment
    v, r = rng.normal(size=num_rows + 1), rng.normal(size=num_rows)
    rho = np.exp(rng.normal(size=num_rows))
    discount = np.full(num_rows, 0.9)
    if ending == "terminated":
        discount[first - 1] = 0.0
    rho[first] = 0.0

    def targets_of(rows: slice) -> tuple[Array, Array]:
        start, stop = rows.start, rows.stop
        result = vtrace_targets(
            v_tm1=tensor(v[rows, None]),
            v_t=tensor(v[start + 1 : stop + 1, None]),
            r_t=tensor(r[rows, None]),
            discount_t=tensor(discount[rows, None]),
            rho_tm1=tensor(rho[rows, None]),
        )
        return result.vs_tm1[:, 0].numpy(), result.pg_advantages[:, 0].numpy()

    both = targets_of(slice(0, num_rows))
    one = targets_of(slice(0, first))
    two = targets_of(slice(first + 1, num_rows))
    for whole, a, b in zip(both, one, two, strict=True):
        np.testing.assert_allclose(whole[:first], a, rtol=1e-12)
        np.testing.assert_allclose(whole[first + 1 :], b, rtol=1e-12)
    assert both[1][first] == 0  # the row that resets teaches nothing


def test_the_three_losses_of_worked_rows() -> None:
    logits = torch.tensor([[[0.0, math.log(3.0)]]])
    action = torch.tensor([[1]])
    policy = policy_gradient_loss(logits, action, torch.tensor([[2.0]]))
    assert math.isclose(policy.item(), -2.0 * math.log(0.75), rel_tol=1e-6)
    value = baseline_loss(torch.tensor([[1.0]]), torch.tensor([[4.0]]))
    assert value.item() == 4.5
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert math.isclose(entropy_loss(logits).item(), -entropy, rel_tol=1e-6)


class TableNet(torch.nn.Module):
    """Even logits and value 2^i at state i; the observation is the state's number."""

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        state = observations[:, 0].double()
        return torch.zeros(len(state), 2, dtype=torch.float64), 2.0**state


def two_episodes() -> dict[str, Tensor]:
    """An unroll as the actor makes it: an episode that terminates, one cut short.

    State 2 is terminal, 4 is where the limit cuts; 3 and 5 begin episodes. Only the
    rows that reset have an action of another policy, and it must not matter.
    """
    spec = EnvSpec(
        name="worked",
        observation_shape=(1,),
        observation_dtype="float32",
        num_actions=2,
        max_episode_steps=None,
        reward_threshold=None,
    )
    unrolls = Unrolls(unroll_columns(spec, 5), np.zeros((1, 1), np.float32))
    #                reward, terminated, truncated, is_reset
    for state, row in enumerate(
        [(1, 0, 0, 0), (3, 1, 0, 0), (7, 0, 0, 1), (1, 0, 1, 0), (7, 0, 0, 1)], start=1
    ):
        reward, terminated, truncated, is_reset = (np.array([x]) for x in row)
        logits = np.array([[0.0, 3.0 * is_reset[0]]], np.float32)
        step = Step(
            np.array([[state]], np.float32),
            reward.astype(np.float32),
            terminated.astype(bool),
            truncated.astype(bool),
            is_reset.astype(bool),
        )
        unrolls.append(logits, np.array([1]), step)
    assert unrolls.is_full
    return {
        name: torch.from_numpy(column)[None] for name, column in unrolls.of(0).items()
    }


def test_the_loss_of_a_worked_unroll_of_two_episodes() -> None:
    # Values 1 2 4 8 16 32, discount 1/2, on policy. Row 1 terminates: its target is
    # its reward, 3. Row 0: 1 + 3/2. Row 3 is cut: 1 + 16/2. Rows 2 and 4 reset.
    errors = [2.5 - 1, 3 - 2, 9 - 8]
    advantages = [1 + 3 / 2 - 1, 3 - 2, 1 + 16 / 2 - 8]
    log_two = math.log(2.0)
    expected = {
        "policy_loss": log_two * sum(advantages) / 5,
        "baseline_loss": sum(0.5 * error**2 for error in errors) / 5,
        "entropy": 3 * log_two / 5,
    }
    config = VtraceConfig(discount=0.5, baseline_cost=0.25, entropy_cost=0.1)
    loss, metrics = VtraceLoss(config)(TableNet(), two_episodes())
    for name, value in expected.items():
        assert metrics[name].item() == pytest.approx(value, rel=1e-6), name
    assert loss.item() == pytest.approx(
        expected["policy_loss"]
        + 0.25 * expected["baseline_loss"]
        - 0.1 * expected["entropy"]
    )


@pytest.mark.parametrize("column", ["terminated", "is_reset"])
def test_the_loss_reads_the_columns_that_end_episodes(column: str) -> None:
    config = VtraceConfig(discount=0.5)
    columns = two_episodes()
    loss, _ = VtraceLoss(config)(TableNet(), columns)
    ignored = {**columns, column: torch.zeros_like(columns[column])}
    other, _ = VtraceLoss(config)(TableNet(), ignored)
    assert abs(loss - other) > 0.1


@pytest.mark.parametrize("row", [2, 4])
def test_nothing_of_a_row_that_resets_is_learnt(row: int) -> None:
    config = VtraceConfig(discount=0.5)
    columns = two_episodes()
    loss, _ = VtraceLoss(config)(TableNet(), columns)
    columns["reward"][0, row] = 100.0
    columns["action"][0, row] = 0
    columns["behaviour_logits"][0, row] = torch.tensor([-5.0, 5.0])
    assert VtraceLoss(config)(TableNet(), columns)[0] == loss


def unroll(num_rows: int, num_steps: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    ends = torch.zeros(num_rows, num_steps, dtype=torch.uint8)
    return {
        "observation": torch.randn(num_rows, num_steps + 1, 4, generator=generator),
        "action": torch.randint(0, 2, (num_rows, num_steps), generator=generator),
        "reward": torch.ones(num_rows, num_steps),
        "terminated": ends.clone(),
        "is_reset": ends.clone(),
        "behaviour_logits": torch.randn(num_rows, num_steps, 2, generator=generator),
    }


def make_net() -> torch.nn.Module:
    torch.manual_seed(0)
    return build_net(FeatureSpec(num_planes=4, num_actions=2), MlpConfig())


def test_loss_is_a_mean_over_rows() -> None:
    net, loss = make_net(), VtraceLoss(VtraceConfig())
    columns = unroll(6, 8)
    whole, _ = loss(net, columns)
    parts = [
        loss(net, {name: column[rows] for name, column in columns.items()})[0]
        for rows in (slice(0, 3), slice(3, 6))
    ]
    torch.testing.assert_close(whole, (parts[0] + parts[1]) / 2)


def test_nothing_before_a_reset_depends_on_what_follows_it() -> None:
    net, loss = make_net(), VtraceLoss(VtraceConfig())
    columns = unroll(1, 6)
    columns["is_reset"][0, 3] = 1

    def gradient(changed: dict[str, Tensor]) -> Tensor:
        observations = changed["observation"].clone().requires_grad_()
        total, _ = loss(net, {**changed, "observation": observations})
        (result,) = torch.autograd.grad(total, observations)
        return result[0, :3]

    before = gradient(columns)
    later = {name: column.clone() for name, column in columns.items()}
    later["reward"][0, 3:] = 50.0
    later["observation"][0, 4:] += 3.0
    torch.testing.assert_close(gradient(later), before, rtol=0, atol=0)
    # A truncated episode does depend on its final observation, a terminated does not.
    final = {name: column.clone() for name, column in columns.items()}
    final["observation"][0, 3] += 3.0
    assert not torch.equal(gradient(final), before)
    columns["terminated"][0, 2] = 1
    final["terminated"][0, 2] = 1
    assert torch.equal(gradient(final), gradient(columns))
