"""Generalized advantage estimation against worked arrays and the paper's sum."""

import numpy as np
import pytest
import torch

from tengen.losses import gae_targets, vtrace_targets
from tests.unit.losses.episodes import random_rows, tensor, tensors


def paper_advantages(rows, discount, trace_lambda):
    """Equation (16) literally: a sum over the rest of the episode for every row."""
    advantages = np.zeros_like(rows.reward)
    for b in range(rows.reward.shape[1]):
        for piece in rows.pieces(b):
            deltas = []
            for t in range(piece.start, piece.stop):
                is_terminal = piece.terminated and t + 1 == piece.stop
                v_next = 0.0 if is_terminal else rows.v[t + 1, b]
                deltas.append(rows.reward[t, b] + discount * v_next - rows.v[t, b])
            for i in range(len(deltas)):
                advantages[piece.start + i, b] = sum(
                    (discount * trace_lambda) ** k * delta
                    for k, delta in enumerate(deltas[i:])
                )
    return advantages


@pytest.mark.parametrize("trace_lambda", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_advantages_equal_the_sum_of_the_paper(seed, trace_lambda):
    rows = random_rows(seed)
    targets = gae_targets(
        v=tensor(rows.v), **tensors(rows), discount=0.9, trace_lambda=trace_lambda
    )
    expected = paper_advantages(rows, 0.9, trace_lambda)
    np.testing.assert_allclose(targets.advantages.numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(
        targets.returns.numpy(), expected + rows.v[:-1], atol=1e-12
    )


# Row 1 terminates, row 3 is truncated, rows 2 and 4 reset.
V = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
REWARD = [1.0, 3.0, 0.0, 1.0, 0.0, 2.0]
TERMINATED = [0, 1, 0, 0, 0, 0]
IS_RESET = [0, 0, 1, 0, 1, 0, 0]


def worked_targets(v, reward):
    targets = gae_targets(
        v=torch.tensor(v)[:, None],
        reward=torch.tensor(reward)[:, None],
        terminated=torch.tensor(TERMINATED, dtype=torch.uint8)[:, None],
        is_reset=torch.tensor(IS_RESET, dtype=torch.uint8)[:, None],
        discount=0.5,
        trace_lambda=0.5,
    )
    assert targets.advantages.dtype == torch.float32
    return targets.advantages.flatten().tolist(), targets.returns.flatten().tolist()


def test_advantages_of_worked_rows():
    # delta = 1 + 2/2 - 1 = 1;  3 - 2 = 1;  -;  1 + 16/2 - 8 = 1;  -;  2 + 64/2 - 32 = 2
    # advantage[0] = 1 + 1/4 * 1
    advantages, returns = worked_targets(V, REWARD)
    assert advantages == [1.25, 1.0, 0.0, 1.0, 0.0, 2.0]
    assert returns == [2.25, 3.0, 4.0, 9.0, 16.0, 34.0]


def test_a_truncated_episode_is_not_taken_for_a_terminated_one():
    # Row 3 is worth its reward plus half the value of the final observation, row 4.
    _, returns = worked_targets(V, REWARD)
    assert returns[3] == 1.0 + 16.0 / 2


def test_flags_may_be_bool_and_the_last_one_left_out():
    rows = random_rows(0)
    given = tensors(rows)
    as_bool = {
        "reward": given["reward"],
        "terminated": given["terminated"].bool(),
        "is_reset": given["is_reset"].bool()[:-1],
    }
    v = tensor(rows.v)
    one = gae_targets(v=v, **given, discount=0.9, trace_lambda=0.9)
    other = gae_targets(v=v, **as_bool, discount=0.9, trace_lambda=0.9)
    assert torch.equal(one.advantages, other.advantages)


def test_targets_have_no_gradient():
    rows = random_rows(0)
    v = tensor(rows.v).requires_grad_()
    targets = gae_targets(v=v, **tensors(rows), discount=0.9, trace_lambda=0.9)
    assert not targets.advantages.requires_grad
    assert not targets.returns.requires_grad


def ratios_of(rows, seed):
    """Returns random ratios around 1; reset rows get 1e6, which must have no effect."""
    rng = np.random.default_rng([seed, 7])
    return np.where(rows.is_reset[:-1], 1e6, rng.uniform(0.1, 3.0, rows.reward.shape))


@pytest.mark.parametrize("trace_lambda", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_with_ratios_of_one_nothing_is_weighed(seed, trace_lambda):
    rows = random_rows(seed)
    given = {"v": tensor(rows.v), **tensors(rows)}
    settings = {"discount": 0.9, "trace_lambda": trace_lambda}
    plain = gae_targets(**given, **settings)
    ones = gae_targets(**given, **settings, ratio=tensor(np.ones(rows.reward.shape)))
    for one, other in zip(plain, ones, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("trace_lambda", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_with_ratios_returns_are_v_trace_s(seed, trace_lambda):
    rows = random_rows(seed)
    ratio, v = ratios_of(rows, seed), tensor(rows.v)
    found = gae_targets(
        v=v,
        **tensors(rows),
        discount=0.9,
        trace_lambda=trace_lambda,
        ratio=tensor(ratio),
    )
    targets = vtrace_targets(
        v_tm1=v[:-1],
        v_t=v[1:],
        r_t=tensor(rows.reward),
        discount_t=tensor(0.9 * ~rows.terminated),
        rho_tm1=tensor(ratio * ~rows.is_reset[:-1]),
        trace_lambda=trace_lambda,
    )
    np.testing.assert_allclose(found.returns, targets.vs_tm1, atol=1e-12)
    if trace_lambda == 1.0:
        weighed = found.advantages.numpy() * ratio.clip(max=1)
        np.testing.assert_allclose(weighed, targets.pg_advantages, atol=1e-12)


def test_a_worked_trace_of_ratios():
    # delta = 2 + 4/2 - 1 = 3;  4 + 8/2 - 4 = 4
    found = gae_targets(
        v=tensor([[1.0], [4.0], [8.0]]),
        reward=tensor([[2.0], [4.0]]),
        terminated=torch.zeros(2, 1),
        is_reset=torch.zeros(3, 1),
        discount=0.5,
        trace_lambda=0.5,
        ratio=tensor([[3.0], [0.25]]),
    )
    # A quarter of the second row's 4 is propagated: 3 + 1/4 * 1.
    assert found.advantages.flatten().tolist() == [3.25, 4.0]
    assert found.returns.flatten().tolist() == [4.25, 5.0]


@pytest.mark.parametrize("with_ratio", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_across_episodes_it_is_one_endless_episode(seed, with_ratio):
    rows = random_rows(seed)
    ratio = np.random.default_rng(seed).uniform(0.2, 2.0, rows.reward.shape)
    found = gae_targets(
        v=tensor(rows.v),
        **tensors(rows),
        discount=0.9,
        trace_lambda=0.7,
        ratio=tensor(ratio) if with_ratio else None,
        crosses_episodes=True,
    )
    for b in range(rows.reward.shape[1]):
        # The same trace without its reset rows, in which no episode ends.
        live = ~rows.is_reset[:-1, b]
        no_ends = torch.zeros((int(live.sum()), 1))
        endless = gae_targets(
            v=tensor(np.append(rows.v[:-1, b][live], rows.v[-1, b]))[:, None],
            reward=tensor(rows.reward[live, b])[:, None],
            terminated=no_ends,
            is_reset=no_ends,
            discount=0.9,
            trace_lambda=0.7,
            ratio=tensor(ratio[live, b])[:, None] if with_ratio else None,
        )
        for name in ("advantages", "returns"):
            got, expected = (getattr(one, name).numpy() for one in (found, endless))
            np.testing.assert_allclose(got[live, b], expected[:, 0], atol=1e-12)
        assert (found.advantages.numpy()[~live, b] == 0).all()


def test_two_streams_of_a_worked_row_differ_at_the_end():
    # Row 1 terminates; its endless return bootstraps from row 3, after the reset.
    given = {
        "v": torch.tensor(V)[:, None],
        "reward": torch.tensor(REWARD)[:, None],
        "terminated": torch.tensor(TERMINATED)[:, None],
        "is_reset": torch.tensor(IS_RESET)[:, None],
        "discount": 0.5,
        "trace_lambda": 0.0,
    }
    assert gae_targets(**given).returns[1].item() == 3.0
    endless = gae_targets(**given, crosses_episodes=True)
    assert endless.returns[1].item() == 3.0 + 8.0 / 2
    assert endless.returns[3].item() == 1.0 + 32.0 / 2
