"""TD errors of new items from the Q values that acting knew, in numpy.

They are the learner's (``tengen.losses.n_step_targets``, ``td_errors``), with the
network that acted both as online and as target network: the two must match.

Source: Horgan et al. 2018, "Distributed Prioritized Experience Replay"
(arXiv:1803.00933), section 3; Espeholt et al. 2020, "SEED RL" (arXiv:1910.06591), whose
inference gives them without another pass.

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
        steps: ``[B, T]`` each, with the two columns of acting.
        num_steps: Rewards n that a target adds up, at least 1.
        discount: In [0, 1].
        rescaling_epsilon: Of ``signed_hyperbolic``, where Q values are on its scale;
            None where they are as they are.
    """
    reached: NDArray[Any] = steps[Q_BEST][:, 1:].astype(np.float64)
    if rescaling_epsilon is not None:
        reached = _signed_parabolic(reached, rescaling_epsilon)
    is_live = steps["is_reset"][:, :-1] == 0
    goes_on = discount * (steps["terminated"][:, :-1] == 0)
    # Where the next step has no return of its own, what was reached has a value.
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
