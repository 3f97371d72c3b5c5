"""An actor's connections to inference and to the table that stores its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.envs import Arrays, EnvSpec
from tengen.experience import ItemLayout, StepDraws
from tengen.inference import DriveStats, RowArrays


class LinkLost(Exception):
    """The learner's table has been lost, together with its writers' sessions."""


@dataclass(frozen=True)
class Driven:
    """The result of driving an actor for one turn."""

    stats: DriveStats
    """Number of evaluations in the turn, and the time spent in each of its phases."""
    model: int
    """Number of the model that evaluated the last batch. The learner's own network has
    no number; for that network, this is the number of the newest published model."""
    waited_s: float = 0.0
    """Seconds spent waiting for the outputs of an inference server."""


class Group(NamedTuple):
    """A group of vectorized copies of an actor's environment."""

    num_copies: int
    """The number of copies in the group."""
    write: Callable[[Arrays, Arrays], int]
    """Writes a block of steps; see argument ``write`` of ``EnvironmentPort``."""
    arrays: RowArrays | None = None
    """The inference rows; see argument ``arrays`` of ``EnvironmentPort``."""


def open_writer(
    steps: StepDraws, name: str, agent: EnvironmentAgent, spec: EnvSpec, num_copies: int
) -> Callable[[Arrays, Arrays], int]:
    """Returns a function that writes a block; see ``write`` of ``EnvironmentPort``.

    Args:
        steps: The table, or its client.
        name: The writer's name, unique among the table's writers.
        agent: The run's agent.
        spec: The description of the environment.
        num_copies: Number of copies.

    Raises:
        UsageError: Another writer has the name, or there are too many slots.
    """
    num_each = agent.num_slots(spec)
    first = agent.first_priorities(spec.actions)
    writer = steps.writer(name, num_copies * num_each, first, num_together=num_each)
    return writer.append


class ActorLink(Protocol):
    """An actor's connections to inference and to experience. Not thread-safe.

    Attributes:
        layout: The number of steps in an item, their overlap, and the stored state.
        groups: The groups of the actor's copies, in order; at least one group.
    """

    layout: ItemLayout
    groups: Sequence[Group]

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven:
        """Steps the environments of all ports for one turn. The run must have a model.

        Args:
            ports: One port per group, in order.

        Raises:
            Interrupted: The role was asked to stop while it was waiting.
            LinkLost: The table was lost; reconnect, and begin new episodes.
        """

    def close(self) -> None:
        """Closes the connections to inference and experience. Idempotent."""
