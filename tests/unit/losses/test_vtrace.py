"""V-trace against the paper's sum, worked arrays and its properties."""

import numpy as np
import pytest
import torch

from tengen.losses import baseline_loss, vtrace_targets
from tests.unit.losses.episodes import random_rows, tensor, tensors


def paper_targets(v, r, discount, ratio, trace_lambda, clip_rho, clip_c):
    """Equation (1) of the paper literally: a sum of products for every start.

    Args:
        v: Values ``[T + 1]``; ``r``, ``discount`` and ``ratio`` are ``[T]``.
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


@pytest.mark.parametrize("trace_lambda", [1.0, 0.7])
@pytest.mark.parametrize("clips", [(1.0, 1.0), (1.5, 0.8), (9.0, 9.0)])
def test_targets_equal_the_sum_of_the_paper(trace_lambda, clips):
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


def test_targets_of_a_worked_trace():
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


@pytest.mark.parametrize("seed", range(3))
def test_every_episode_among_random_ones_has_the_targets_of_itself(seed):
    rows = random_rows(seed)
    given = tensors(rows)
    ratio = np.exp(np.random.default_rng(seed).normal(size=rows.reward.shape))
    is_live = given["is_reset"][:-1] == 0
    targets = vtrace_targets(
        v_tm1=tensor(rows.v[:-1]),
        v_t=tensor(rows.v[1:]),
        r_t=given["reward"],
        discount_t=0.9 * (given["terminated"] == 0).double(),
        rho_tm1=tensor(ratio) * is_live,
        trace_lambda=0.8,
    )
    vs, advantages = rows.v[:-1].copy(), np.zeros_like(rows.reward)
    for b in range(rows.reward.shape[1]):
        for piece in rows.pieces(b):
            inside = slice(piece.start, piece.stop)
            v = rows.v[piece.start : piece.stop + 1, b].copy()
            if piece.terminated:
                v[-1] = 0.0
            discount = np.full(piece.stop - piece.start, 0.9)
            r, rho = rows.reward[inside, b], ratio[inside, b]
            vs[inside, b] = paper_targets(v, r, discount, rho, 0.8, 1.0, 1.0)
            vs_t = np.append(vs[inside, b][1:], v[-1])
            advantages[inside, b] = np.minimum(1.0, rho) * (r + 0.9 * vs_t - v[:-1])
    np.testing.assert_allclose(targets.vs_tm1.numpy(), vs, atol=1e-12)
    np.testing.assert_allclose(targets.pg_advantages.numpy(), advantages, atol=1e-12)


def test_the_baseline_loss_of_a_worked_row():
    value = baseline_loss(torch.tensor([[1.0]]), torch.tensor([[4.0]]))
    assert value.item() == 4.5
