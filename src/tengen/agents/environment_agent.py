"""``EnvironmentAgent``, the base class of agents that act in environments."""

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
    Behaviour,
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
from tengen.learners import AdamWConfig, LearnerConfig
from tengen.nets import NetConfig
from tengen.tensors import CHOICE_OUTPUTS, GLOBAL_STATE, Signature, TensorSpec


@dataclass(frozen=True, kw_only=True)
class EnvironmentAgent(Agent):
    """Base class of agents that choose actions from network outputs, without search.

    A subclass defines the outputs that its network must have (``outputs_of``), how it
    acts (``act``, ``act_greedily``, ``num_uniforms``), its additional columns of a step
    (``own_tensors``), the steps of an item (``layout``), the priorities of new items
    (``priorities``), and how it learns (``make_update``). The class implements
    ``tengen.actors.Policy``.
    """

    draws_actions: ClassVar[bool] = True
    """Whether ``act`` samples actions from a policy that the network outputs. If not,
    exploration depends on settings of the run, which a model's files do not contain."""
    needs_agents: ClassVar[bool] = False
    """Whether the environment must have several agents (``EnvSpec.agents``)."""
    is_single: ClassVar[bool] = False
    """Whether the environment must have a single agent."""
    learns_from_state: ClassVar[bool] = False
    """Whether stored steps have the global state, which then must exist."""

    takes_demos: ClassVar[bool] = False
    """Whether the agent learns from demonstrations, ``store.demos``, and needs them."""

    discount: float = bounded(0.99, 0, 1)
    """Discount factor per step, in [0, 1]. The horizon is about 1 / (1 - discount)
    steps."""
    sees_last_step: bool = False
    """Whether the last action and the last reward are also inputs of the network."""
    actor: EnvironmentActorConfig = field(default_factory=EnvironmentActorConfig)
    """Settings of the actors, which step the environments."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    # Methods that a subclass defines.

    @classmethod
    def refusal_of(cls, actions: ActionSpec) -> str:
        """Returns why the agent does not support ``actions``; empty if it does."""
        return ""

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the outputs that the agent's network must have for ``actions``."""
        raise NotImplementedError(f"{type(self).__name__} must define outputs_of()")

    def num_uniforms(self, actions: ActionSpec) -> int:
        """See ``Policy.num_uniforms``."""
        raise NotImplementedError(f"{type(self).__name__} must define num_uniforms()")

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """See ``Policy.act``."""
        raise NotImplementedError(f"{type(self).__name__} must define act()")

    def behaviour(self, slots: Slots, seed: int) -> Behaviour | None:
        """Returns the new state of an actor's copies beside the network; None if none.

        Args:
            slots: The range of the copies among all copies of the run.
            seed: Seed of random choices, 0 to 2^64 - 1.
        """
        return None

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """See ``Policy.act_greedily``."""
        raise NotImplementedError(f"{type(self).__name__} must define act_greedily()")

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """Returns how the agent chooses actions in evaluation episodes.

        If the environment has an evaluation protocol, agents act as in published
        results. The default is greedy.
        """
        return Acting()

    @classmethod
    def acting_settings(cls, signature: Signature) -> dict[str, Any]:
        """Returns the settings that affect acting, inferred from a network's signature.

        Args:
            signature: The signature of a network that an agent of this class trained.
        """
        return {"sees_last_step": LAST_REWARD in signature.inputs}

    def own_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the specs of the columns that ``act`` adds to each stored step."""
        return {}

    def priority_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the specs of columns of ``act`` for ``priorities``, not stored."""
        return {}

    def priorities(self, steps: Arrays) -> NDArray[np.float64]:
        """Returns the priorities ``[B]`` of new items in a prioritized table.

        Uses numpy, because actors do not import torch. Called only for agents that have
        ``priority_tensors``; new items of other agents get the maximum recent priority.

        Args:
            steps: The ``priority_tensors``, and reward, terminated and is_reset, as
                arrays of shape ``[B, num_steps, ...]``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define priorities()")

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns the layout of the items from which the agent learns.

        Args:
            state: The state in the network's signature; empty for no state.

        Raises:
            UsageError: The agent cannot use a network with memory.
        """
        raise NotImplementedError(f"{type(self).__name__} must define layout()")

    def layout_of(self, signature: Signature) -> ItemLayout:
        """Returns ``layout`` for a network with the given signature."""
        return self.layout(signature.state)

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns a copy of the agent with default settings for an environment.

        Called for a new run. Returns ``self`` if no setting depends on ``spec``.
        """
        return self

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns the default network for an environment's observations."""
        return net_for(spec)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns the default config of the agent's table of steps."""
        raise NotImplementedError(f"{type(self).__name__} must have a table")

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """Returns the default settings of the agent's learner."""
        raise NotImplementedError(f"{type(self).__name__} must have a learner")

    # Methods that call the methods above.

    @staticmethod
    def of_model(kind: str, signature: Signature, where: object) -> EnvironmentAgent:
        """Returns an agent that acts with a model like the agent that trained it.

        Settings that do not affect acting have their default values.

        Args:
            kind: The kind of the agent that trained the model.
            signature: The signature of the model's network.
            where: The location of the model, for error messages.

        Raises:
            UsageError: ``kind`` is unknown, or the agent does not act in environments.
        """
        found = Agent.of_kind(kind, f"agent of {where}")
        if not issubclass(found, EnvironmentAgent):
            raise UsageError(
                f"agent ({kind}) of {where} must act in environments; name a model "
                "that was trained in an environment"
            )
        return found(**found.acting_settings(signature))

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``."""
        if games.is_game(task):
            return "it needs an environment"
        spec = envs.env_spec(task)
        if cls.needs_agents and not spec.agents:
            return "it needs several agents"
        if cls.is_single and spec.agents:
            return "it needs a single agent"
        if cls.learns_from_state and spec.global_state is None:
            return "it needs a global state"
        return cls.refusal_of(spec.actions)

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """See ``Agent.check``; checks that the table has space for a turn's items."""
        if not isinstance(store, ReplayConfig):
            rule = f"must be table with agent {self.kind}; leave it out"
            raise UsageError(f"store.kind ({store.kind}) {rule}")
        check(
            self.takes_demos or not store.demos,
            "store.demos",
            store.demos,
            f"must be left out with agent {self.kind}; use --agent r2d3",
        )
        check(
            not (store.demos and store.is_queue),
            "store.sampler",
            store.sampler,
            "must not be fifo with demonstrations, which a queue would use only once; "
            "set store.sampler=prioritized",
        )
        self._check_space(store, learner, 1)

    def _check_space(
        self, store: ReplayConfig, learner: LearnerConfig, num_slots: int
    ) -> None:
        """Checks that the table has space for a turn's items.

        A smaller table could deadlock an actor and a learner that work in turns: the
        actor waits for space, and the learner for the rest of a batch.

        Args:
            store: The table.
            learner: The learner.
            num_slots: Number of slots of a copy of the environment.
        """
        name, given = "max_items", store.max_items
        needed = self._items_of_turn(num_slots) + learner.batch_size - 1
        what = "the items of a turn and those left over from a batch"
        if not store.is_queue:
            name, given = "max_ahead", store.max_ahead
            needed = self._least_ahead(store, learner, num_slots)
            what = "the items of a turn and of a batch"
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
        """See ``Agent.check_task``.

        Checks that items can store the network's state, that the table has space, that
        an action mask applies to an output of the network, that opponents have a team,
        and that demonstrations are given if the agent needs them.
        """
        wanted, spec = self.signature(task), envs.env_spec(task)
        self.layout_of(net.signature(wanted))
        check(
            self.actor.opponents == 0 or len(spec.team_members) > 1,
            "agent.actor.opponents",
            self.actor.opponents,
            f"must be 0 in {task}, where no agents are in different teams; give the "
            "environment the attribute teams, or set 0",
        )
        assert isinstance(store, ReplayConfig)  # ``check`` has checked it
        self._check_space(store, learner, self.num_slots(spec))
        if spec.has_action_mask:
            check(
                bool(CHOICE_OUTPUTS & wanted.outputs.keys()),
                f"outputs of agent {self.kind}",
                ", ".join(wanted.outputs),
                f"must include one of {', '.join(sorted(CHOICE_OUTPUTS))}, because "
                f"{task} has an action mask; rename the output with a value per choice",
            )
        check(
            bool(store.demos) or not self.takes_demos,
            "store.demos",
            '""',
            f"must be a folder of demonstrations with agent {self.kind}; give --demos "
            "FOLDER, see tengen demos record -h",
        )

    def signature(self, task: str) -> Signature:
        """See ``Agent.signature``."""
        spec = envs.env_spec(task)
        return Signature(
            inputs=self.inputs_of(spec), outputs=self.outputs_of(spec.actions)
        )

    def num_slots(self, spec: EnvSpec) -> int:
        """Returns the number of the table's slots of a copy: one for each agent.

        The agents of an environment with several agents learn independently, with
        shared weights.

        Source: Tan 1993, "Multi-Agent Reinforcement Learning: Independent vs.
        Cooperative Agents"; de Witt et al. 2020, "Is Independent Learning All You Need
        in the StarCraft Multi-Agent Challenge?" (arXiv:2011.09533).
        """
        return spec.num_agents

    def table_config(
        self,
        store: ExperienceConfig,
        learner: LearnerConfig,
        num_actors: int,
        spec: EnvSpec,
    ) -> ReplayConfig:
        """Returns ``store`` with a value for ``max_ahead`` if it is 0.

        Args:
            store: The config of the run's experience.
            learner: The config of the run's learner.
            num_actors: Number of actor processes.
            spec: The description of the environment.
        """
        assert isinstance(store, ReplayConfig)
        if store.is_queue or store.max_ahead:
            return store
        num_slots = self.num_slots(spec)
        least = self._least_ahead(store, learner, num_slots)
        ahead = max(2 * num_actors * self._items_of_turn(num_slots), least)
        return dataclasses.replace(store, max_ahead=ahead)

    def columns(self, spec: EnvSpec) -> dict[str, TensorSpec]:
        """Returns the columns that the table stores for each step, by name."""
        own = self.own_tensors(spec.actions)
        return self._step_tensors(spec, own)

    def _items_of_turn(self, num_slots: int) -> int:
        """Returns the maximum number of items that an actor inserts per turn.

        Args:
            num_slots: Number of slots of a copy of the environment.
        """
        layout, actor = self.layout({}), self.actor
        # An upper bound, because with period 1 no item begins at a reset step.
        items_of_block = layout.block_steps(actor.turn_steps) // layout.period
        return actor.num_envs * num_slots * self.turn_blocks(layout) * items_of_block

    def _least_ahead(
        self, store: ReplayConfig, learner: LearnerConfig, num_slots: int
    ) -> int:
        """Returns the minimum ``max_ahead``: a turn's items plus a batch's inserts."""
        per_batch = learner.batch_size / store.samples_per_item
        return math.ceil(per_batch) + self._items_of_turn(num_slots)

    def make_block(
        self, spec: EnvSpec, layout: ItemLayout, num_copies: int
    ) -> StepBlock:
        """Returns a block that buffers the steps of an actor's environments.

        Args:
            spec: The description of the environment.
            layout: The layout of the items.
            num_copies: Number of copies of the environment.
        """
        own = {
            **self.own_tensors(spec.actions),
            **self.priority_tensors(spec.actions),
        }
        tensors = self._step_tensors(spec, own)
        return StepBlock(
            tensors,
            num_copies * self.num_slots(spec),
            layout.block_steps(self.actor.turn_steps),
            is_closed=layout.is_closed,
            num_before=layout.num_before,
        )

    def first_priorities(self, actions: ActionSpec) -> FirstPriorities | None:
        """Returns the rule for new items' priorities; None: the recent maximum."""
        tensors = self.priority_tensors(actions)
        return FirstPriorities(tuple(tensors), self.priorities) if tensors else None

    def turn_blocks(self, layout: ItemLayout) -> int:
        """Returns the number of blocks of steps in an actor's turn."""
        turn_steps = self.actor.turn_steps
        return -(-turn_steps // layout.block_steps(turn_steps))

    def _step_tensors(
        self, spec: EnvSpec, own: Mapping[str, TensorSpec]
    ) -> dict[str, TensorSpec]:
        # The mask of legal choices is a column of a step, but no input of the network.
        inputs = {**spec.observation_tensors, **self.inputs_of(spec)}
        if self.learns_from_state:
            assert spec.global_state is not None  # ``refusal`` has checked it
            inputs[GLOBAL_STATE] = spec.global_state
        return step_tensors(inputs, spec.actions, own)

    def inputs_of(self, spec: EnvSpec) -> dict[str, TensorSpec]:
        """Returns the inputs of the agent's network in an environment, by name."""
        last = {
            LAST_ACTION: TensorSpec(shape=(encoded_length(spec.actions),)),
            LAST_REWARD: TensorSpec(),
        }
        return {**spec.observations, **(last if self.sees_last_step else {})}


def plain_learner(
    *,
    batch_size: int,
    learning_rate: float,
    max_grad_norm: float,
    epsilon: float = 1e-8,
    cooldown: float = 1.0,
    average_decay: float = 0.0,
) -> LearnerConfig:
    """Returns a learner with Adam, without weight decay and warm-up.

    A batch is one shard. See ``LearnerConfig`` and ``AdamWConfig`` for the arguments.
    """
    return LearnerConfig(
        batch_size=batch_size,
        num_shards=1,
        optimizer=AdamWConfig(
            learning_rate=learning_rate,
            weight_decay=0.0,
            num_warmup_steps=0,
            cooldown=cooldown,
            max_grad_norm=max_grad_norm,
            average_decay=average_decay,
            epsilon=epsilon,
        ),
    )
