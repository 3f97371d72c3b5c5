"""TD errors of new items from the Q values that the actor acted by, in numpy.

The formulas are the learner's (``tengen.losses.n_step_targets``, ``td_errors``), and
must match them; the network that acted is both online and target network.

Source: Horgan et al. 2018, "Distributed Prioritized Experience Replay"
(arXiv:1803.00933), section 3; Espeholt et al. 2020, "SEED RL" (arXiv:1910.06591), where
inference gives the Q values without another pass.

Legend: B items of T steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs import Arrays

__all__ = ["Q_BEST", "Q_TAKEN", "acting_errors"]

Q_TAKEN = "q_taken"
"""Column of a step: the Q value of the action that was taken."""
Q_BEST = "q_best"
"""Column of a step: the greatest Q value."""


def acting_errors(
    steps: Arrays,
    *,
    num_steps: int,
    discount: float,
    rescaling_epsilon: float | None = None,
) -> NDArray[np.float64]:
    """Returns ``[B, T - 1]``, targets minus Q values; 0 where a step resets.

    Args:
        steps: ``[B, T]`` each, with the columns ``q_taken`` and ``q_best``.
        num_steps: Rewards n that a target adds up, at least 1.
        discount: Discount of one step, in [0, 1].
        rescaling_epsilon: Epsilon of ``signed_hyperbolic``, where Q values are on the
            rescaled scale; None where they are not rescaled.
    """
    reached: NDArray[Any] = steps[Q_BEST][:, 1:].astype(np.float64)
    if rescaling_epsilon is not None:
        reached = _signed_parabolic(reached, rescaling_epsilon)
    is_live = steps["is_reset"][:, :-1] == 0
    goes_on = discount * (steps["terminated"][:, :-1] == 0)
    # Where the next step is no transition, the target bootstraps from what was reached.
    is_cut = np.ones_like(is_live)
    is_cut[:, :-1] = ~is_live[:, 1:]
    follows = reached
    for _ in range(num_steps):
        returns = steps["reward"][:, :-1] + goes_on * follows
        follows = np.where(is_cut, reached, np.roll(returns, -1, axis=1))
    if rescaling_epsilon is not None:
        returns = _signed_hyperbolic(returns, rescaling_epsilon)
    return np.where(is_live, returns - steps[Q_TAKEN][:, :-1], 0.0)


def _signed_hyperbolic(x: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    rescaled: NDArray[np.float64] = (
        np.sign(x) * (np.sqrt(np.abs(x) + 1.0) - 1.0) + epsilon * x
    )
    return rescaled


def _signed_parabolic(y: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    root = np.sqrt(1.0 + 4.0 * epsilon * (np.abs(y) + 1.0 + epsilon))
    back: NDArray[np.float64] = np.sign(y) * (
        np.square((root - 1.0) / (2.0 * epsilon)) - 1.0
    )
    return back
