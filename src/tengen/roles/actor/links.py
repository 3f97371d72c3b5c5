"""What an actor is connected to: who answers it, and where its steps go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tengen.actors import EnvironmentPort
from tengen.envs import Arrays
from tengen.experience import ItemLayout
from tengen.inference import DriveStats, RowArrays

__all__ = ["ActorLink", "Driven", "LinkLost"]


class LinkLost(Exception):
    """The learner's table has gone, with the sessions of its writers."""


@dataclass(frozen=True)
class Driven:
    """A turn that was driven."""

    stats: DriveStats
    """Where its time went."""
    model: int
    """The number of the model that answered last."""
    waited_s: float = 0.0
    """Seconds in which the answers of another process were waited for."""


class ActorLink(Protocol):
    """The two ends of an actor. Used by one thread."""

    layout: ItemLayout
    arrays: RowArrays | None

    def write(self, columns: Arrays, state: Arrays) -> int:
        """Writes a block; see ``EnvironmentPort``."""

    def drive(self, port: EnvironmentPort) -> Driven | None:
        """Drives a turn, whose items then outlive a kill; None where there is no model.

        Raises:
            Interrupted: The role is to stop, and what it waited for did not come.
            LinkLost: Connect again, with episodes that begin anew.
        """

    def close(self) -> None:
        """Ends both. A second call does nothing."""
