"""The interface of every network for boards, to search and to the loss of self-play.

Legend: B batch, C planes, H W board, A actions.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

from tengen.nets.config import NetConfig
from tengen.nets.modules.auxiliary import Auxiliary
from tengen.nets.modules.net import Net, Tensors
from tengen.tensors import BoardSpec, Signature

__all__ = ["BoardNet"]


class BoardNet(Net):
    """Base of networks for boards; a subclass must define at least ``forward``.

    Attributes:
        board: The shapes of positions and actions.
    """

    board: BoardSpec

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Begins a network.

        Raises:
            UsageError: The task is no board game, or other outputs than policy and
                value are wanted.
        """
        super().__init__(wanted, config)
        assert wanted.board is not None  # the config refuses the rest
        self.board = wanted.board

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of the policy and of the outcome.

        Args:
            planes: ``[B, C, H, W]`` float32, plane 0 the on-board mask.

        Returns:
            ``[B, A]`` float32 policy logits, and ``[B, 3]`` float32 logits of win,
            draw and loss for the side to move.
        """
        raise NotImplementedError

    def learn(self, planes: Tensor) -> tuple[Tensor, Tensor, Auxiliary | None]:
        """Returns the answers of ``forward`` and those of the auxiliary heads."""
        return *self(planes), None

    def estimate(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the answers of ``forward`` and the score ``[B, 2]`` float32.

        The score is its mean and standard deviation in points, for the side to move.
        Only for networks whose signature has the score.
        """
        raise NotImplementedError

    def expect(self, planes: Tensor) -> Tensors:
        """Returns how the network expects games to end, for the side to move.

        Only for networks whose signature has the score. The result has ``ownership``
        ``[B, H, W]`` in [-1, 1], 1 where a cell will surely belong to the side to move;
        ``score`` as in ``estimate``; and, where there is a head for it, ``lead``
        ``[B]`` in points. All are float32.
        """
        raise NotImplementedError

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns policy logits, the value and perhaps the score; see ``Net.answer``.

        The value is p(win) - p(loss) of the side to move, in [-1, 1].
        """
        return self.answer_some(inputs, state, self.signature.outputs)

    def answer_some(
        self, inputs: Tensors, state: Tensors, outputs: Collection[str]
    ) -> tuple[Tensors, Tensors]:
        """Returns the outputs of ``answer``; the score only where it is named."""
        planes = inputs["planes"]
        answers: Tensors = {}
        if "score" in outputs:
            policy, outcome, answers["score"] = self.estimate(planes)
        else:
            policy, outcome = self(planes)
        share = outcome.softmax(1)
        value = share[:, 0] - share[:, 2]
        return {"policy": policy, "value": value, **answers}, {}
