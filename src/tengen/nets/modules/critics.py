"""The critics of SAC: networks of the actor's kind that are shown the action too."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.tensors import Signature, TensorSpec

__all__ = ["Critics"]

_ACTION = "critic_action"


class _Followed(NamedTuple):
    """A network whose statistics the critics take over."""

    net: Net
    modules: list[tuple[nn.Module, nn.Module]]
    """Modules with statistics: a critic's, and the network's of the same name."""


class _Frozen(NamedTuple):
    """Holds critics for a module that they are to be no part of.

    A module that is itself assigned to another becomes a part of it, and of its
    checkpoints.
    """

    critics: Critics


class Critics(nn.Module):
    """C networks that value actions.

    Of real numbers they are shown the action, scaled to [-1, 1]; of choices they value
    each. Legend: C critics, B batch, A choices, K numbers of an action.
    """

    def __init__(
        self,
        net: Net,
        num_critics: int,
        *,
        num_choices: int = 0,
        low: Sequence[float] = (),
        high: Sequence[float] = (),
    ) -> None:
        """Makes critics with random weights from torch's generator.

        Args:
            net: The actor's network.
            num_critics: C.
            num_choices: A; 0 of real numbers.
            low: Least of each of K numbers.
            high: Greatest of each.
        """
        super().__init__()
        self._is_discrete = num_choices > 0
        inputs, outputs = dict(net.wanted.inputs), {"q": TensorSpec()}
        if self._is_discrete:
            outputs = {"q": TensorSpec(shape=(num_choices,))}
        else:
            inputs[_ACTION] = TensorSpec(shape=(len(low),))
            least, most = torch.tensor(low), torch.tensor(high)
            # No buffers: a checkpoint need not have what the environment says.
            self._middle, half = (least + most) / 2, (most - least) / 2
            # A number whose bounds are the same is shown as 0, whatever was drawn.
            self._moves = half > 0
            self._half = torch.where(self._moves, half, 1.0)
        wanted = Signature(inputs=inputs, outputs=outputs)
        self.nets = nn.ModuleList(net.config.build(wanted) for _ in range(num_critics))
        self._followed: _Followed | None = None
        self._frozen: _Frozen | None = None

    def compute_in(self, dtype: torch.dtype) -> None:
        """Sets ``Net.compute_dtype`` of all."""
        for net in self.nets:
            assert isinstance(net, Net)
            net.compute_dtype = dtype
        self._frozen = None

    @torch.no_grad()
    def see_as(self, net: Net) -> None:
        """Takes over the statistics of what the actor's network has seen.

        Args:
            net: The actor's network. It is not shown the action, which a critic sees in
                units of the environment's bounds, after all that the actor sees.
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
        # Listed once: to look for them takes as long as all that is done with them.
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
        """Returns ``[C, B]`` of drawn actions, or ``[C, B, A]``.

        Args:
            inputs: ``[B, ...]`` each, as of the actor's network.
            state: ``[B, ...]`` each, the images before.
            action: ``[B, K]`` in [-1, 1]; None of choices.
        """
        if action is not None:
            inputs = {**inputs, _ACTION: action * self._moves.to(action)}
        answers = [_answer(net, inputs, state) for net in self.nets]
        return torch.stack(answers)

    def of_taken(self, inputs: Tensors, state: Tensors, action: Tensor) -> Tensor:
        """Returns ``[C, B]`` of the actions that were taken.

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
        """Returns what ``forward`` does; gradients reach the action alone."""
        if self._frozen is None:
            self._frozen = _Frozen(self._without_gradients())
        q: Tensor = self._frozen.critics(inputs, state, action)
        return q

    def _without_gradients(self) -> Critics:
        """Returns critics in the same memory, whose weights no gradient reaches.

        They are kept: to call these critics with other weights by
        ``torch.func.functional_call`` takes about as long as a layer.
        """
        # What the copy shares with these critics, and what it is not to have.
        memo: dict[int, Any] = {id(buffer): buffer for buffer in self.buffers()}
        memo |= {id(m): m for m in self.modules() if isinstance(m, Standard)}
        memo |= {id(kept): None for kept in (self._followed, self._frozen)}
        for weight in self.parameters():
            memo[id(weight)] = nn.Parameter(weight.detach(), requires_grad=False)
        return copy.deepcopy(self, memo)


def _answer(net: nn.Module, inputs: Tensors, state: Tensors) -> Tensor:
    assert isinstance(net, Net)
    return net.answer(inputs, state)[0]["q"]
