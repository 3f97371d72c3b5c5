"""A network for each agent of an environment, in place of one that all agents share.

Legend: T time, B batch, n agents.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tengen.nets.memory import MemoryConfig
from tengen.nets.modules.exporting import is_exporting
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import counted, counting, has_statistics
from tengen.tensors import AGENT_ID, Signature, TensorSpec


class SeparateNet(Net):
    """n networks of one kind and size, without parameter sharing.

    The input ``AGENT_ID`` selects the network of a row. A row belongs to one agent at
    all steps. A row without an index, all zeros, has the network of the first agent.

    Attributes:
        nets: The networks, in the order of ``EnvSpec.agents``.
    """

    def __init__(self, wanted: Signature, config: MemoryConfig) -> None:
        """Creates networks with different random weights from torch's generator."""
        super().__init__(wanted, config)
        (num_agents,) = wanted.inputs[AGENT_ID].shape
        alone = dataclasses.replace(config, shares_parameters=True)
        self.nets = nn.ModuleList(alone.build(wanted) for _ in range(num_agents))

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the outputs and the next state; see ``Net.answer``."""

        def of_agent(net: Net, rows: Tensor | None) -> tuple[Tensors, Tensors]:
            return net.answer(_some(inputs, rows, 0), _some(state, rows, 0))

        return self._joined(of_agent, inputs[AGENT_ID], 0)

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs and the state after the last step; see ``Net.unroll``."""
        steps = {**inputs, "is_first": is_first}

        def of_agent(net: Net, rows: Tensor | None) -> tuple[Tensors, Tensors]:
            some = _some(steps, rows, 1)
            begins = some.pop("is_first")
            return net.unroll(some, _some(state, rows, 0), begins)

        return self._joined(of_agent, inputs[AGENT_ID][0], 1)

    def states_of_inputs(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> Tensors:
        """See ``Net.states_of_inputs``; the states are the same for all networks."""
        return self._all()[0].states_of_inputs(inputs, state, is_first)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """See ``Net.fix_dtype``."""
        super().fix_dtype(dtype)
        for net in self._all():
            net.fix_dtype(dtype)

    def _all(self) -> list[Net]:
        nets: list[Net] = list(self.nets)  # type: ignore[arg-type]
        for net in nets:
            net.compute_dtype = self.compute_dtype
        return nets

    def _joined(
        self,
        of_agent: Callable[[Net, Tensor | None], tuple[Tensors, Tensors]],
        ids: Tensor,
        axis: int,
    ) -> tuple[Tensors, Tensors]:
        """Returns outputs and state of all rows, each of its agent's network.

        Args:
            of_agent: Evaluates a network on the rows with some indices, or on all.
            ids: The one-hot indices of the rows' agents, ``[B, n]``.
            axis: The axis of the rows in outputs.
        """
        nets = self._all()
        if is_exporting() and not (self.training and has_statistics(self)):
            # The number of an agent's rows varies, and a traced program has fixed
            # shapes. So each network evaluates all rows.
            outputs, state = of_agent(nets[0], None)
            for number, net in enumerate(nets[1:], 1):
                is_own = ids.select(1, number).bool()
                others, other_state = of_agent(net, None)
                outputs = _chosen(is_own, others, outputs, self.signature.outputs)
                state = _chosen(is_own, other_state, state, self.signature.state)
            return outputs, state
        agents = ids.to(torch.uint8).argmax(-1)
        order = agents.argsort(stable=True)
        counts = agents.bincount(minlength=len(nets))
        parts = torch.split(order, counts.tolist())
        mask = counted(self)
        if mask is not None:
            mask = mask.view(len(mask) // max(1, len(ids)), len(ids))
        found = []
        for net, rows in zip(nets, parts, strict=True):
            own = None if mask is None else mask[:, rows]
            with counting(net, own):
                found.append(of_agent(net, rows))
        places = order.argsort()
        return (
            _in_order([outputs for outputs, _ in found], places, axis),
            _in_order([state for _, state in found], places, 0),
        )


def _some(tensors: Tensors, rows: Tensor | None, axis: int) -> Tensors:
    """Returns some rows of tensors, whose axis of rows is ``axis``; None: all rows."""
    if rows is None:
        return dict(tensors)
    return {name: x.index_select(axis, rows) for name, x in tensors.items()}


def _chosen(
    is_own: Tensor, own: Tensors, others: Tensors, specs: dict[str, TensorSpec]
) -> Tensors:
    """Returns ``own`` in the rows of a mask ``[B]``, and ``others`` elsewhere."""
    chosen = {}
    for name, x in others.items():
        mask = is_own
        for _ in specs[name].shape:
            mask = mask.unsqueeze(-1)
        chosen[name] = torch.where(mask, own[name], x)
    return chosen


def _in_order(parts: list[Tensors], places: Tensor, axis: int) -> Tensors:
    """Joins the rows of all agents, and puts them into the order of the batch."""
    return {
        name: torch.cat([one[name] for one in parts], axis).index_select(axis, places)
        for name in parts[0]
    }


def build(wanted: Signature, config: MemoryConfig) -> SeparateNet:
    """Returns new networks with random weights; see ``NetConfig.build``."""
    return SeparateNet(wanted, config)
