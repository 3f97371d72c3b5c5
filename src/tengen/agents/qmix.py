"""QMIX: a network that depends on the global state mixes the Q values of a team.

Source: Rashid et al. 2018, "QMIX: Monotonic Value Function Factorisation for Deep
Multi-Agent Reinforcement Learning" (arXiv:1803.11485), section 4.

The team's Q value increases with the Q value of each agent, but need not be their sum
as in ``vdn``. Only the learner has the mixing network and sees the global state.
``tengen.agents.team_agent`` has the settings, the rest of the update, and the
differences from the paper.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.agents.team_agent import TeamAgent, TeamUpdate
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.tensors import GLOBAL_STATE

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["Qmix", "QmixUpdate"]

_MIXER, _TARGET_MIXER = "mixer.", "target_mixer."


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
    """

    def __init__(
        self, agent: Qmix, net: Net, spec: envs.EnvSpec, store: ReplayConfig
    ) -> None:
        """Creates a mixing network with random weights, and the target networks.

        Args:
            agent: The agent's settings.
            net: The network that all agents share.
            spec: The environment's spec, with a global state.
            store: The config of the table.
        """
        from tengen.nets.modules.critics import Mixer

        super().__init__(agent, net, store)
        assert spec.global_state is not None  # ``refusal`` has checked it
        self.mixer = Mixer(spec.num_agents, spec.global_state.num_entries)
        self.target_mixer = copy.deepcopy(self.mixer).requires_grad_(False)

    def mixed(self, q: Tensor, steps: dict[str, Tensor]) -> Tensor:
        """See ``TeamUpdate.mixed``."""
        total: Tensor = self.mixer(q, steps[GLOBAL_STATE])
        return total

    def target_mixed(self, q: Tensor, steps: dict[str, Tensor]) -> Tensor:
        """See ``TeamUpdate.target_mixed``."""
        total: Tensor = self.target_mixer(q, steps[GLOBAL_STATE])
        return total

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return list(self.mixer.parameters())

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``."""
        super().place(device, dtype)
        self.mixer.to(device)
        self.target_mixer.to(device)

    def copy_to_target(self, net: Net) -> None:
        """See ``TargetUpdate.copy_to_target``."""
        super().copy_to_target(net)
        self.target_mixer.load_state_dict(self.mixer.state_dict())

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        mixers = {_MIXER: self.mixer, _TARGET_MIXER: self.target_mixer}
        own = {
            prefix + name: tensor
            for prefix, mixer in mixers.items()
            for name, tensor in mixer.state_dict().items()
        }
        return {**super().state(), **own}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        rest = dict(tensors)
        for prefix, mixer in ((_MIXER, self.mixer), (_TARGET_MIXER, self.target_mixer)):
            names = list(mixer.state_dict())
            mixer.load_state_dict({name: rest.pop(prefix + name) for name in names})
        super().load_state(rest)
