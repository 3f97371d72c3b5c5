"""The config of a whole run: what ``run.json`` holds and all roles read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tengen.agents import Agent, NetStage
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError, did_you_mean
from tengen.evaluation.match import MAX_SEED
from tengen.experience import Experience, ExperienceConfig, ExperiencePart
from tengen.inference import InferenceConfig
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.observe import ObserveConfig
from tengen.roles.config.launch import MOST_SERVERS, LaunchConfig
from tengen.run import RunDirectory
from tengen.store import Store
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.agents.alphazero import AlphaZero
    from tengen.transport import NetDoor

__all__ = ["Family", "RunConfig", "Schedule"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which roles a run has, for the launcher that starts them."""

    acting: str
    """The role that makes experience; empty where another run makes it."""
    learning: tuple[str, ...]
    """The roles that work between two turns of acting, in order."""
    rating: str = ""
    """The role that rates models from time to time; empty for none."""
    rating_share: float = 0.0
    """Share of the time that rating may take where roles take turns."""
    opponent: str = ""
    """Whom the models meet once training has ended; empty for nobody."""
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
    num_models: int = 0
    """Number of models after the first one at which training ends; 0: only the budget
    ends it."""
    counts_frames: bool = False
    """Whether a budget counts frames, steps of environments, instead of games."""
    games_per_turn: int = 0
    """Games in a turn of acting; 0 where no games are played."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The roles that the run needs to go on, each a process of its own."""
        roles = (self.acting, self.serving, *self.learning)
        return tuple(role for role in roles if role)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run is made of; a recipe is a function that returns one."""

    task: str
    """A game or an environment, as ``tengen train TASK`` takes it."""
    recipe: str
    """Name of the recipe that this config started from."""
    agent: Agent
    """The algorithm, and its settings."""
    net: NetConfig
    """The network that the run starts with."""
    store: ExperienceConfig
    """How much experience is kept, and how often it is used."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """How the learner makes its steps."""
    inference: InferenceConfig = field(default_factory=InferenceConfig)
    """What evaluates the network, and how."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """What roles get where all of them work at once."""
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    """Where the run's metrics are written besides its own events."""
    seed: int = 0
    """Seed of every random number of the run, at least 0."""
    minutes: float = bounded(10.0, 0, above=True, rule="must be positive; raise it")
    """How long ``tengen train`` runs where no budget is given, positive."""

    def __post_init__(self) -> None:
        """Checks the ranges, and the parts against each other.

        Raises:
            UsageError: A field is out of its range, or a part does not fit the agent.
        """
        check_range("seed", self.seed, 0, MAX_SEED, "leave it out")
        check_fields(self)
        self.agent.check(self.net, self.store, self.learner)
        check(
            self.inference.precision != "int8" or self.net.can_quantise,
            "inference.precision",
            self.inference.precision,
            f"needs convolutions, which net.kind {self.net.kind} has not; use fp32",
        )
        self._check_launch()

    @functools.cached_property
    def family(self) -> Family:
        """What the run has in common with the runs of all agents of its family."""
        return Family.of(self)

    @property
    def schedule(self) -> Schedule:
        """The roles of the run."""
        return self.family.schedule

    @property
    def games(self) -> AlphaZero | None:
        """The agent if it plays games; None in environments."""
        return self.family.games

    @property
    def stages(self) -> tuple[NetStage, ...]:
        """When the network grows; empty: never."""
        return () if self.games is None else self.games.stages

    @property
    def nets(self) -> tuple[NetConfig, ...]:
        """The first network, and the network of each later stage."""
        return (self.net,) if self.games is None else self.games.nets(self.net)

    @property
    def signature(self) -> Signature:
        """The signature of the first network, its state included. Makes the task."""
        return self.net.signature(self.agent.signature(self.task))

    def check_task(self) -> None:
        """Checks the settings that depend on the task. Makes the task.

        Raises:
            UsageError: A setting does not fit the task.
        """
        self.agent.check_task(self.task, self.net, self.store, self.learner)

    def _check_launch(self) -> None:
        schedule = self.schedule
        several = (schedule.acting, schedule.serving, "learn")
        # With a serving role, learning is one process, named by its first role.
        learning = schedule.learning[:1] if schedule.serving else schedule.learning
        roles = (schedule.acting, schedule.serving, *learning, schedule.rating)
        known = [role for role in roles if role]
        for role, given in self.launch.roles.items():
            if role not in known:
                raise UsageError(
                    f"launch.roles ({role}) is not a role of this run; "
                    f"{did_you_mean(role, known)}"
                )
            check(
                given.count == 1 or role in several,
                f"launch.roles.{role}.count",
                given.count,
                f"must be 1, as only {' and '.join(filter(None, several)) or 'acting'} "
                f"may have several processes; leave it out",
            )
            if role == schedule.serving:
                name = f"launch.roles.{role}.count"
                check_range(name, given.count, 1, MOST_SERVERS, "use one a device")
        num_learners = self.launch.of("learn").count
        check(
            num_learners <= self.learner.batch_size,
            "launch.roles.learn.count",
            num_learners,
            f"must be at most {self.learner.batch_size}, the "
            "learner.batch_size; lower it",
        )


class Family:
    """What the runs of related agents have in common: roles and experience.

    A family is one file beside this one, which names the base class of its agents::

        class Environments(Family, agents=EnvironmentAgent): ...

    Args:
        config: The run's config.
    """

    games: AlphaZero | None = None
    """See ``RunConfig.games``."""
    _families: ClassVar[dict[type[Agent], type[Family]]] = {}

    def __init_subclass__(cls, *, agents: type[Agent]) -> None:
        """Makes the family that of all agents of a class."""
        super().__init_subclass__()
        Family._families[agents] = cls

    def __init__(self, config: RunConfig) -> None:
        self.config = config

    @staticmethod
    def of(config: RunConfig) -> Family:
        """Returns the family of a run's agent."""
        known = Family._families
        bases = type(config.agent).__mro__
        return next(known[base] for base in bases if base in known)(config)

    @property
    def schedule(self) -> Schedule:
        """The roles of the run."""
        raise NotImplementedError(f"{type(self).__name__} must have roles")

    def open_experience(
        self,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> Experience:
        """Opens the experience that the learner draws from.

        Args:
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
        self, run: RunDirectory, connect: Callable[[], Store]
    ) -> ExperiencePart:
        """Returns the experience that a learner draws from which follows another.

        Args:
            run: The run.
            connect: Connects to the store in the memory of the leading learner's
                process, where the experience is one; raises RunError where it cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} must have parts of batches")

    def check_room(self, run: RunDirectory, directory: Path | None = None) -> str:
        """Checks that there is room for the learner's experience; writes nothing.

        Args:
            run: The run, which need not exist yet.
            directory: As for ``open_experience``.

        Returns:
            A line for the user: how large the experience is and where it will be;
            empty where its size is negligible.

        Raises:
            UsageError: The experience does not fit the memory or the disk.
        """
        return ""
