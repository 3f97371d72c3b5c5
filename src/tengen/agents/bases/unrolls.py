"""Functions that evaluate a network on all steps of a batch of items, time-major."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tengen.experience import STATE
from tengen.learners.group import Group
from tengen.tensors import (
    ACTION_MASK,
    AGENT_ID,
    CHOICE_OUTPUTS,
    GLOBAL_STATE,
    ILLEGAL,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from tengen.nets import Net
    from tengen.nets.modules.standard import Standard


STATE_STANDARD = "state_standard."
"""Prefix of the names of a global state's statistics in ``Update.state``."""
LATER_STANDARD = tuple(STATE_STANDARD + n for n in ("total", "squares", "num_rows"))
"""Names of these statistics, which checkpoints of earlier versions lack."""


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

    The inputs include the action mask, if the columns have one. ``answer_legally`` and
    ``unroll_legally`` use it.

    Args:
        net: The network.
        columns: Columns of a batch ``[B, T, ...]``, and stored states ``[B, ...]``.
    """
    names = [*net.signature.inputs, *({ACTION_MASK} & columns.keys())]
    inputs = {name: columns[name].transpose(0, 1) for name in names}
    state = {name: columns[STATE + name] for name in net.signature.state}
    return inputs, state


def random_weights(
    group: Group, num_rows: int, share: float, device: torch.device
) -> Tensor:
    """Returns ``[num_rows]`` weights: 1 / share with probability ``share``, else 0.

    A loss with these weights has the same expected gradient for every share.

    Args:
        group: The group of learners that share the batch.
        num_rows: Number of rows of the batch in this learner.
        share: The probability, above 0.
        device: The device of the result.
    """
    import torch

    # Sample on the CPU, because checkpoints save the CPU generator's state.
    place = group.place(num_rows)
    chosen = torch.rand(place.total)[place.first :][:num_rows] < share
    return (chosen / share).to(device)


def answer_legally(
    net: Net, inputs: dict[str, Tensor], state: dict[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Does ``Net.answer``, and replaces outputs for illegal choices by ``ILLEGAL``.

    Args:
        net: The network.
        inputs: The network's inputs ``[B, ...]``, and optionally ``ACTION_MASK``.
        state: The network's state ``[B, ...]``.
    """
    mask = inputs.get(ACTION_MASK)
    outputs, state = net.answer(_without_mask(inputs), state)
    return _masked(outputs, mask), state


def unroll_legally(
    net: Net, inputs: dict[str, Tensor], state: dict[str, Tensor], is_first: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Does ``Net.unroll``, and replaces outputs for illegal choices by ``ILLEGAL``.

    Args:
        net: The network.
        inputs: The network's inputs ``[T, B, ...]``, and optionally ``ACTION_MASK``.
        state: The network's state ``[B, ...]`` before the first step.
        is_first: See ``Net.unroll``.
    """
    mask = inputs.get(ACTION_MASK)
    outputs, state = net.unroll(_without_mask(inputs), state, is_first)
    return _masked(outputs, mask), state


def _without_mask(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in inputs.items() if name != ACTION_MASK}


def _masked(outputs: dict[str, Tensor], mask: Tensor | None) -> dict[str, Tensor]:
    if mask is None:
        return outputs
    is_illegal = mask == 0
    masked = dict(outputs)
    for name in CHOICE_OUTPUTS & outputs.keys():
        output = outputs[name]
        # ``QUANTILES`` have an axis before the choices.
        where = is_illegal.unsqueeze(-2) if output.dim() > mask.dim() else is_illegal
        masked[name] = output.masked_fill(where, ILLEGAL)
    return masked


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


def counted_rows(net: nn.Module, columns: dict[str, Tensor]) -> Tensor | None:
    """Returns a mask ``[T, B]`` of the observations to count in statistics.

    The zeros of an agent that is not in the episode do not count; the observation after
    its last action does. None if there is a single agent, or ``net`` does not train.

    Args:
        net: The network with the statistics.
        columns: The items' columns, ``[B, T, ...]``.
    """
    if AGENT_ID not in columns or not net.training:
        return None
    is_live = columns["is_reset"].transpose(0, 1) == 0
    is_counted = is_live.clone()
    is_counted[1:] |= is_live[:-1]
    # The last step of an unroll never has the mark of a reset step, even of an absent
    # agent. It counts only after a transition; other items may count it again as first.
    is_counted[-1] = is_live[-2]
    return is_counted


def standardized_state(
    standard: Standard, columns: dict[str, Tensor], rows: Tensor, group: Group
) -> dict[str, Tensor]:
    """Returns the columns with a standardized global state.

    Args:
        standard: The statistics of the global state.
        columns: The items' columns, with ``GLOBAL_STATE`` ``[B, T, K]``.
        rows: ``[R, K]``, the states of this learner that the statistics count first.
        group: The group of learners that share the batch.
    """
    import torch

    from tengen.nets.modules.standard import uncounted

    rows = group.gather_rows(rows)
    with torch.no_grad(), uncounted(standard):
        if len(rows) > 0:
            standard.observe(rows)
        return {**columns, GLOBAL_STATE: standard(columns[GLOBAL_STATE])}


def unroll(net: Net, columns: dict[str, Tensor]) -> Unrolled:
    """Returns a network's outputs for all steps of items, given their stored states.

    Args:
        net: The network.
        columns: The items' columns, ``[B, T + 1, ...]``.
    """
    from tengen.nets.modules.standard import counting

    steps = time_major(columns)
    inputs, state = network_inputs(net, columns)
    is_first = first_steps(steps["is_reset"])
    with counting(net, counted_rows(net, columns)):
        outputs, _ = unroll_legally(net, inputs, state, is_first)
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


def transitions(
    net: Net, columns: dict[str, Tensor], group: Group
) -> dict[str, Tensor]:
    """Splits unrolls into single transitions, tensors ``[rows, 1, ...]``.

    Reset steps are left out. The past images before each transition are returned as
    states ``[rows, ...]``.

    Args:
        net: The network, without other memory.
        columns: Columns of the unrolls' transitions ``[B, T, ...]``.
        group: The group of learners that share the batch.
    """
    is_live = columns["is_reset"].flatten() == 0
    # If all rows of all learners are reset steps, use them, because an optimizer step
    # needs rows. Reset steps have no loss.
    is_live |= not group.gather([float(is_live.any())]).any()
    inputs, state = network_inputs(net, columns)
    is_first = first_steps(columns["is_reset"].transpose(0, 1))
    states = net.states_of_inputs(inputs, state, is_first)
    return {
        **{
            name: column.flatten(0, 1)[is_live].unsqueeze(1)
            for name, column in columns.items()
            if not name.startswith(STATE)
        },
        **{
            STATE + name: column.transpose(0, 1).flatten(0, 1)[is_live]
            for name, column in states.items()
        },
    }


def learned_outputs(
    net: Net, columns: dict[str, Tensor], burn_in: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns outputs and inputs ``[T - burn_in, B, ...]`` of sequences.

    Args:
        net: The network.
        columns: The columns of the sequences, ``[B, T, ...]``, and the states before
            their first steps, ``[B, ...]``.
        burn_in: Number of first steps, which only update the recurrent state, without
            gradients.
    """
    import torch

    from tengen.nets.modules.standard import counting, uncounted

    inputs, state = network_inputs(net, columns)
    is_first = first_steps(columns["is_reset"].transpose(0, 1))
    is_counted = counted_rows(net, columns)
    if burn_in > 0:
        with torch.no_grad(), uncounted(net):
            before = {name: column[:burn_in] for name, column in inputs.items()}
            _, state = unroll_legally(net, before, state, is_first[:burn_in])
    learned = {name: column[burn_in:] for name, column in inputs.items()}
    if is_counted is not None:
        is_counted = is_counted[burn_in:]
    with counting(net, is_counted):
        outputs, _ = unroll_legally(net, learned, state, is_first[burn_in:])
    return outputs, learned
