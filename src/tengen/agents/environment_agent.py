"""The base of the agents that act in environments, from the spec to experience."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tengen import envs, games
from tengen.actors import (
    LAST_ACTION,
    LAST_REWARD,
    EnvironmentActorConfig,
    Slots,
    StepBlock,
    encoded_length,
    step_tensors,
)
from tengen.agents.agent import Agent, Schedule, StoreWay
from tengen.agents.default_nets import net_for
from tengen.agents.environment_table import check_table, table_of, with_room_ahead
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.errors import UsageError
from tengen.evaluation import Acting
from tengen.experience import (
    Experience,
    ExperiencePart,
    FirstPriorities,
    ItemLayout,
    ReplayConfig,
    StepDraws,
    StepPlan,
    StepTable,
    plan_steps,
)
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.store import Store
from tengen.tensors import Signature, TensorSpec

if TYPE_CHECKING:
    from tengen.roles.config import RunConfig
    from tengen.run import RunDirectory
    from tengen.transport import NetDoor

__all__ = ["EnvironmentAgent"]

# Seconds of learning between two models while actors run on: short for a queue, whose
# agents must learn from the newest policy, longer for replay, whose agents need not.
_QUEUE_S = 0.02
_REPLAY_S = 0.25


@dataclass(frozen=True, kw_only=True)
class EnvironmentAgent(Agent):
    """Base of the agents that act by a network's answers alone, without search.

    A subclass defines the outputs that it needs of a network (``outputs_of``), how it
    acts (``act``, ``act_greedily``, ``num_uniforms``), which columns of its own a step
    stores (``own_tensors``), which steps an item has (``layout``), the priority of a
    new item (``priorities``), and how it learns (``make_update``). Every agent here is
    a ``tengen.actors.Policy``.
    """

    sets_itself_up: ClassVar[bool] = True
    draws_actions: ClassVar[bool] = True
    """Whether ``act`` draws actions from a policy that the network answers. If not,
    ``act`` explores by settings of the run, which a model's files do not hold."""

    discount: float = bounded(0.99, 0, 1)
    """Discount of one step, in [0, 1]. The larger it is, the further ahead rewards
    count: about 1 / (1 - discount) steps."""
    sees_last_step: bool = False
    """Whether the last action and the last reward are inputs of the network too."""
    actor: EnvironmentActorConfig = field(default_factory=EnvironmentActorConfig)
    """How environments are stepped."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    # What a subclass defines.

    @classmethod
    def refusal_of(cls, actions: ActionSpec) -> str:
        """Returns why the agent cannot use such actions; empty where it can."""
        return ""

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the outputs that the agent needs of a network."""
        raise NotImplementedError(f"{type(self).__name__} must ask for outputs")

    def num_uniforms(self, actions: ActionSpec) -> int:
        """See ``Policy.num_uniforms``."""
        raise NotImplementedError(f"{type(self).__name__} must act")

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """See ``Policy.act``."""
        raise NotImplementedError(f"{type(self).__name__} must act")

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """See ``Policy.act_greedily``."""
        raise NotImplementedError(f"{type(self).__name__} must act")

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """Returns how the agent acts in episodes that are scored.

        Where the environment has an evaluation protocol, this is how published figures
        were made.
        """
        return Acting()

    @classmethod
    def acting_settings(cls, signature: Signature) -> dict[str, Any]:
        """Returns the settings that acting depends on, read off a network's signature.

        Args:
            signature: The signature of a network that the agent trained.
        """
        return {"sees_last_step": LAST_REWARD in signature.inputs}

    def own_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the agent's own columns of a step, as ``act`` returns them."""
        return {}

    def priority_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns what ``act`` adds for ``priorities`` alone; it is not stored."""
        return {}

    def priorities(self, steps: Arrays) -> NDArray[np.float64]:
        """Returns the priorities ``[B]`` of new items in a prioritized table.

        Computed in numpy, since actors have no torch. Called only for agents that have
        ``priority_tensors``; new items of other agents get the greatest priority of
        late.

        Args:
            steps: ``[B, num_steps, ...]`` each: the ``priority_tensors``, and reward,
                terminated and is_reset.
        """
        raise NotImplementedError(f"{type(self).__name__} must know priorities")

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns which steps an item has.

        Args:
            state: The network's recurrent state; empty for a network without memory.

        Raises:
            UsageError: The agent cannot use a network with memory.
        """
        raise NotImplementedError(f"{type(self).__name__} must have items")

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with its default settings for a new run in an environment.

        Returns the agent itself where its settings suit the environment as they are.
        """
        return self

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns the default network for an environment's observations."""
        return net_for(spec)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns the default table that the agent learns from."""
        raise NotImplementedError(f"{type(self).__name__} must have a table")

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """Returns the default settings of the learner."""
        raise NotImplementedError(f"{type(self).__name__} must have a learner")

    # What follows from these definitions.

    @staticmethod
    def of(config: RunConfig, role: str) -> EnvironmentAgent:
        """Returns a run's agent, for a role that exists only in environment runs.

        Raises:
            UsageError: The run has another agent.
        """
        if not isinstance(config.agent, EnvironmentAgent):
            raise UsageError(
                f"role ({role}) is not part of a run of {config.agent.kind}; use "
                f"tengen selfplay"
            )
        return config.agent

    @staticmethod
    def of_model(kind: str, signature: Signature, where: object) -> EnvironmentAgent:
        """Returns an agent that acts by a model as the agent of the model's run did.

        Settings that acting does not depend on have their defaults.

        Args:
            kind: The kind of the agent that trained the model.
            signature: The model's signature.
            where: The model's place, for messages.

        Raises:
            UsageError: There is no such agent, or it acts in no environment.
        """
        found = Agent.of_kind(kind, f"agent of {where}")
        if not issubclass(found, EnvironmentAgent):
            raise UsageError(
                f"agent ({kind}) of {where} must act in environments; name a model of "
                f"an environment"
            )
        return found(**found.acting_settings(signature))

    @staticmethod
    def steps_of(experience: Experience) -> StepTable:
        """Returns the experience that ``open_experience`` opened, as a table of steps.

        An actor adds its steps to this table.
        """
        assert isinstance(experience, StepTable)
        return experience

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``."""
        if games.is_game(task):
            return "it acts in environments, not in games"
        return cls.refusal_of(envs.env_spec(task).actions)

    def check(self, config: RunConfig) -> None:
        """See ``Agent.check``."""
        check(
            isinstance(config.store, ReplayConfig),
            "store.kind",
            config.store.kind,
            f"must be table with agent {self.kind}; leave it out",
        )
        check(
            config.inference.precision != "int8" or config.net.can_quantise,
            "inference.precision",
            config.inference.precision,
            f"needs convolutions, which net.kind {config.net.kind} has not; use fp32",
        )
        check_table(self, config)

    def check_task(self, config: RunConfig) -> None:
        """See ``Agent.check_task``: the agent must be able to use the network."""
        self.layout(self.net_signature(config).state)

    def signature(self, task: str) -> Signature:
        """See ``Agent.signature``."""
        spec = envs.env_spec(task)
        return Signature(
            inputs=self.inputs_of(spec), outputs=self.outputs_of(spec.actions)
        )

    def schedule(self, config: RunConfig) -> Schedule:
        """See ``Agent.schedule``."""
        assert isinstance(config.store, ReplayConfig)
        return Schedule(
            acting="actor",
            learning=("learn", "export", "gate"),
            serving="inference",
            model_s=_QUEUE_S if config.store.is_queue else _REPLAY_S,
            is_shared=True,
            counts_frames=True,
        )

    def open_experience(
        self,
        config: RunConfig,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> StepTable:
        """See ``Agent.open_experience``."""
        return StepTable(
            *table_of(self, config, run),
            config.seed,
            state,
            num_slots=self.actor.num_envs * config.launch.of("actor").count,
            batch_size=config.learner.batch_size,
            directory=directory,
            net=net,
        )

    def open_part(
        self, config: RunConfig, run: RunDirectory, way: Callable[[], StoreWay]
    ) -> ExperiencePart:
        """See ``Agent.open_part``: as a client of the table."""
        _, columns, layout, table = table_of(self, config, run)

        def open_draws(shared: Mapping[str, Any]) -> StepDraws:
            found = way()
            store = Store.connect(
                found.address, token=found.token, fingerprint=found.fingerprint
            )
            return StepDraws(store, columns, layout, table)

        return ExperiencePart(open_draws)

    def plan_table(
        self, config: RunConfig, run: RunDirectory, directory: Path | None = None
    ) -> StepPlan:
        """Returns the sizes of what ``open_experience`` would make; writes nothing.

        Raises:
            UsageError: The table does not fit the memory or the disk.
        """
        return plan_steps(
            *table_of(self, config, run),
            num_slots=self.actor.num_envs * config.launch.of("actor").count,
            batch_size=config.learner.batch_size,
            directory=directory,
        )

    def check_room(
        self, config: RunConfig, run: RunDirectory, directory: Path | None = None
    ) -> str:
        """See ``Agent.check_room``."""
        return self.plan_table(config, run, directory).room.line

    def table_config(self, config: RunConfig) -> ReplayConfig:
        """Returns a run's table config, with what it leaves open filled in."""
        return with_room_ahead(self, config)

    def net_signature(self, config: RunConfig) -> Signature:
        """Returns the signature of the run's network, its state included."""
        return config.net.signature(self.signature(config.task))

    def make_block(self, spec: EnvSpec, layout: ItemLayout, num_envs: int) -> StepBlock:
        """Returns the block that the steps of an actor's copies go through.

        Args:
            spec: The environment.
            layout: The layout of the items.
            num_envs: Copies of the environment.
        """
        own = {
            **self.own_tensors(spec.actions),
            **self.priority_tensors(spec.actions),
        }
        tensors = step_tensors(self.inputs_of(spec), spec.actions, own)
        return StepBlock(
            tensors,
            num_envs,
            layout.block_steps(self.actor.turn_steps),
            is_closed=layout.is_closed,
            num_before=layout.num_before,
        )

    def first_priorities(self, actions: ActionSpec) -> FirstPriorities | None:
        """Returns what computes new items' priorities; None: the greatest so far."""
        tensors = self.priority_tensors(actions)
        return FirstPriorities(tuple(tensors), self.priorities) if tensors else None

    def turn_blocks(self, layout: ItemLayout) -> int:
        """Returns how many blocks of steps an actor's turn has."""
        turn_steps = self.actor.turn_steps
        return -(-turn_steps // layout.block_steps(turn_steps))

    def inputs_of(self, spec: EnvSpec) -> dict[str, TensorSpec]:
        """Returns the network's inputs."""
        last = {
            LAST_ACTION: TensorSpec(shape=(encoded_length(spec.actions),)),
            LAST_REWARD: TensorSpec(),
        }
        return {**spec.observations, **(last if self.sees_last_step else {})}
