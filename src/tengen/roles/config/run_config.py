"""The config of a whole run: what ``run.json`` holds and all roles read."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.agents import Agent
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError, did_you_mean
from tengen.evaluation.match import MAX_SEED
from tengen.experience import ExperienceConfig
from tengen.inference import InferenceConfig
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.observe import ObserveConfig
from tengen.roles.config.launch import MOST_SERVERS, LaunchConfig

__all__ = ["RunConfig"]


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
        self.agent.check(self)
        self._check_launch()

    @property
    def nets(self) -> tuple[NetConfig, ...]:
        """The first network, and the network of each later stage."""
        return self.agent.nets(self.net)

    def _check_launch(self) -> None:
        schedule = self.agent.schedule(self)
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
