"""The base of the agents that act in environments, from the spec to experience."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

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
from tengen.agents.agent import Agent
from tengen.agents.default_nets import net_for
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.errors import UsageError
from tengen.evaluation import Acting
from tengen.experience import (
    ExperienceConfig,
    FirstPriorities,
    ItemLayout,
    ReplayConfig,
)
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.tensors import Signature, TensorSpec

__all__ = ["EnvironmentAgent"]


@dataclass(frozen=True, kw_only=True)
class EnvironmentAgent(Agent):
    """Base of the agents that act by a network's answers alone, without search.

    A subclass defines the outputs that it needs of a network (``outputs_of``), how it
    acts (``act``, ``act_greedily``, ``num_uniforms``), which columns of its own a step
    stores (``own_tensors``), which steps an item has (``layout``), the priority of a
    new item (``priorities``), and how it learns (``make_update``). Every agent here is
    a ``tengen.actors.Policy``.
    """

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

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``."""
        if games.is_game(task):
            return "it acts in environments, not in games"
        return cls.refusal_of(envs.env_spec(task).actions)

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """See ``Agent.check``: a table has room for a turn's items and a batch's rest.

        Where actor and learner take turns, a full table would block both.
        """
        if not isinstance(store, ReplayConfig):
            rule = f"must be table with agent {self.kind}; leave it out"
            raise UsageError(f"store.kind ({store.kind}) {rule}")
        name, given = "max_items", store.max_items
        needed = self._items_of_turn() + learner.batch_size - 1
        what = "a turn's items and those that a batch may leave"
        if not store.is_queue:
            name, given = "max_ahead", store.max_ahead
            needed = self._least_ahead(store, learner)
            what = "the items of a turn and a batch"
        check(
            given >= needed or (name == "max_ahead" and given == 0),
            f"store.{name}",
            given,
            f"must be at least {needed}, {what}; raise it",
        )

    def check_task(
        self,
        task: str,
        net: NetConfig,
        store: ExperienceConfig,
        learner: LearnerConfig,
    ) -> None:
        """See ``Agent.check_task``: the agent must be able to use the network."""
        self.layout(net.signature(self.signature(task)).state)

    def signature(self, task: str) -> Signature:
        """See ``Agent.signature``."""
        spec = envs.env_spec(task)
        return Signature(
            inputs=self.inputs_of(spec), outputs=self.outputs_of(spec.actions)
        )

    def table_config(
        self, store: ExperienceConfig, learner: LearnerConfig, num_actors: int
    ) -> ReplayConfig:
        """Returns the table's config, with ``max_ahead`` chosen where it is 0.

        Args:
            store: The run's.
            learner: The run's.
            num_actors: Processes that act.
        """
        assert isinstance(store, ReplayConfig)
        if store.is_queue or store.max_ahead:
            return store
        least = self._least_ahead(store, learner)
        ahead = max(2 * num_actors * self._items_of_turn(), least)
        return dataclasses.replace(store, max_ahead=ahead)

    def columns(self, spec: EnvSpec) -> dict[str, TensorSpec]:
        """Returns the columns of a step in the table."""
        own = self.own_tensors(spec.actions)
        return step_tensors(self.inputs_of(spec), spec.actions, own)

    def _items_of_turn(self) -> int:
        """Returns the most items that an actor's turn can make."""
        layout, actor = self.layout({}), self.actor
        # An upper bound: items of period 1 do not begin at a step that resets.
        items_of_block = layout.block_steps(actor.turn_steps) // layout.period
        return actor.num_envs * self.turn_blocks(layout) * items_of_block

    def _least_ahead(self, store: ReplayConfig, learner: LearnerConfig) -> int:
        """Returns the least ``max_ahead``: the items of a batch and of a turn."""
        per_batch = learner.batch_size / store.samples_per_item
        return math.ceil(per_batch) + self._items_of_turn()

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
