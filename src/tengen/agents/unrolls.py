"""From a batch of items to time-major tensors and a network's answers to them."""

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
    """A network's answers to B items of T + 1 steps, time first."""

    outputs: dict[str, Tensor]
    """``[T + 1, B, ...]`` each, of every step."""
    columns: dict[str, Tensor]
    """``[T, B, ...]`` each, of the transitions: all steps but the last."""
    is_live: Tensor
    """``[T, B]`` float32, 1 where a step is a transition and 0 where it resets."""


def time_major(columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns columns ``[T, B, ...]`` of columns ``[B, T, ...]``, states left out."""
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
        columns: ``[B, T, ...]`` each, and the states ``[B, ...]``.
    """
    inputs = {name: columns[name].transpose(0, 1) for name in net.signature.inputs}
    state = {name: columns[STATE + name] for name in net.signature.state}
    return inputs, state


def first_steps(is_reset: Tensor) -> Tensor:
    """Returns ``[T, B]`` bool, where an episode begins and memory is to be empty.

    At an item's first step the stored state says so already.

    Args:
        is_reset: ``[T, B]``, steps that lead to the next episode's first.
    """
    is_first = is_reset.bool().roll(1, 0)
    is_first[0] = False
    return is_first


def unroll(net: Net, columns: dict[str, Tensor]) -> Unrolled:
    """Runs a network over whole items from their stored states.

    Args:
        net: The network.
        columns: ``[B, T + 1, ...]`` each.
    """
    steps = time_major(columns)
    inputs, state = network_inputs(net, columns)
    outputs, _ = net.unroll(inputs, state, first_steps(steps["is_reset"]))
    transitions = {name: column[:-1] for name, column in steps.items()}
    return Unrolled(outputs, transitions, 1.0 - transitions["is_reset"].float())


def unroll_of_all(net: Net, columns: dict[str, Tensor], group: Group) -> Unrolled:
    """Does ``unroll`` as one learner would that had the items of all, without gradient.

    A network in training takes the items that it sees into its statistics of what is
    seen, by which it answers. Those of the other learners are to be in them too.

    Args:
        net: The network, in training mode.
        columns: ``[B, T + 1, ...]`` each, this learner's items.
        group: Learners with other items.
    """
    import torch

    buffers = list(net.buffers())
    if group.size == 1 or not buffers:
        return unroll(net, columns)
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
