"""What an actor is connected to: who answers it, and where its steps go."""

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
    """A turn that was driven."""

    stats: DriveStats
    """Where its time went."""
    model: int
    """The number of the model that answered last; where the learner's own network did,
    which has none, that of the newest published model."""
    waited_s: float = 0.0
    """Seconds in which the answers of another process were waited for."""


class Group(NamedTuple):
    """Copies of an actor's environment that are stepped together."""

    num_envs: int
    """How many they are."""
    write: Callable[[Arrays, Arrays], int]
    """Writes a block; see ``EnvironmentPort``."""
    arrays: RowArrays | None = None
    """Their rows; see ``EnvironmentPort``."""


class ActorLink(Protocol):
    """The two ends of an actor. Used by one thread.

    Attributes:
        layout: Which steps an item has.
        groups: The actor's copies in order, at least one group.
    """

    layout: ItemLayout
    groups: Sequence[Group]

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven | None:
        """Drives a turn; None where there is no model.

        Args:
            ports: One a group, in order.

        Raises:
            Interrupted: The role is to stop, and what it waited for did not come.
            LinkLost: Connect again, with episodes that begin anew.
        """

    def close(self) -> None:
        """Ends both. A second call does nothing."""
