"""Critics of learners: networks of the same kind and size as the actor's."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tengen.envs import ActionSpec
from tengen.nets.memory import MemoryConfig
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.tensors import Signature, TensorSpec

_ACTION = "critic_action"
# Hidden units of the mixing network, and of the networks that compute its weights.
_MIXING_UNITS, _WEIGHT_UNITS = 32, 64


class _Followed(NamedTuple):
    """A network from which the critics copy their observation statistics."""

    net: Net
    modules: list[tuple[nn.Module, nn.Module]]
    """Pairs of modules with statistics: a critic's module and the network's module."""


class _Frozen(NamedTuple):
    """Wraps critics, so that ``Critics`` can hold them without registering them.

    torch would save a module that is an attribute of another module in its checkpoints.
    """

    critics: Critics


class Critics(nn.Module):
    """C critics, networks that estimate Q values of actions.

    A continuous action is an input of the critics, scaled to [-1, 1]. For discrete
    actions, the critics output one value per action. Legend: C critics, B batch, A
    discrete actions, K dimensions of a continuous action.
    """

    def __init__(
        self,
        net: Net,
        num_critics: int,
        actions: ActionSpec,
    ) -> None:
        """Creates critics with random weights from torch's random generator.

        Args:
            net: The actor's network.
            num_critics: Number C of critics.
            actions: The action space: A discrete actions, or K numbers with bounds.
        """
        super().__init__()
        self._is_discrete = actions.is_discrete
        inputs, outputs = dict(net.wanted.inputs), {"q": TensorSpec()}
        if self._is_discrete:
            outputs = {"q": TensorSpec(shape=actions.num_choices)}
        else:
            inputs[_ACTION] = TensorSpec(shape=actions.shape)
            # Not buffers, because buffers would add the action bounds to checkpoints.
            self._middle, self._half = map(torch.tensor, actions.scale)
            # False for dimensions with equal bounds, for which the critics' input is 0.
            self._moves = torch.tensor(actions.low) < torch.tensor(actions.high)
        wanted = Signature(inputs=inputs, outputs=outputs)
        self.nets = nn.ModuleList(net.config.build(wanted) for _ in range(num_critics))
        self._followed: _Followed | None = None
        self._frozen: _Frozen | None = None

    def compute_in(self, dtype: torch.dtype) -> None:
        """Sets ``Net.compute_dtype`` of all critics to ``dtype``."""
        for net in self.nets:
            assert isinstance(net, Net)
            net.compute_dtype = dtype
        self._frozen = None

    @torch.no_grad()
    def see_as(self, net: Net) -> None:
        """Copies the observation statistics from the actor's network ``net``.

        Args:
            net: The actor's network. Its statistics do not include the action, a
                critic's last input, which is scaled with the environment's bounds.
        """
        if self._followed is None or self._followed.net is not net:
            self._followed = self._pairs(net)
        for own, other in self._followed.modules:
            if isinstance(other, Standard):
                assert isinstance(own, Standard)
                own.follow(other)
                continue
            for name, statistic in other.named_buffers(recurse=False):
                own.get_buffer(name).copy_(statistic)

    def _pairs(self, net: Net) -> _Followed:
        # The caller caches the pairs: listing them takes as long as copying statistics.
        have_statistics = [
            (name, module)
            for name, module in net.named_modules()
            if any(True for _ in module.buffers(recurse=False))
        ]
        pairs = [
            (critic.get_submodule(name), module)
            for critic in self.nets
            for name, module in have_statistics
        ]
        return _Followed(net, pairs)

    def forward(self, inputs: Tensors, state: Tensors, action: Tensor | None) -> Tensor:
        """Returns Q values: ``[C, B]`` of ``action``, or ``[C, B, A]`` if discrete.

        Args:
            inputs: The actor's inputs ``[B, ...]``, by name.
            state: The past images ``[B, ...]``, by name.
            action: Continuous actions ``[B, K]`` in [-1, 1]; None for discrete actions.
        """
        if action is not None:
            inputs = {**inputs, _ACTION: action * self._moves.to(action)}
        answers = [_answer(net, inputs, state) for net in self.nets]
        return torch.stack(answers)

    def of_taken(self, inputs: Tensors, state: Tensors, action: Tensor) -> Tensor:
        """Returns the Q values ``[C, B]`` of actions taken in the environment.

        Args:
            inputs: See ``forward``.
            state: See ``forward``.
            action: ``[B, K]`` in the environment's units, or ``[B]`` int64.
        """
        if self._is_discrete:
            q = self.forward(inputs, state, None)
            chosen = action.expand(len(q), -1)[..., None]
            return q.gather(-1, chosen).squeeze(-1)
        scaled = (action - self._middle.to(action)) / self._half.to(action)
        return self.forward(inputs, state, scaled)

    def frozen(self, inputs: Tensors, state: Tensors, action: Tensor | None) -> Tensor:
        """See ``forward``; only the action gets gradients, not the weights."""
        if self._frozen is None:
            self._frozen = _Frozen(self._without_gradients())
        q: Tensor = self._frozen.critics(inputs, state, action)
        return q

    def _without_gradients(self) -> Critics:
        """Returns a copy of the critics with shared weights that need no gradients.

        ``torch.func.functional_call`` would need no copy, but its overhead in each call
        is as long as a layer takes.
        """
        # Objects that the copy shares with these critics; None for objects to omit.
        memo: dict[int, Any] = {id(buffer): buffer for buffer in self.buffers()}
        memo |= {id(m): m for m in self.modules() if isinstance(m, Standard)}
        memo |= {id(kept): None for kept in (self._followed, self._frozen)}
        for weight in self.parameters():
            memo[id(weight)] = nn.Parameter(weight.detach(), requires_grad=False)
        return copy.deepcopy(self, memo)


def _answer(net: nn.Module, inputs: Tensors, state: Tensors) -> Tensor:
    assert isinstance(net, Net)
    return net.answer(inputs, state)[0]["q"]


def make_value_critic(net: Net, inputs: Mapping[str, TensorSpec]) -> Net:
    """Returns a critic with random weights and the output ``value``, without memory.

    Args:
        net: The actor's network.
        inputs: Inputs of the critic in addition to those of ``net``.
    """
    config = net.config
    if isinstance(config, MemoryConfig):
        config = dataclasses.replace(config, lstm_units=0, num_frames=1)
    outputs = {"value": TensorSpec()}
    wanted = Signature(inputs={**net.wanted.inputs, **inputs}, outputs=outputs)
    critic: Net = config.build(wanted)
    return critic


class Mixer(nn.Module):
    """QMIX's mixing network: a team's Q value from the Q values of its n agents.

    It increases with the Q value of each agent. The global state determines its weights
    and its biases.

    Source: Rashid et al. 2018, "QMIX: Monotonic Value Function Factorisation for Deep
    Multi-Agent Reinforcement Learning" (arXiv:1803.11485), section 4.1; the sizes and
    the two layers that compute the weights are PyMARL's.
    """

    def __init__(self, num_agents: int, num_state: int) -> None:
        """Creates a mixer with random weights from torch's random generator.

        Args:
            num_agents: Number n of agents.
            num_state: Number S of entries of the global state.
        """
        super().__init__()
        self._shape = (num_agents, _MIXING_UNITS)

        def layers(num_middle: int, num_outputs: int) -> nn.Sequential:
            last = nn.Linear(num_middle, num_outputs)
            return nn.Sequential(nn.Linear(num_state, num_middle), nn.ReLU(), last)

        self.first_weight = layers(_WEIGHT_UNITS, num_agents * _MIXING_UNITS)
        self.first_bias = nn.Linear(num_state, _MIXING_UNITS)
        self.last_weight = layers(_WEIGHT_UNITS, _MIXING_UNITS)
        self.last_bias = layers(_MIXING_UNITS, 1)

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        """Returns the Q values of the team ``[...]``.

        Args:
            q: ``[..., n]`` float32, the Q values of the agents.
            state: ``[..., S]`` float32, the global state.
        """
        weight = self.first_weight(state).abs().unflatten(-1, self._shape)
        mixed = (q.unsqueeze(-2) @ weight).squeeze(-2) + self.first_bias(state)
        hidden = nn.functional.elu(mixed) * self.last_weight(state).abs()
        total: Tensor = hidden.sum(-1) + self.last_bias(state).squeeze(-1)
        return total
