"""The critics of SAC: networks of the actor's kind, with the action as an input."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tengen.envs import ActionSpec
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.tensors import Signature, TensorSpec

__all__ = ["Critics"]

_ACTION = "critic_action"


class _Followed(NamedTuple):
    """A network whose statistics of observations the critics copy."""

    net: Net
    modules: list[tuple[nn.Module, nn.Module]]
    """Pairs of modules with statistics: a critic's and the network's of that name."""


class _Frozen(NamedTuple):
    """Holds critics without making them a part of a module.

    A module assigned directly to another module would become a part of it, and of its
    checkpoints.
    """

    critics: Critics


class Critics(nn.Module):
    """C networks that value actions.

    A real action is an input of the critics, scaled to [-1, 1]. For discrete actions
    the critics answer a value for each. Legend: C critics, B batch, A discrete actions,
    K numbers of an action.
    """

    def __init__(
        self,
        net: Net,
        num_critics: int,
        actions: ActionSpec,
    ) -> None:
        """Makes critics with random weights from torch's generator.

        Args:
            net: The actor's network.
            num_critics: Number C of critics.
            actions: One choice of A, or K real numbers with bounds.
        """
        super().__init__()
        self._is_discrete = actions.is_discrete
        inputs, outputs = dict(net.wanted.inputs), {"q": TensorSpec()}
        if self._is_discrete:
            outputs = {"q": TensorSpec(shape=actions.num_choices)}
        else:
            inputs[_ACTION] = TensorSpec(shape=actions.shape)
            # No buffers: the environment gives the bounds, so no checkpoint needs them.
            self._middle, self._half = map(torch.tensor, actions.scale)
            # A number with equal bounds is always shown to the critics as 0.
            self._moves = torch.tensor(actions.low) < torch.tensor(actions.high)
        wanted = Signature(inputs=inputs, outputs=outputs)
        self.nets = nn.ModuleList(net.config.build(wanted) for _ in range(num_critics))
        self._followed: _Followed | None = None
        self._frozen: _Frozen | None = None

    def compute_in(self, dtype: torch.dtype) -> None:
        """Sets ``Net.compute_dtype`` of all critics."""
        for net in self.nets:
            assert isinstance(net, Net)
            net.compute_dtype = dtype
        self._frozen = None

    @torch.no_grad()
    def see_as(self, net: Net) -> None:
        """Copies the statistics of observations from the actor's network.

        Args:
            net: The actor's network. Its inputs lack the action, which is a critic's
                last input and is scaled by the environment's bounds instead.
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
        # Listed once: finding them takes as long as copying the statistics.
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
        """Returns the values of drawn actions ``[C, B]``, or of all, ``[C, B, A]``.

        Args:
            inputs: ``[B, ...]`` each, the actor's inputs.
            state: ``[B, ...]`` each, the past images.
            action: ``[B, K]`` in [-1, 1]; None for discrete actions.
        """
        if action is not None:
            inputs = {**inputs, _ACTION: action * self._moves.to(action)}
        answers = [_answer(net, inputs, state) for net in self.nets]
        return torch.stack(answers)

    def of_taken(self, inputs: Tensors, state: Tensors, action: Tensor) -> Tensor:
        """Returns the values ``[C, B]`` of the actions that were taken.

        Args:
            inputs: As ``forward``.
            state: As ``forward``.
            action: ``[B, K]`` between the environment's bounds, or ``[B]`` int64.
        """
        if self._is_discrete:
            q = self.forward(inputs, state, None)
            chosen = action.expand(len(q), -1)[..., None]
            return q.gather(-1, chosen).squeeze(-1)
        scaled = (action - self._middle.to(action)) / self._half.to(action)
        return self.forward(inputs, state, scaled)

    def frozen(self, inputs: Tensors, state: Tensors, action: Tensor | None) -> Tensor:
        """Does ``forward``, with gradients for the action but not for the weights."""
        if self._frozen is None:
            self._frozen = _Frozen(self._without_gradients())
        q: Tensor = self._frozen.critics(inputs, state, action)
        return q

    def _without_gradients(self) -> Critics:
        """Returns critics that share these weights' memory but need no gradient.

        They are kept, because ``torch.func.functional_call`` on these critics would
        take about as long as a layer at each call.
        """
        # What the copy shares with these critics, and, as None, what it must not have.
        memo: dict[int, Any] = {id(buffer): buffer for buffer in self.buffers()}
        memo |= {id(m): m for m in self.modules() if isinstance(m, Standard)}
        memo |= {id(kept): None for kept in (self._followed, self._frozen)}
        for weight in self.parameters():
            memo[id(weight)] = nn.Parameter(weight.detach(), requires_grad=False)
        return copy.deepcopy(self, memo)


def _answer(net: nn.Module, inputs: Tensors, state: Tensors) -> Tensor:
    assert isinstance(net, Net)
    return net.answer(inputs, state)[0]["q"]
