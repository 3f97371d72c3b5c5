"""QMIX: a network that depends on the global state mixes the Q values of a team.

Source: Rashid et al. 2018, "QMIX: Monotonic Value Function Factorisation for Deep
Multi-Agent Reinforcement Learning" (arXiv:1803.11485), section 4.

The team's Q value increases with the Q value of each agent, but need not be their sum
as in ``vdn``. Only the learner has the mixing network and sees the global state, which
it standardizes with running statistics.
``tengen.agents.bases.team_agent`` has the settings, the rest of the update, and the
differences from the paper.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.agents.bases.team_agent import TeamAgent, TeamUpdate
from tengen.agents.bases.unrolls import (
    LATER_STANDARD,
    STATE_STANDARD,
    standardized_state,
)
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.tensors import GLOBAL_STATE

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class Qmix(TeamAgent):
    """Settings of QMIX; the module docstring gives the source."""

    kind: Literal["qmix"] = "qmix"
    """The agent's name, as in ``--agent``."""
    learns_from_state: ClassVar[bool] = True

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> QmixUpdate:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return QmixUpdate(self, net, envs.env_spec(task), store)


class QmixUpdate(TeamUpdate):
    """The update of a team's Q value with a mixing network.

    Attributes:
        mixer: The mixing network.
        target_mixer: Its periodic copy, for targets.
        standard: The statistics of the global state, which has any unit. Both mixing
            networks see the standardized state.
    """

    later_state = LATER_STANDARD

    def __init__(
        self, agent: Qmix, net: Net, spec: envs.EnvSpec, store: ReplayConfig
    ) -> None:
        """Creates a mixing network with random weights, and the target networks.

        Args:
            agent: The agent's settings.
            net: The network of the agents.
            spec: The environment's spec, with a global state.
            store: The config of the table.
        """
        from tengen.nets.modules.critics import Mixer
        from tengen.nets.modules.standard import Standard

        super().__init__(agent, net, store)
        assert spec.global_state is not None  # ``refusal`` has checked it
        num_state = spec.global_state.num_entries
        self.mixer = Mixer(spec.num_agents, num_state)
        self.standard = Standard(num_state)
        self.target_mixer = copy.deepcopy(self.mixer).requires_grad_(False)
        self.parts |= {
            "mixer.": self.mixer,
            "target_mixer.": self.target_mixer,
            STATE_STANDARD: self.standard,
        }

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Standardizes the global state; see ``Update.minibatches``."""
        learned = columns[GLOBAL_STATE][:, self._agent.burn_in :].flatten(0, 1)
        yield standardized_state(self.standard, columns, learned, self.group)

    def mixed(
        self, q: Tensor, steps: dict[str, Tensor], *, is_target: bool = False
    ) -> Tensor:
        """See ``TeamUpdate.mixed``."""
        mixer = self.target_mixer if is_target else self.mixer
        total: Tensor = mixer(q, steps[GLOBAL_STATE])
        return total

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return list(self.mixer.parameters())

    def copy_to_target(self, net: Net) -> None:
        """See ``TargetUpdate.copy_to_target``."""
        super().copy_to_target(net)
        self.target_mixer.load_state_dict(self.mixer.state_dict())
