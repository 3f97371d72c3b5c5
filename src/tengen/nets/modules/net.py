"""The base class of all networks, for training and for inference.

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

Tensors = dict[str, Tensor]
"""Tensors by their names in a network's signature."""


class Net(nn.Module):
    """A network with named inputs and outputs; a subclass must define ``answer``.

    Attributes:
        config: The kind and size of the network.
        wanted: The requested signature.
        signature: The network's inputs, outputs and state.
        compute_dtype: Dtype of the trunk. Some networks support a lower precision than
            float32, which is faster on some devices; others ignore this attribute.
    """

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Initializes the base class.

        Raises:
            UsageError: The network does not support the signature ``wanted``.
        """
        super().__init__()
        self.config = config
        self.wanted = wanted
        self.signature = config.signature(wanted)
        self.compute_dtype = torch.float32

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the network's outputs for one step, and the next state.

        Args:
            inputs: Tensors ``[B, ...]`` by the names in ``signature.inputs``.
            state: Tensors ``[B, ...]`` by the names in ``signature.state``; zeros in
                rows that begin an episode.

        Returns:
            The outputs ``[B, ...]`` by the names in ``signature.outputs``, and the next
            state ``[B, ...]`` by the names in ``signature.state``.
        """
        raise NotImplementedError

    def answer_some(
        self, inputs: Tensors, state: Tensors, outputs: Collection[str]
    ) -> tuple[Tensors, Tensors]:
        """See ``answer``; may omit outputs that are not in ``outputs``."""
        return self.answer(inputs, state)

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs for consecutive steps, and the state after the last step.

        By default, a network without state evaluates all steps in one batch, and a
        network with state evaluates them one by one.

        Args:
            inputs: Tensors ``[T, B, ...]``, by name.
            state: Tensors ``[B, ...]``, the state before the first step, by name.
            is_first: ``[T, B]`` bool, whether the state is zeroed before the step.

        Returns:
            Outputs ``[T, B, ...]``, and the state ``[B, ...]``, by name.
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
        """Returns the states of past inputs, such as past images, before each step.

        Args:
            inputs: Tensors ``[T, B, ...]``, by name.
            state: Tensors ``[B, ...]``, the state before the first step, by name.
            is_first: ``[T, B]`` bool, whether the state is zeroed before the step.

        Returns:
            Tensors ``[T, B, ...]`` by the names in ``signature.state`` that begin with
            ``FRAMES``.
        """
        return {}

    def grown(self, config: NetConfig) -> Net:
        """Returns a larger network with the same outputs; does not change this network.

        Raises:
            UsageError: The network cannot grow into ``config``.
        """
        self.config.check_grows(config)
        raise NotImplementedError

    def arithmetic(self, rows: Tensor) -> AbstractContextManager[None]:
        """Returns a context in which layers compute in ``compute_dtype``.

        Args:
            rows: The input of the layers, which defines the device.
        """
        if self.compute_dtype == torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(rows.device.type, self.compute_dtype)

    def fold_norms(self) -> None:
        """Folds norms into the preceding convolutions, for inference only.

        Called once, before ``fix_dtype``. Does nothing by default.
        """

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Sets the trunk's dtype to ``dtype`` permanently, for inference only."""
        self.compute_dtype = dtype


def unflat(rows: Tensor, steps: torch.Size) -> Tensor:
    """Reshapes ``[T * B, ...]`` to ``[T, B, ...]``; ``steps`` is (T, B)."""
    return rows.reshape(*steps, *rows.shape[1:])


def zeroed(state: Tensors, begun: Tensor) -> Tensors:
    """Returns the state ``[B, ...]`` with zeros in the rows of the mask ``begun``."""
    return {
        # Use a mask, not a factor of 0, because an old state may contain infinity.
        name: tensor.masked_fill(begun.reshape(-1, *[1] * (tensor.ndim - 1)), 0)
        for name, tensor in state.items()
    }


class InferenceHead(nn.Module):
    """Wraps a network's ``answer`` as a module with positional tensors, for export.

    The module shares the network's parameters. Call ``eval`` before an export.

    Attributes:
        net: The wrapped network.
        outputs: Names of the outputs, which ``forward`` returns before the state.
    """

    def __init__(self, net: Net, outputs: Sequence[str] | None = None) -> None:
        """Wraps ``net`` without copying it.

        Args:
            net: The network to wrap.
            outputs: Names of the outputs to return, in order; None for all outputs in
                the signature's order.

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
        """Returns the outputs, followed by the next state in the signature's order.

        Args:
            *tensors: Tensors ``[B, ...]``: the signature's inputs, then its state.
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
