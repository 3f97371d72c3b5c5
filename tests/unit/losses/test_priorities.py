"""Priorities of sequences against worked arrays."""

import torch

from tengen.losses import sequence_priorities


def test_priorities_of_worked_sequences():
    # 0.9 * 4 + 0.1 * (1 + 4 + 1) / 3 = 3.8;  0.9 * 2 + 0.1 * (2 + 0 + 1) / 3 = 1.9
    errors = torch.tensor([[1.0, 2.0], [-4.0, 0.0], [1.0, -1.0]])
    is_learned = torch.ones(3, 2, dtype=torch.bool)
    priorities = sequence_priorities(errors, is_learned, 0.9)
    torch.testing.assert_close(priorities, torch.tensor([3.8, 1.9]))
    assert sequence_priorities(errors, is_learned, 1.0).tolist() == [4.0, 2.0]
    assert sequence_priorities(errors, is_learned, 0.0).tolist() == [2.0, 1.0]


def test_rows_of_burn_in_and_resets_do_not_count():
    # Column 0: burn-in 100 and 50, then 1, 3: 0.5 * 3 + 0.5 * 2. Column 1: the error of
    # a reset row is ignored; 2 and 4 remain: 0.5 * 4 + 0.5 * 3.
    errors = torch.tensor([[100.0, 2.0], [-50.0, torch.inf], [1.0, 4.0], [-3.0, 9.0]])
    is_learned = torch.tensor([[0, 1], [0, 0], [1, 1], [1, 0]], dtype=torch.bool)
    priorities = sequence_priorities(errors, is_learned, 0.5)
    assert priorities.tolist() == [2.5, 3.5]


def test_a_sequence_with_nothing_to_learn_has_priority_zero():
    errors = torch.full((2, 1), 7.0, requires_grad=True)
    priorities = sequence_priorities(errors, torch.zeros(2, 1, dtype=torch.bool), 0.9)
    assert priorities.tolist() == [0.0]
    assert not priorities.requires_grad
