"""Later episodes that are not finite change no target of an earlier episode."""

import dataclasses

import numpy as np
import pytest
import torch

from tengen.losses import gae_targets, n_step_targets, vtrace_targets
from tests.unit.losses.episodes import random_rows, tensor, tensors


def gae(rows, ratio=None):
    settings = {"discount": 0.9, "trace_lambda": 0.8, "ratio": ratio}
    return gae_targets(v=tensor(rows.v), **tensors(rows), **settings)


def n_step(rows):
    given = {"bootstrap": tensor(rows.v), "num_steps": 3, "discount": 0.9}
    return [n_step_targets(**tensors(rows), **given)]


def vtrace(rows):
    v = tensor(rows.v)
    return vtrace_targets(
        v_tm1=v[:-1],
        v_t=v[1:],
        r_t=tensor(rows.reward),
        discount_t=tensor(0.9 * ~rows.terminated),
        rho_tm1=tensor(0.7 * ~rows.is_reset[:-1]),
    )


def off_policy_gae(rows):
    return gae(rows, tensor(np.full_like(rows.reward, 0.7)))


@pytest.mark.parametrize("estimator", [gae, off_policy_gae, vtrace, n_step])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_no_target_has_a_value_from_beyond_its_episode(estimator, value):
    rows = random_rows(0)
    expected = estimator(rows)
    for b in range(rows.v.shape[1]):
        for piece in rows.pieces(b):
            v, reward = rows.v.copy(), rows.reward.copy()
            # A truncated episode bootstraps from its final observation.
            v[piece.stop + (not piece.terminated) :, b] = value
            reward[piece.stop + 1 :, b] = value
            found = estimator(dataclasses.replace(rows, v=v, reward=reward))
            for one, other in zip(found, expected, strict=True):
                assert torch.equal(one[: piece.stop, b], other[: piece.stop, b])
