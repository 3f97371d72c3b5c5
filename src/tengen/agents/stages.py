"""Stages of a self-play run: when its network grows, and into which network.

The run's config defines the stages. A stage depends on the total budget of all calls of
``tengen train`` on the run so far, because budgets of future calls are unknown. If that
budget is too small for a stage, a later call begins the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tengen.bounds import bounded, check_fields
from tengen.errors import UsageError
from tengen.nets import NetConfig

__all__ = ["History", "NetStage", "growing_stages", "num_begun"]


class History(NamedTuple):
    """The budget that a run has used so far, and its total."""

    core_minutes: float = 0.0
    """CPU-minutes of all calls of ``tengen train`` so far, without their start-up."""
    in_all: float | None = None
    """``core_minutes`` plus the CPU-minutes expected in the rest of this call, at its
    CPU use so far; None if this call has no budget in minutes."""
    num_games: int = 0
    """Number of games that the learner has read."""


@dataclass(frozen=True, kw_only=True)
class NetStage:
    """A larger network, into which the run's network grows at some point of the run.

    The stage begins at the first learner turn after its point, when all earlier stages
    have begun. The checkpoint records that the stage has begun, so that a network never
    shrinks and never grows twice for one stage.

    The point is a number of games, or of core-minutes: CPU time of the run's processes
    in all calls of ``tengen train``. A call with a budget in games ignores stages with
    a point in core-minutes, so that its result is the same on any machine. A standalone
    role has no budget, so it ignores those stages too.
    """

    net: NetConfig
    """The network, no smaller than that of the previous stage. Only the size of its
    trunk counts; all other settings are those of the run's initial network."""
    share: float = bounded(
        0.5, 0, 1, "0.4 begins it early enough", above=True, below=True
    )
    """Share of the run's core-minutes after which the stage begins, above 0 and below
    1. The run's core-minutes include earlier calls and this call's budget."""
    latest: float = bounded(0.0, 0, hint="0 leaves it to the share")
    """Core-minutes after which the stage begins even before ``share`` is reached; 0:
    only ``share`` decides."""
    least: float = bounded(0.0, 0, hint="0 suits any budget")
    """Minimum core-minutes of the run, including this call's budget, for the stage to
    begin; at least 0. In a shorter run the smaller network ends up stronger."""
    games: int = bounded(0, 0, hint="0 goes by core-minutes")
    """Games after which the stage begins; ``share``, ``latest`` and ``least`` are then
    ignored. 0: these three decide."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def is_due(self, history: History) -> bool:
        """Returns whether a run with ``history`` has reached the stage's point."""
        if self.games:
            return history.num_games >= self.games
        if history.in_all is None or history.in_all < self.least:
            return False
        point = self.share * history.in_all
        if self.latest:
            point = min(point, self.latest)
        return history.core_minutes >= point


def num_begun(stages: Sequence[NetStage], history: History) -> int:
    """Returns the number of stages before the first stage that is not due."""
    due = [stage.is_due(history) for stage in stages]
    return [*due, False].index(False)


def growing_stages(
    stages: Sequence[NetStage], first: NetConfig
) -> tuple[NetStage, ...]:
    """Returns the stages that enlarge the run's network, ``first`` at its start.

    Stages that do not enlarge the network, or into which it cannot grow, are skipped.
    """
    kept, last = [], first
    for stage in stages:
        try:
            grown = first.grown(stage.net)
            last.check_grows(grown)
        except UsageError:
            continue
        if grown != last:
            kept.append(stage)
            last = grown
    return tuple(kept)
