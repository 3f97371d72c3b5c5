"""The interface that a run uses of any agent."""

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
    """How to reach the store of another process."""

    @property
    def address(self) -> str:
        """A folder of this host, or ``tcp://HOST:PORT``."""

    @property
    def token(self) -> str | None:
        """The secret that the store asks clients for; None where it asks for none."""

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the store's certificate; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which roles a run has, for the launcher that starts them."""

    acting: str
    """The role that makes experience; empty where another run makes it."""
    learning: tuple[str, ...]
    """The roles that work between two turns of acting, in order."""
    rating: str = ""
    """The role that rates models from time to time; empty for none."""
    serving: str = ""
    """The role that answers the acting processes where all roles work at once; empty
    where each acting process has the network itself."""
    model_s: float = 0.0
    """Seconds of a learner's turn where others act meanwhile. Each turn ends with a
    model, so this is also the time between models."""
    is_shared: bool = False
    """Whether the experience is in the memory of the learning process, so that the
    learning roles always share one process, and the acting role too where the roles
    take turns."""
    counts_frames: bool = False
    """Whether a budget counts frames, steps of environments, instead of games."""
    games_per_turn: int = 0
    """Games in a turn of acting; 0 where no games are played."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The roles that the run needs to go on, each a process of its own.

        Empty where the roles must share a process.
        """
        if self.is_shared and not self.serving:
            return ()
        roles = (self.acting, self.serving, *self.learning)
        return tuple(role for role in roles if role)


class Agent(OpenConfig, package="tengen.agents"):
    """A whole algorithm: its settings, and all that follows from them.

    An agent is a frozen dataclass in a file of its own, ``agents/KIND.py``, which
    imports torch only inside methods. A run has one, ``RunConfig.agent``.

    Attributes:
        gate: Which candidates become models.
        also_called: Other names of the algorithm, in lower case, that ``--agent``
            answers with a hint.
        keeps_models: Whether experience names the models that made it, so that these
            models are never deleted.
        rating: How models are rated during training; None where they are not.
        target: The fixed player that all models meet in order once training has ended;
            without ``opponent`` there is none.
        play: How models play games; unused by agents that play none.
        book: The file of a book of openings, or its digest once the run has a copy;
            empty for none.
        iterations: Number of models after the first one at which training ends; 0:
            only the budget ends training.
        learn_from: The run whose games are learned from; empty for the run's own
            experience.
        sets_itself_up: Whether the agent chooses network, store and learner for a task,
            so that it needs no recipe.
        fixed: The agent's settings that a run cannot change after its start, because
            its network or its experience was made for them.
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
            UsageError: The task is unknown, or a package that it needs is missing.
        """
        raise NotImplementedError(f"{cls.__name__} must say what it trains")

    def check(self, config: RunConfig) -> None:
        """Checks the parts of a run against each other.

        Raises:
            UsageError: A part cannot be used with this agent.
        """

    def check_task(self, config: RunConfig) -> None:
        """Checks the settings that depend on the task. Makes the task.

        Raises:
            UsageError: A setting does not fit the task.
        """

    def signature(self, task: str) -> Signature:
        """Returns the inputs and outputs that the agent needs of a network."""
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
        """Opens the experience that the learner draws from.

        Args:
            config: The run's config.
            run: The run.
            state: What ``Experience.state`` returned, to resume from; None to start.
            directory: Where actors in other processes of this host reach experience
                that is in memory; None: there are no such actors.
            net: Where actors on other hosts reach it; None: there are no such actors.

        Raises:
            UsageError: Another process has the experience open.
            RunError: Experience on the disk is missing or damaged.
        """
        raise NotImplementedError(f"{type(self).__name__} must have experience")

    def open_part(
        self, config: RunConfig, run: RunDirectory, way: Callable[[], StoreWay]
    ) -> ExperiencePart:
        """Returns the experience that a learner draws from which follows another.

        Args:
            config: The run's config.
            run: The run.
            way: Returns how to reach experience in the memory of the leading learner's
                process; raises RunError where it cannot be reached.
        """
        raise NotImplementedError(f"{type(self).__name__} must have parts of batches")

    def check_room(
        self, config: RunConfig, run: RunDirectory, directory: Path | None = None
    ) -> str:
        """Checks that there is room for the learner's experience; writes nothing.

        Args:
            config: The run's config.
            run: The run, which need not exist yet.
            directory: As for ``open_experience``.

        Returns:
            A line for the user: how large the experience is and where it will be;
            empty where its size is negligible.

        Raises:
            UsageError: The experience does not fit the memory or the disk.
        """
        return ""

    def make_update(self, config: RunConfig, net: Net) -> Update:
        """Returns how the agent learns.

        Args:
            config: The run's config.
            net: The network in training.
        """
        raise NotImplementedError(f"{type(self).__name__} must learn")

    def outputs(self) -> Sequence[str] | None:
        """Returns the network's outputs that acting needs; None: all of them."""
        return None

    def sample_inputs(
        self, task: str, num_rows: int, seed: int
    ) -> dict[str, NDArray[np.generic]]:
        """Returns distinct inputs on which an export is compared with its torch source.

        Empty where only torch evaluates the agent's networks.
        """
        return {}

    def evaluations_per_model(self, task: str) -> float:
        """Returns about how many positions one model evaluates; 0: unknown.

        The cost of work done once for each model, such as quantising, is weighed
        against this number.
        """
        return 0.0

    def generation_sizes(self) -> dict[str, int]:
        """Returns the settings of ``actor`` that may follow the machine's speed.

        Empty where the size of a generation is fixed.
        """
        return {}

    def with_generation_sizes(self, sizes: Mapping[str, int]) -> Self:
        """Returns the agent with other generations.

        Args:
            sizes: A value for each of ``generation_sizes``; other keys are ignored.
        """
        return self

    def point_utility(self, num_points: int) -> float:
        """Returns the utility of one point of the final score in the search, or 0."""
        return 0.0

    def nets(self, net: NetConfig) -> tuple[NetConfig, ...]:
        """Returns the network that a run begins with, then that of each stage."""
        return (net,)

    def num_stages_begun(self, history: History) -> int:
        """Returns how many stages have begun in a run with this history."""
        return 0

    def without_stages(self) -> Self:
        """Returns the agent without stages, for a run whose network never grows."""
        return self

    def growing_from(self, net: NetConfig) -> Self:
        """Returns the agent with only those stages that a network can grow into."""
        return self

    def growing_as(self, recipe: Agent, net: NetConfig) -> Self:
        """Returns the agent with a recipe's stages, for a run of an earlier version.

        The run's own stages stay. Stages of the recipe are added only where the run's
        stages are the recipe's first ones.

        Args:
            recipe: The agent as its recipe makes it today.
            net: The network that the run began with.
        """
        return self
