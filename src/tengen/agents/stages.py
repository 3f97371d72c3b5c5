"""When the network of a run of self-play grows, and into which.

The rule is in the run's config and counts what all calls of ``tengen train`` have given
the run. What later calls will give nobody knows: a run whose first calls are too short
for a stage begins it in the first call that makes their sum long enough.
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
    """What a run has been given."""

    core_minutes: float = 0.0
    """Minutes of all calls of ``tengen train`` so far, each times its cores."""
    in_all: float | None = None
    """These and what this call has still to come; None where it has no budget in
    minutes."""
    num_games: int = 0
    """Games that the learner has taken in."""


@dataclass(frozen=True, kw_only=True)
class NetStage:
    """A larger network from some point of a run on; it starts from the smaller one.

    It takes over at the first turn of learning after that point, and the stages before
    it have begun. The checkpoint keeps that it did: a network never shrinks, and never
    grows twice by one stage.

    The point is in core-minutes, wall minutes times cores, of all calls of ``tengen
    train`` on the run, or in games. A call by games begins no stage that is in
    core-minutes, for it is the same on any machine; and where a role runs by itself,
    which has no budget, only stages in games begin.
    """

    net: NetConfig
    """The network, no smaller than the one before it. It says the size of the trunk;
    the rest is as in the first network, whatever stands here."""
    share: float = bounded(
        0.5, 0, 1, "0.4 begins it early enough", above=True, below=True
    )
    """Of the run's core-minutes, those of earlier calls and those that this call asks
    for: the stage begins once so many are spent."""
    latest: float = bounded(0.0, 0, hint="0 leaves it to the share")
    """Core-minutes after which it begins whatever its share; 0: the share says it."""
    least: float = bounded(0.0, 0, hint="0 suits any budget")
    """Core-minutes that the run must have in all, this call's with them: with fewer the
    smaller network is stronger at the end."""
    games: int = bounded(0, 0, hint="0 goes by core-minutes")
    """Games after which it begins, in place of the three fields above; 0: they say
    it."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def is_due(self, history: History) -> bool:
        """Returns whether the stage has begun in a run with such a history."""
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
    """Returns the stages that make a network larger that begins as ``first``.

    Those that it is as large as already, or cannot grow into, are left out.
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
