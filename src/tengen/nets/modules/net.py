"""What every network is to those who train it and to those who ask it.

Legend: B batch, T time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from tengen.nets.config import NetConfig
from tengen.tensors import Signature

__all__ = ["Net", "Tensors", "unflat", "zeroed"]

Tensors = dict[str, Tensor]
"""Tensors by the names of a signature."""


class Net(nn.Module):
    """A network over named tensors; a subclass has at least ``answer``.

    Attributes:
        config: Which network, and its size.
        wanted: What it was asked for.
        signature: What it reads, answers and keeps.
        compute_dtype: Arithmetic of a trunk that can compute in less than float32,
            which is faster on some devices; other networks compute in float32.
    """

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Begins a network.

        Raises:
            UsageError: The network does not read or answer that.
        """
        super().__init__()
        self.config = config
        self.wanted = wanted
        self.signature = config.signature(wanted)
        self.compute_dtype = torch.float32

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the outputs of one step, and the next state.

        Args:
            inputs: ``[B, ...]`` each, under the names of ``signature.inputs``.
            state: ``[B, ...]`` each, under those of ``signature.state``; zeros where an
                episode begins.

        Returns:
            ``[B, ...]`` each, under the names of ``signature.outputs``, and of
            ``signature.state``.
        """
        raise NotImplementedError

    def answer_some(
        self, inputs: Tensors, state: Tensors, outputs: Collection[str]
    ) -> tuple[Tensors, Tensors]:
        """Returns what ``answer`` does; outputs that are not named may be left out."""
        return self.answer(inputs, state)

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs of consecutive steps, and the state after the last.

        Here by one answer for all steps of a network without state, and by an answer a
        step of another.

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
        """Returns those states that past inputs tell, before each step.

        Args:
            inputs: ``[T, B, ...]`` each.
            state: ``[B, ...]`` each, before the first step.
            is_first: ``[T, B]`` bool: the state is zeroed before this step.

        Returns:
            ``[T, B, ...]`` each, of the names in ``signature.state`` that begin with
            ``FRAMES``.
        """
        return {}

    def grown(self, config: NetConfig) -> Net:
        """Returns a larger network that computes the same; this one stays as it is.

        Raises:
            UsageError: The network cannot grow, or not to ``config``.
        """
        self.config.check_grows(config)
        raise NotImplementedError

    def arithmetic(self, rows: Tensor) -> AbstractContextManager[None]:
        """Returns the context in which layers compute in ``compute_dtype``.

        Args:
            rows: What they compute with, which says on which device.
        """
        if self.compute_dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(rows.device.type, self.compute_dtype)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Makes the trunk compute in ``dtype`` for good, for inference alone."""
        self.compute_dtype = dtype


def unflat(rows: Tensor, steps: torch.Size) -> Tensor:
    """Returns ``[T * B, ...]`` as ``[T, B, ...]``; ``steps`` are T and B."""
    return rows.reshape(*steps, *rows.shape[1:])


def zeroed(state: Tensors, begun: Tensor) -> Tensors:
    """Returns the state ``[B, ...]`` with zeros in the rows where ``begun`` ``[B]``."""
    return {
        # Not by a product: what an old state holds may not be finite.
        name: tensor.masked_fill(begun.reshape(-1, *[1] * (tensor.ndim - 1)), 0)
        for name, tensor in state.items()
    }
