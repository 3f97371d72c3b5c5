"""Stages of a self-play run: when its network grows, and into which network.

The rule is in the run's config and counts the budgets of all calls of ``tengen train``
on the run so far. Budgets of future calls are unknown: where the first calls are too
short for a stage, the stage begins in the first call that makes the sum long enough.
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
    """``core_minutes`` plus what the minutes that are left of this call will bring, at
    the cores that it has kept busy; None where this call has no budget in minutes."""
    num_games: int = 0
    """Games that the learner has taken in."""


@dataclass(frozen=True, kw_only=True)
class NetStage:
    """A larger network from some point of a run on, grown from the smaller one.

    The stage begins at the first learner turn after its point, once all stages before
    it have begun. The checkpoint records that the stage has begun: a network never
    shrinks, and never grows twice by one stage.

    The point is a number of games, or of core-minutes: CPU time of the run's processes
    over all calls of ``tengen train``. A call with a budget in games begins no
    stage whose point is in core-minutes, so that its result is the same on any machine.
    A role that runs by itself has no budget, so only stages in games begin there.
    """

    net: NetConfig
    """The network, no smaller than the one before it. Only the size of its trunk
    counts; all other settings are those of the run's first network."""
    share: float = bounded(
        0.5, 0, 1, "0.4 begins it early enough", above=True, below=True
    )
    """Share of the run's core-minutes after which the stage begins, above 0 and below
    1. The run's core-minutes are those of earlier calls plus this call's budget."""
    latest: float = bounded(0.0, 0, hint="0 leaves it to the share")
    """Core-minutes after which the stage begins even where ``share`` is not reached; 0:
    ``share`` alone decides."""
    least: float = bounded(0.0, 0, hint="0 suits any budget")
    """Core-minutes that the run must have in total, this call's budget included, for
    the stage to begin at all; at least 0. In a shorter run the smaller network ends up
    stronger."""
    games: int = bounded(0, 0, hint="0 goes by core-minutes")
    """Games after which the stage begins; 0: ``share``, ``latest`` and ``least``
    decide. Otherwise these three are ignored."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def is_due(self, history: History) -> bool:
        """Returns whether a run with this history has reached the stage's point."""
        if self.games:
            return history.num_games >= self.games
        if history.in_all is None or history.in_all < self.least:
            return False
        point = self.share * history.in_all
        if self.latest:
            point = min(point, self.latest)
        return history.core_minutes >= point


def num_begun(stages: Sequence[NetStage], history: History) -> int:
    """Returns how many stages have begun: all up to the first that is not due."""
    due = [stage.is_due(history) for stage in stages]
    return [*due, False].index(False)


def growing_stages(
    stages: Sequence[NetStage], first: NetConfig
) -> tuple[NetStage, ...]:
    """Returns the stages that enlarge a network which begins as ``first``.

    Stages that would not enlarge it, or that it cannot grow into, are left out.
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
