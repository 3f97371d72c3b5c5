"""The complete config of a run, which all roles read from ``run.json``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tengen.agents import Agent, NetStage
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import RunError, UsageError, did_you_mean
from tengen.evaluation.match import MAX_SEED
from tengen.experience import Experience, ExperienceConfig, ExperiencePart
from tengen.inference import InferenceConfig
from tengen.learners import LearnerConfig
from tengen.models import ModelDir, load_model
from tengen.nets import NetConfig
from tengen.observe import ObserveConfig
from tengen.roles.config.launch import MOST_SERVERS, LaunchConfig
from tengen.run import RunDirectory
from tengen.store import Store
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.agents.alphazero import AlphaZero
    from tengen.transport import NetDoor


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The roles that a launcher starts for a run, and when they work."""

    acting: str
    """The role that generates experience; empty if the run uses another run's games."""
    learning: tuple[str, ...]
    """The roles that work between two turns of the acting role, in order."""
    rating: str = ""
    """The role that rates models from time to time; empty for none."""
    rating_share: float = 0.0
    """Maximum share of the time spent on rating if roles take turns."""
    has_opponents: bool = False
    """Whether actors act with earlier models too. Then some old models are kept, and if
    roles take turns, models do not depend on the clock, so that a seed reproduces the
    run."""
    opponent: str = ""
    """The opponent of the models in matches after training; empty for none."""
    serving: str = ""
    """The role that evaluates the network for acting processes if roles work
    concurrently; empty if each acting process has its own network."""
    model_s: float = 0.0
    """Seconds of a learner's turn if actors work concurrently. Each turn ends with a
    model, so this is also the time between models."""
    is_shared: bool = False
    """Whether the experience is in the memory of the learner's process. Then all
    learning roles share that process, and so does the acting role if roles take turns.
    """
    num_models: int = 0
    """Number of models, not counting model 0, after which training ends; 0: only the
    budget ends it."""
    counts_frames: bool = False
    """Whether a budget counts frames (environment steps) instead of games."""
    games_per_turn: int = 0
    """Games in a turn of the acting role; 0 if no games are played."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the roles that the run cannot continue without."""
        roles = (self.acting, self.serving, *self.learning)
        return tuple(role for role in roles if role)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The complete config of a run; a recipe is a function that returns one."""

    task: str
    """The game or environment, as in ``tengen train TASK``."""
    recipe: str
    """Name of the recipe that created this config."""
    agent: Agent
    """The algorithm and its settings."""
    net: NetConfig
    """The initial network of the run."""
    store: ExperienceConfig
    """The capacity of the experience, and how often it is sampled."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """The optimizer, batches and learning-rate schedule of the learner."""
    inference: InferenceConfig = field(default_factory=InferenceConfig)
    """The devices, backend and batches that evaluate the network."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """The roles' resources if roles work concurrently."""
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    """Where the run's metrics are written, in addition to its event files."""
    seed: int = 0
    """Seed of the run's random number generators, at least 0."""
    minutes: float = bounded(10.0, 0, above=True, rule="must be positive; raise it")
    """Minutes that ``tengen train`` runs if no budget is given, positive."""

    def __post_init__(self) -> None:
        """Checks the ranges of all fields, and that all parts fit the agent.

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
            f"needs convolutions, which net.kind {self.net.kind} lacks; use fp32",
        )
        self._check_native()
        self._check_launch()

    def _check_native(self) -> None:
        """Checks that the backend evaluates the network.

        The core evaluates only native networks. These have no graph for OpenVINO,
        compute in fp32, and have operations that GPUs cannot record.
        """
        inference = self.inference
        is_native = self.net.is_native
        unfit = {
            "backend": ("openvino",) if is_native else ("native",),
            "precision": ("bf16",) if is_native else (),
        }
        rule = f"cannot evaluate net.kind {self.net.kind}; use auto"
        for name, words in unfit.items():
            value = getattr(inference, name)
            check(value not in words, f"inference.{name}", value, rule)
        is_fit = not (is_native and inference.is_on_gpu)
        rule = f"cannot evaluate net.kind {self.net.kind}; use cpu, or another net.kind"
        check(is_fit, "inference.devices", inference.devices, rule)

    @functools.cached_property
    def family(self) -> Family:
        """The family that the run's agent belongs to."""
        return Family.of(self)

    @property
    def schedule(self) -> Schedule:
        """The roles of the run, and when they work."""
        return self.family.schedule

    @property
    def games(self) -> AlphaZero | None:
        """The agent if its task is a game; None for an environment."""
        return self.family.games

    @property
    def stages(self) -> tuple[NetStage, ...]:
        """The stages at which the network grows; empty if it never grows."""
        return () if self.games is None else self.games.stages

    @property
    def nets(self) -> tuple[NetConfig, ...]:
        """The initial network, and the network of each later stage."""
        return (self.net,) if self.games is None else self.games.nets(self.net)

    @property
    def signature(self) -> Signature:
        """The initial network's signature. Creates the game or environment."""
        return self.net.signature(self.agent.signature(self.task))

    def load_model(self, entry: Path) -> ModelDir:
        """Returns the model in a folder of the run. Checks its files and signature.

        Raises:
            RunError: The model is missing or damaged.
            UsageError: The model's task or signature differs from the run's.
        """
        wanted = self.agent.signature(self.task)
        return load_model(entry, self.task, wanted, error=RunError)

    def check_task(self) -> None:
        """Checks the settings that depend on the task, which is created for this.

        Raises:
            UsageError: A setting does not fit the task.
        """
        self.agent.check_task(self.task, self.net, self.store, self.learner)

    def _check_launch(self) -> None:
        schedule = self.schedule
        several = (schedule.acting, schedule.serving, "learn")
        # With a serving role, the learning roles share a process named after the first.
        learning = schedule.learning[:1] if schedule.serving else schedule.learning
        roles = (schedule.acting, schedule.serving, *learning, schedule.rating)
        known = [role for role in roles if role]
        for role, given in self.launch.roles.items():
            if role not in known:
                raise UsageError(
                    f"launch.roles ({role}) must be a role of this run; "
                    f"{did_you_mean(role, known)}"
                )
            check(
                given.count == 1 or role in several,
                f"launch.roles.{role}.count",
                given.count,
                f"must be 1, as only {' and '.join(filter(None, several)) or 'acting'} "
                "can have several processes; leave it out",
            )
            if role == schedule.serving:
                name = f"launch.roles.{role}.count"
                check_range(name, given.count, 1, MOST_SERVERS, "use one per device")
        num_learners = self.launch.of("learn").count
        check(
            num_learners <= self.learner.batch_size,
            "launch.roles.learn.count",
            num_learners,
            f"must be at most learner.batch_size ({self.learner.batch_size}); lower it",
        )


class Family:
    """The roles and the experience format that runs of related agents share.

    Each family is a file in this package, which gives the base class of its agents::

        class Environments(Family, agents=EnvironmentAgent): ...

    Args:
        config: The run's config.
    """

    games: AlphaZero | None = None
    """See ``RunConfig.games``."""
    _families: ClassVar[dict[type[Agent], type[Family]]] = {}

    def __init_subclass__(cls, *, agents: type[Agent]) -> None:
        """Registers the family for all agents derived from ``agents``."""
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
        """The roles of the run, and when they work."""
        raise NotImplementedError(f"{type(self).__name__} must have roles")

    def open_experience(
        self,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> Experience:
        """Opens the experience that the learner samples from.

        Args:
            run: The run.
            state: The value of ``Experience.state`` to resume from; None to start.
            directory: The folder at which actors in other processes of this host
                connect to experience in memory; None if there are no such actors.
            net: The network address for actors on other hosts; None if there are none.

        Raises:
            UsageError: Another process has the experience open.
            RunError: Experience on the disk is missing or damaged.
        """
        raise NotImplementedError(f"{type(self).__name__} must have experience")

    def open_part(
        self, run: RunDirectory, connect: Callable[[], Store]
    ) -> ExperiencePart:
        """Returns the experience that a following learner samples from.

        Args:
            run: The run.
            connect: Connects to the store in the leading learner's process, if the
                experience is a store; raises RunError if the connection fails.
        """
        raise NotImplementedError(f"{type(self).__name__} must have parts of batches")

    def check_given(self, run: RunDirectory) -> None:
        """Checks the data from outside that a run begins with; the default has none.

        Args:
            run: The run, which need not exist yet.

        Raises:
            UsageError: The data is missing, damaged, or does not fit the task.
        """

    def check_room(self, run: RunDirectory, directory: Path | None = None) -> str:
        """Checks that the experience fits into this host's memory and disk.

        Args:
            run: The run, which need not exist yet.
            directory: See ``open_experience``.

        Returns:
            A line for the user with the experience's size and location; empty if the
            size is negligible.

        Raises:
            UsageError: The experience does not fit into the memory or the disk.
        """
        return ""
