"""The interface of every network, for training and for inference.

Legend: B batch, T time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from tengen.config import check
from tengen.nets.config import NetConfig
from tengen.tensors import Signature

__all__ = ["InferenceHead", "Net", "Tensors", "unflat", "zeroed"]

Tensors = dict[str, Tensor]
"""Tensors by the names of a signature."""


class Net(nn.Module):
    """A network over named tensors; a subclass must define at least ``answer``.

    Attributes:
        config: The kind of network, and its size.
        wanted: The signature that was wanted of it.
        signature: Its inputs, outputs and state.
        compute_dtype: Dtype of a trunk that can compute in lower precision than
            float32, which is faster on some devices; other networks use float32.
    """

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Begins a network.

        Raises:
            UsageError: The network cannot have these inputs or outputs.
        """
        super().__init__()
        self.config = config
        self.wanted = wanted
        self.signature = config.signature(wanted)
        self.compute_dtype = torch.float32

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the outputs of one step, and the next state.

        Args:
            inputs: ``[B, ...]`` each, by the names in ``signature.inputs``.
            state: ``[B, ...]`` each, by the names in ``signature.state``; zeros where
                an episode begins.

        Returns:
            ``[B, ...]`` each, by the names in ``signature.outputs``, and by those in
            ``signature.state``.
        """
        raise NotImplementedError

    def answer_some(
        self, inputs: Tensors, state: Tensors, outputs: Collection[str]
    ) -> tuple[Tensors, Tensors]:
        """Returns the result of ``answer``; outputs not named may be left out."""
        return self.answer(inputs, state)

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs of consecutive steps, and the state after the last.

        By default a network without state answers all steps at once, and a network with
        state answers step by step.

        Args:
            inputs: ``[T, B, ...]`` each.
            state: ``[B, ...]`` each, before the first step.
            is_first: ``[T, B]`` bool: the state is zeroed before this step.

        Returns:
            ``[T, B, ...]`` each, and ``[B, ...]`` each.
        """
        if not self.signature.state:
            rows = {name: tensor.flatten(0, 1) for name, tensor in inputs.items()}
            outputs, _ = self.answer(rows, {})
            return {name: unflat(x, is_first.shape) for name, x in outputs.items()}, {}
        steps = []
        for step, begun in enumerate(is_first):
            state = zeroed(state, begun)
            rows = {name: tensor[step] for name, tensor in inputs.items()}
            outputs, state = self.answer(rows, state)
            steps.append(outputs)
        return {name: torch.stack([x[name] for x in steps]) for name in steps[0]}, state

    def states_of_inputs(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> Tensors:
        """Returns the states before each step that are made of past inputs.

        Args:
            inputs: ``[T, B, ...]`` each.
            state: ``[B, ...]`` each, before the first step.
            is_first: ``[T, B]`` bool: the state is zeroed before this step.

        Returns:
            ``[T, B, ...]`` each, for the names in ``signature.state`` that begin with
            ``FRAMES``.
        """
        return {}

    def grown(self, config: NetConfig) -> Net:
        """Returns a larger network that computes the same; this one stays as it is.

        Raises:
            UsageError: The network cannot grow, or not into ``config``.
        """
        self.config.check_grows(config)
        raise NotImplementedError

    def arithmetic(self, rows: Tensor) -> AbstractContextManager[None]:
        """Returns the context in which layers compute in ``compute_dtype``.

        Args:
            rows: The layers' input, whose device counts.
        """
        if self.compute_dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(rows.device.type, self.compute_dtype)

    def fold_norms(self) -> None:
        """Folds norms into the convolutions before them, for inference alone.

        Once, before ``fix_dtype``. Does nothing by default.
        """

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Makes the trunk compute in ``dtype`` for good, for inference alone."""
        self.compute_dtype = dtype


def unflat(rows: Tensor, steps: torch.Size) -> Tensor:
    """Returns ``[T * B, ...]`` as ``[T, B, ...]``; ``steps`` are T and B."""
    return rows.reshape(*steps, *rows.shape[1:])


def zeroed(state: Tensors, begun: Tensor) -> Tensors:
    """Returns the state ``[B, ...]`` with zeros in the rows where ``begun`` is true."""
    return {
        # Not multiplied by 0, since an old state may have infinite numbers.
        name: tensor.masked_fill(begun.reshape(-1, *[1] * (tensor.ndim - 1)), 0)
        for name, tensor in state.items()
    }


class InferenceHead(nn.Module):
    """One step of a network, from tensors to tensors.

    Shares the network's parameters. Put it in evaluation mode before exporting.

    Attributes:
        net: The network.
        outputs: Names of its outputs, which come before the state.
    """

    def __init__(self, net: Net, outputs: Sequence[str] | None = None) -> None:
        """Wraps ``net`` without copying it.

        Args:
            net: The network.
            outputs: Names of the outputs, in this order; None for all outputs in the
                signature's order.

        Raises:
            UsageError: The network does not have one of the outputs.
        """
        super().__init__()
        self.net = net
        known = net.signature.outputs
        self.outputs = tuple(known if outputs is None else outputs)
        for name in self.outputs:
            check(
                name in known,
                "output",
                name,
                f"must be one of the network's, {', '.join(known)}; leave it out",
            )

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns the outputs, and then the next state in the signature's order.

        Args:
            *tensors: ``[B, ...]`` each: the signature's inputs, and then its state.
        """
        signature = self.net.signature
        names = [*signature.inputs, *signature.state]
        given = dict(zip(names, tensors, strict=True))
        answers, state = self.net.answer_some(
            {name: given[name] for name in signature.inputs},
            {name: given[name] for name in signature.state},
            self.outputs,
        )
        return (
            *(answers[name] for name in self.outputs),
            *(state[name] for name in signature.state),
        )
