"""What a run asks of an agent, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tengen.agents.stages import History
from tengen.evaluation import (
    AcceptAllGate,
    GateConfig,
    LadderConfig,
    TargetConfig,
)
from tengen.nets import NetConfig
from tengen.open_config import OpenConfig
from tengen.search import PlayConfig
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.experience import Experience, ExperiencePart
    from tengen.learners import Update
    from tengen.nets import Net
    from tengen.roles.config import RunConfig
    from tengen.run import RunDirectory
    from tengen.transport import NetDoor

__all__ = ["Agent", "Schedule", "StoreWay"]


class StoreWay(Protocol):
    """How a store of another process is reached."""

    @property
    def address(self) -> str:
        """A folder of this host, or ``tcp://HOST:PORT``."""

    @property
    def token(self) -> str | None:
        """What the store wants to be told; None where it asks for nothing."""

    @property
    def fingerprint(self) -> str | None:
        """Of its certificate; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which roles a run has, for whoever starts them."""

    acting: str
    """The role that makes experience; empty where another run does."""
    learning: tuple[str, ...]
    """The roles between two turns of acting, in order."""
    rating: str = ""
    """The role that rates models now and then; empty for none."""
    closing: str = ""
    """The role of which all that act take turns once training has ended, until it has
    nothing left to do; empty for none."""
    serving: str = ""
    """The role that answers those that act where all roles work at once; empty where
    each that acts has the network itself."""
    model_s: float = 0.0
    """How long a turn of the learner goes on where others act meanwhile, in seconds, as
    each turn ends with a model."""
    is_shared: bool = False
    """Whether acting and learning need one process where they take turns, as the
    experience is there; and learning in any case."""
    counts_frames: bool = False
    """Whether a budget is in frames, steps of environments, and not in games."""
    games_per_turn: int = 0
    """Games of a turn of acting; 0 where none are played."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The roles without which the run does not go on, each a process of its own.

        Empty where the roles must share a process.
        """
        if self.is_shared and not self.serving:
            return ()
        roles = (self.acting, self.serving, *self.learning)
        return tuple(role for role in roles if role)


class Agent(OpenConfig, package="tengen.agents"):
    """An algorithm whole: its settings, and what follows from them.

    An agent is a frozen dataclass in a file of its own, ``agents/KIND.py``, which
    imports torch only inside methods. A run has one, ``RunConfig.agent``.

    Attributes:
        gate: Which candidates become models.
        also_called: Names that papers and others give it, in small letters, for who
            types one.
        keeps_models: Whether experience names the models that made it, so that they
            stay.
        rating: How models are rated on the way; None where nothing plays them.
        target: Whom all models meet in order, once training has ended, where there is
            somebody.
        play: How models play, where they do.
        book: The file of a book of openings, or its digest where the run has it; empty
            for none.
        iterations: Models after the first at which training ends; 0: the budget alone
            ends it.
        learn_from: The run whose games are learned from; empty for the run's own
            experience.
        sets_itself_up: Whether it chooses network, store and learner for a task, so
            that it needs no recipe.
        fixed: The agent's settings that stay as the run began, since its network or its
            experience was made for them.
    """

    gate: GateConfig = AcceptAllGate()
    keeps_models: ClassVar[bool] = False
    rating: LadderConfig | None = None
    target: TargetConfig = TargetConfig()
    play: PlayConfig = PlayConfig()
    book: str = ""
    learn_from: str = ""
    iterations: int = 0
    fixed: ClassVar[tuple[str, ...]] = ()
    also_called: ClassVar[tuple[str, ...]] = ()
    sets_itself_up: ClassVar[bool] = False

    @classmethod
    def refusal(cls, task: str) -> str:
        """Returns why this agent cannot train a task; empty where it can.

        Raises:
            UsageError: The task is unknown, or what it needs is not installed.
        """
        raise NotImplementedError(f"{cls.__name__} must say what it trains")

    def check(self, config: RunConfig) -> None:
        """Checks the parts of a run against each other.

        Raises:
            UsageError: A part is not for this agent.
        """

    def check_task(self, config: RunConfig) -> None:
        """Checks what depends on the task, which is made for it.

        Raises:
            UsageError: A setting does not fit the task.
        """

    def signature(self, task: str) -> Signature:
        """Returns what the agent asks of a network for a task."""
        raise NotImplementedError(f"{type(self).__name__} must ask for a network")

    def schedule(self, config: RunConfig) -> Schedule:
        """Returns the roles of a run."""
        raise NotImplementedError(f"{type(self).__name__} must have roles")

    def open_experience(
        self,
        config: RunConfig,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> Experience:
        """Opens what the learner draws from.

        Args:
            config: The run's.
            run: The run.
            state: What ``Experience.state`` returned, to go on from; None to start.
            directory: Of experience in memory, where those that act in other processes
                of the host join in; None: nobody does.
            net: Where those of other hosts join in too; None: nobody does.

        Raises:
            UsageError: It belongs to another process.
            RunError: What is on the disk is missing or damaged.
        """
        raise NotImplementedError(f"{type(self).__name__} must have experience")

    def open_part(
        self, config: RunConfig, run: RunDirectory, way: Callable[[], StoreWay]
    ) -> ExperiencePart:
        """Returns what a learner draws from that follows another one.

        Args:
            config: The run's.
            run: The run.
            way: Returns how the experience of the leading learner's process is reached,
                where it is in memory; raises RunError where it is not there.
        """
        raise NotImplementedError(f"{type(self).__name__} must have parts of batches")

    def check_room(
        self, config: RunConfig, run: RunDirectory, directory: Path | None = None
    ) -> str:
        """Makes sure that what the learner draws from has room here; writes nothing.

        Args:
            config: The run's.
            run: The run, which need not be there yet.
            directory: As for ``open_experience``.

        Returns:
            How large it is and where it will be, a line for people; empty where it
            takes no room to speak of.

        Raises:
            UsageError: It does not fit the memory or the disk.
        """
        return ""

    def make_update(self, config: RunConfig, net: Net) -> Update:
        """Returns how the agent learns.

        Args:
            config: The run's.
            net: The network in training.
        """
        raise NotImplementedError(f"{type(self).__name__} must learn")

    def outputs(self) -> Sequence[str] | None:
        """Returns the outputs of a network that acting needs; None for all."""
        return None

    def sample_inputs(
        self, task: str, num_rows: int, seed: int
    ) -> dict[str, NDArray[np.generic]]:
        """Returns different inputs on which an export is compared with its source.

        Empty where the agent's networks are evaluated by their source alone.
        """
        return {}

    def evaluations_per_model(self, task: str) -> float:
        """Returns about how many positions one model evaluates; 0: nobody knows.

        What is done once for each model, such as quantising it, is weighed by it.
        """
        return 0.0

    def point_utility(self, num_points: int) -> float:
        """Returns what a point of the final score is worth to the search, or 0."""
        return 0.0

    def nets(self, net: NetConfig) -> tuple[NetConfig, ...]:
        """Returns the network that a run begins with, and that of each later stage."""
        return (net,)

    def num_stages_begun(self, history: History) -> int:
        """Returns how many later stages have begun in a run with such a history."""
        return 0

    def without_stages(self) -> Self:
        """Returns the agent for a run whose network stays as it begins."""
        return self

    def growing_from(self, net: NetConfig) -> Self:
        """Returns the agent with those stages alone that grow from a network."""
        return self

    def growing_as(self, recipe: Agent, net: NetConfig) -> Self:
        """Returns the agent with a recipe's stages, for a run of an earlier version.

        Args:
            recipe: The agent as its recipe makes it today.
            net: What the run began with; stages that it has stay, and where they are
                not the recipe's first ones, all stays.
        """
        return self
