"""Functions that evaluate a network on all steps of a batch of items, time-major."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tengen.experience import STATE
from tengen.learners.group import Group

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

__all__ = [
    "Unrolled",
    "first_steps",
    "network_inputs",
    "time_major",
    "unroll",
    "unroll_of_all",
]


class Unrolled(NamedTuple):
    """A network's outputs for B items of T + 1 steps, and the items' columns."""

    outputs: dict[str, Tensor]
    """The network's outputs for all steps, ``[T + 1, B, ...]``."""
    columns: dict[str, Tensor]
    """The items' columns for all steps except the last, ``[T, B, ...]``."""
    is_live: Tensor
    """Mask ``[T, B]`` float32, 1 for transitions and 0 for reset steps."""


def time_major(columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Transposes columns ``[B, T, ...]`` to ``[T, B, ...]``; drops stored states."""
    return {
        name: column.transpose(0, 1)
        for name, column in columns.items()
        if column.dim() > 1 and not name.startswith(STATE)
    }


def network_inputs(
    net: Net, columns: dict[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns a network's inputs ``[T, B, ...]`` and its stored state ``[B, ...]``.

    Args:
        net: The network.
        columns: Columns of a batch ``[B, T, ...]``, and stored states ``[B, ...]``.
    """
    inputs = {name: columns[name].transpose(0, 1) for name in net.signature.inputs}
    state = {name: columns[STATE + name] for name in net.signature.state}
    return inputs, state


def first_steps(is_reset: Tensor) -> Tensor:
    """Returns a mask ``[T, B]`` of the steps at which an episode begins.

    The network's state must be reset before these steps. An item's first step is never
    marked, because its stored state is already reset if needed.

    Args:
        is_reset: ``[T, B]``, 1 for reset steps.
    """
    is_first = is_reset.bool().roll(1, 0)
    is_first[0] = False
    return is_first


def unroll(net: Net, columns: dict[str, Tensor]) -> Unrolled:
    """Returns a network's outputs for all steps of items, given their stored states.

    Args:
        net: The network.
        columns: The items' columns, ``[B, T + 1, ...]``.
    """
    steps = time_major(columns)
    inputs, state = network_inputs(net, columns)
    outputs, _ = net.unroll(inputs, state, first_steps(steps["is_reset"]))
    transitions = {name: column[:-1] for name, column in steps.items()}
    return Unrolled(outputs, transitions, 1.0 - transitions["is_reset"].float())


def unroll_of_all(net: Net, columns: dict[str, Tensor], group: Group) -> Unrolled:
    """Does ``unroll`` on this learner's items, with all learners' statistics.

    A network in training mode updates its observation statistics with its inputs, and
    its outputs depend on these statistics. With the items of all learners in the
    statistics, the outputs equal those of a single learner.

    Args:
        net: The network, in training mode.
        columns: The columns of this learner's items, ``[B, T + 1, ...]``.
        group: The group of learners that share the batch.
    """
    import torch

    from tengen.nets.modules.standard import forget_rows

    buffers = list(net.buffers())
    if group.size == 1 or not buffers:
        return unroll(net, columns)
    forget_rows(net)
    before = [buffer.clone() for buffer in buffers]
    unroll(net, columns)
    with torch.no_grad():
        seen = [
            (buffer - old).double().flatten().cpu()
            for buffer, old in zip(buffers, before, strict=True)
        ]
        small = torch.cat(seen)
        group.add(small)
        place = 0
        for buffer, old in zip(buffers, before, strict=True):
            more = small[place : place + buffer.numel()].view(buffer.shape)
            buffer.copy_(old + more.to(buffer.device))
            place += buffer.numel()
        net.eval()
        try:
            return unroll(net, columns)
        finally:
            net.train()
