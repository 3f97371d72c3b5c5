"""Q-learning against worked arrays and slow readable references."""

import numpy as np
import pytest
import torch

from tengen.losses import (
    double_q_values,
    dueling,
    n_step_targets,
    signed_hyperbolic,
    signed_parabolic,
    td_errors,
    td_loss,
)
from tests.unit.losses.episodes import Rows, random_rows, tensor, tensors


def slow_targets(rows, num_steps, discount):
    """Sums the rewards from every row, up to the end of its episode."""
    targets = np.zeros_like(rows.reward)
    for b in range(rows.reward.shape[1]):
        for piece in rows.pieces(b):
            for t in range(piece.start, piece.stop):
                end = min(t + num_steps, piece.stop)
                for k in range(t, end):
                    targets[t, b] += discount ** (k - t) * rows.reward[k, b]
                if not (piece.terminated and end == piece.stop):
                    targets[t, b] += discount ** (end - t) * rows.v[end, b]
    return targets


@pytest.mark.parametrize("num_steps", [1, 2, 3, 5, 60])
@pytest.mark.parametrize("seed", range(3))
def test_targets_equal_the_sum_of_every_row(seed, num_steps):
    rows = random_rows(seed)
    targets = n_step_targets(
        **tensors(rows), bootstrap=tensor(rows.v), num_steps=num_steps, discount=0.9
    )
    expected = slow_targets(rows, num_steps, 0.9)
    np.testing.assert_allclose(targets.numpy(), expected, atol=1e-12)


def targets_of(reward, bootstrap, *, terminated=None, is_reset=None, num_steps=2):
    """Returns one column of targets at discount 1/2; flags are given by row index."""
    ended = torch.zeros(len(reward), 1, dtype=torch.bool)
    reset = torch.zeros(len(reward) + 1, 1, dtype=torch.bool)
    if terminated is not None:
        ended[terminated] = True
    if is_reset is not None:
        reset[is_reset] = True
    targets = n_step_targets(
        reward=torch.tensor(reward)[:, None],
        terminated=ended,
        is_reset=reset,
        bootstrap=torch.tensor(bootstrap)[:, None],
        num_steps=num_steps,
        discount=0.5,
    )
    assert targets.dtype == torch.float32
    return targets.flatten().tolist()


def test_the_bootstrap_is_the_value_n_rows_on_and_not_the_one_before():
    # 1 + 2/2 + 64/4;  2 + 4/2 + 128/4;  the last row has one reward left: 4 + 128/2
    assert targets_of([1.0, 2.0, 4.0], [16.0, 32.0, 64.0, 128.0]) == [18.0, 36.0, 68.0]
    # One step: the value of the next state, 1 + 32/2, 2 + 64/2, 4 + 128/2.
    one_step = targets_of([1.0, 2.0, 4.0], [16.0, 32.0, 64.0, 128.0], num_steps=1)
    assert one_step == [17.0, 34.0, 68.0]


def test_a_terminated_episode_is_not_bootstrapped():
    # Row 1 terminates: 1 + 2/2 and 2. Row 3: 8 + 256/2.
    reward, bootstrap = [1.0, 2.0, 0.0, 8.0], [16.0, 32.0, 64.0, 128.0, 256.0]
    targets = targets_of(reward, bootstrap, terminated=1, is_reset=2)
    assert targets == [2.0, 2.0, 0.0, 136.0]


def test_a_truncated_episode_is_not_taken_for_a_terminated_one():
    # Row 1 is truncated at row 2, worth 64: 1 + 2/2 + 64/4 and 2 + 64/2.
    reward, bootstrap = [1.0, 2.0, 0.0, 8.0], [16.0, 32.0, 64.0, 128.0, 256.0]
    targets = targets_of(reward, bootstrap, is_reset=2)
    assert targets == [18.0, 34.0, 0.0, 136.0]


def test_rewards_are_added_on_their_own_scale():
    rows = random_rows(1)
    epsilon = 1e-3
    unscaled = signed_parabolic(tensor(rows.v), epsilon).numpy()
    plain = Rows(unscaled, rows.reward, rows.terminated, rows.is_reset)
    targets = n_step_targets(
        **tensors(rows),
        bootstrap=tensor(rows.v),
        num_steps=3,
        discount=0.9,
        rescaling_epsilon=epsilon,
    )
    expected = signed_hyperbolic(tensor(slow_targets(plain, 3, 0.9)), epsilon)
    torch.testing.assert_close(targets, expected)
    # h(3) = sqrt(4) - 1 + 0.003 = 1.003 is worth 3, and 5 + 3 is h(8) = 2.008.
    worked = n_step_targets(
        reward=torch.tensor([[5.0]]),
        terminated=torch.tensor([[False]]),
        is_reset=torch.tensor([[False]]),
        bootstrap=torch.tensor([[0.0], [1.003]]),
        num_steps=3,
        discount=1.0,
        rescaling_epsilon=epsilon,
    )
    assert worked.item() == pytest.approx(2.008, rel=1e-6)


def test_the_online_net_chooses_and_the_target_net_values():
    online = torch.tensor([[[1.0, 3.0, 2.0]], [[5.0, 0.0, 1.0]]])
    target = torch.tensor([[[9.0, 4.0, 8.0]], [[-1.0, 7.0, 6.0]]], requires_grad=True)
    values = double_q_values(online, target)
    assert values.tolist() == [[4.0], [-1.0]]
    assert not values.requires_grad


def test_duelling_heads_add_up_to_the_value():
    # advantages 1, 2, 6 less their mean 3, plus 10
    q = dueling(torch.tensor([10.0]), torch.tensor([[1.0, 2.0, 6.0]]))
    assert q.tolist() == [[8.0, 9.0, 13.0]]
    assert q.mean().item() == 10.0


def test_errors_and_losses_of_worked_rows():
    q = torch.tensor([[[1.0, 2.0], [5.0, 9.0]]], requires_grad=True)
    targets = torch.tensor([[5.0, 4.0]], requires_grad=True)
    errors = td_errors(q, torch.tensor([[1, 0]]), targets)
    assert errors.tolist() == [[3.0, -1.0]]
    # 9/2 and 1/2; linear beyond 2: 2 * (3 - 1)
    assert td_loss(errors).tolist() == [[4.5, 0.5]]
    huber = td_loss(errors, huber_delta=2.0)
    assert huber.tolist() == [[4.0, 0.5]]
    # The gradient moves q towards the target, by at most 2; targets have none.
    huber.sum().backward()
    assert q.grad.tolist() == [[[0.0, -2.0], [1.0, 0.0]]]
    assert targets.grad is None
