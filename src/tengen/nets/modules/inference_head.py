"""A network as inference runs it, with tensors in the order of its signature."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from tengen.config import check
from tengen.nets.modules.net import Net

__all__ = ["InferenceHead"]


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
