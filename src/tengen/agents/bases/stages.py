"""Stages of a self-play run: when its network grows, and to which size.

The run's config defines the stages. The start of a stage depends on the total budget of
all calls of ``tengen train`` on the run so far, because budgets of future calls are
unknown. If this total is too small for a stage, a later call begins the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tengen.bounds import bounded, check_fields
from tengen.errors import UsageError
from tengen.nets import NetConfig


class History(NamedTuple):
    """The budget that a run has used so far, and its expected total."""

    core_minutes: float = 0.0
    """CPU-minutes used by all calls of ``tengen train`` so far, without start-up."""
    in_all: float | None = None
    """``core_minutes`` plus the CPU-minutes expected for the rest of this call, given
    its CPU use so far; None if this call has no budget in minutes."""
    num_games: int = 0
    """Number of the run's games that the learner has read so far."""


@dataclass(frozen=True, kw_only=True)
class NetStage:
    """A larger network, into which the run's network grows at a given point of the run.

    The stage begins at the first learner turn after its point, when all earlier stages
    have begun. The checkpoint records that the stage has begun, so that a resumed run
    never shrinks its network or begins a stage twice.

    The point is a number of games, or of core-minutes: the CPU time of the run's
    processes in all calls of ``tengen train``. A call with a budget in games ignores
    stages with a point in core-minutes, so that its result is the same on any machine.
    A standalone role ignores these stages too, because it has no budget.
    """

    net: NetConfig
    """The network of the stage, at least as large as the previous stage's network. Only
    its trunk's size is used; the initial network defines the other settings."""
    share: float = bounded(0.5, 0, 1, "0.4 is early enough", above=True, below=True)
    """Fraction of the run's core-minutes after which the stage begins, above 0 and
    below 1. The run's core-minutes include earlier calls and this call's budget."""
    latest: float = bounded(0.0, 0, hint="use 0 to let share decide")
    """Core-minutes after which the stage begins even if ``share`` is not reached; 0:
    only ``share`` decides."""
    least: float = bounded(0.0, 0, hint="use 0 for any budget")
    """Minimum core-minutes of the run, including this call's budget, for the stage to
    begin; at least 0. In a shorter run the smaller network ends up stronger."""
    games: int = bounded(0, 0, hint="use 0 to let core-minutes decide")
    """Number of games after which the stage begins. ``share``, ``latest`` and ``least``
    are then ignored. 0: these three settings decide."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def is_due(self, history: History) -> bool:
        """Returns whether a run that has spent ``history`` has reached the stage."""
        if self.games:
            return history.num_games >= self.games
        if history.in_all is None or history.in_all < self.least:
            return False
        point = self.share * history.in_all
        if self.latest:
            point = min(point, self.latest)
        return history.core_minutes >= point


def num_begun(stages: Sequence[NetStage], history: History) -> int:
    """Returns the number of leading ``stages`` that a run has reached."""
    due = [stage.is_due(history) for stage in stages]
    return [*due, False].index(False)


def growing_stages(
    stages: Sequence[NetStage], first: NetConfig
) -> tuple[NetStage, ...]:
    """Returns the stages that enlarge a run's network, which is initially ``first``.

    Skips stages that do not enlarge the network, or into which it cannot grow.
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
