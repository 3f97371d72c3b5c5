"""What an actor is connected to: its inference, and the table for its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tengen.actors import EnvironmentPort
from tengen.envs import Arrays
from tengen.experience import ItemLayout
from tengen.inference import DriveStats, RowArrays

__all__ = ["ActorLink", "Driven", "Group", "LinkLost"]


class LinkLost(Exception):
    """The learner's table has gone, with the sessions of its writers."""


@dataclass(frozen=True)
class Driven:
    """The result of driving an actor for one turn."""

    stats: DriveStats
    """How the turn's time was spent."""
    model: int
    """The number of the model that answered last. If the learner's own network
    answered, which has no number, the number of the newest published model."""
    waited_s: float = 0.0
    """Seconds spent waiting for answers of another process."""


class Group(NamedTuple):
    """Copies of an actor's environment that are stepped together."""

    num_envs: int
    """The number of copies."""
    write: Callable[[Arrays, Arrays], int]
    """Writes a block; see ``EnvironmentPort``."""
    arrays: RowArrays | None = None
    """The copies' rows; see ``EnvironmentPort``."""


class ActorLink(Protocol):
    """An actor's connections to inference and to experience. Used by one thread.

    Attributes:
        layout: Which steps an item has.
        groups: The actor's copies in order, at least one group.
    """

    layout: ItemLayout
    groups: Sequence[Group]

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven | None:
        """Drives one turn; returns None if there is no model.

        Args:
            ports: One port for each group, in order.

        Raises:
            Interrupted: The role is to stop while it waits for something.
            LinkLost: The table was lost; connect again, and begin new episodes.
        """

    def close(self) -> None:
        """Closes both connections. A second call does nothing."""
