"""R2D3: R2D2 that also learns from demonstrations.

Source: Gulcehre et al. 2020, "Making Efficient Use of Demonstrations to Solve Hard
Exploration Problems" (arXiv:1909.01387), section 3. Demonstrations are in a prioritized
table of their own, and each element of a batch is a demonstration with the probability
``store.demo_share``. The loss is R2D2's, without an imitation loss.

Differs from the paper: as R2D2 (``tengen.agents.r2d2``); the importance weights of
demonstrations are those of their own table; the demonstrations form one continuous
sequence, in which the recurrent state is zero at an item's first step; and the share of
demonstrations is larger, because small tasks are learned in few batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tengen.agents.r2d2 import R2d2


@dataclass(frozen=True, kw_only=True)
class R2d3(R2d2):
    """Settings of R2D3; the module docstring gives the source and the differences."""

    kind: Literal["r2d3"] = "r2d3"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    takes_demos: ClassVar[bool] = True
    is_single: ClassVar[bool] = True
