"""MAPPO: PPO for several agents, with a critic that sees the global state.

Source: Yu et al. 2022, "The Surprising Effectiveness of PPO in Cooperative Multi-Agent
Games" (arXiv:2103.01955), sections 3 to 5.

The policy, which all agents share by default, sees only an agent's own observation and
its index. The critic also sees the global state (``EnvSpec.global_state``), and is only
part of the learner. So a published model acts without the global state.

Differs from the paper: the settings are those of ``ppo``, with more minibatches;
rewards are divided by the scale of returns, in place of the normalization of values;
the critic has no memory, and the global state is standardized with running statistics;
the return of an agent ends with its termination, although its team may play on; the
loss of values is not the Huber loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.agents.bases.unrolls import (
    LATER_STANDARD,
    STATE_STANDARD,
    standardized_state,
    unroll,
    unroll_of_all,
)
from tengen.agents.ppo import Ppo, PpoUpdate
from tengen.envs import ActionSpec
from tengen.experience import ExperienceConfig
from tengen.learners.update import load_module, module_state
from tengen.tensors import GLOBAL_STATE, TensorSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.nets import Net

_CRITIC = "critic."


@dataclass(frozen=True, kw_only=True)
class Mappo(Ppo):
    """Settings of MAPPO; the module docstring gives the source and the differences."""

    kind: Literal["mappo"] = "mappo"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ()
    needs_agents: ClassVar[bool] = True
    learns_from_state: ClassVar[bool] = True

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``; the learner's critic has the values."""
        outputs = super().outputs_of(actions)
        return {name: spec for name, spec in outputs.items() if name != "value"}

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> MappoUpdate:
        """See ``Agent.make_update``."""
        return MappoUpdate(self, net, envs.env_spec(task))


class MappoUpdate(PpoUpdate):
    """PPO's update, with values from a central critic.

    Attributes:
        critic: A network of the same kind and size as the policy's, without memory,
            whose inputs are those of the policy and the standardized global state.
        standard: The statistics of the global state, which has any unit.
    """

    is_recordable = True
    later_state = (*PpoUpdate.later_state, *LATER_STANDARD)

    def __init__(self, agent: Mappo, net: Net, spec: envs.EnvSpec) -> None:
        """Creates a critic with random weights.

        Args:
            agent: The agent's settings.
            net: The policy's network.
            spec: The environment's spec, with a global state.
        """
        from tengen.nets.modules.critics import make_value_critic
        from tengen.nets.modules.standard import Standard

        super().__init__(agent, spec.actions)
        assert spec.global_state is not None  # ``refusal`` has checked it
        critic = make_value_critic(net, {GLOBAL_STATE: spec.global_state})
        # In evaluation mode, the statistics of the inputs stay the same.
        self.critic = critic.eval()
        self.standard = Standard(spec.global_state.num_entries)

    def scaled(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Standardizes the global state too; see ``PolicyUpdate.scaled``."""
        columns = super().scaled(columns)
        # The items of all agents have the state: it counts for each of them.
        rows = columns[GLOBAL_STATE].flatten(0, 1)
        return standardized_state(self.standard, columns, rows, self.group)

    def values(self, columns: dict[str, Tensor], outputs: dict[str, Tensor]) -> Tensor:
        """See ``PpoUpdate.values``."""
        return unroll(self.critic, columns).outputs["value"]

    def values_before(
        self, columns: dict[str, Tensor], outputs: dict[str, Tensor]
    ) -> Tensor:
        """See ``PpoUpdate.values_before``."""
        self.critic.train()
        try:
            return unroll_of_all(self.critic, columns, self.group).outputs["value"]
        finally:
            self.critic.eval()

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return list(self.critic.parameters())

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``."""
        self.critic.to(device)
        self.critic.compute_dtype = dtype
        self.standard.to(device)

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        return {
            **super().state(),
            **module_state(_CRITIC, self.critic),
            **module_state(STATE_STANDARD, self.standard),
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        super().load_state(tensors)
        load_module(_CRITIC, self.critic, tensors)
        load_module(STATE_STANDARD, self.standard, tensors)
