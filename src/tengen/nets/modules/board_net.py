"""The interface of board networks for search and training, and auxiliary heads.

Legend: B batch, C planes, H W board, A actions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tengen.nets.config import NUM_HORIZONS, NetConfig
from tengen.nets.modules.heads import NUM_VALUE_UNITS, PolicyLogits
from tengen.nets.modules.net import Net, Tensors
from tengen.tensors import BoardSpec, Signature

SCORE_SCALE = 20.0
"""Factor from the outputs of the mean-score and lead layers to points."""


class Auxiliary(NamedTuple):
    """The outputs of the auxiliary heads, from the view of the side to move."""

    reply: Tensor
    """Logits ``[B, A]`` float32 of the opponent's policy after the played move; the
    logits of cells beyond the board are unspecified."""
    horizons: Tensor
    """Logits ``[B, NUM_HORIZONS]`` float32 of the values some plies ahead."""
    ownership: Tensor | None
    """Logits ``[B, H, W]`` float32 of the side to move owning each cell at the end of
    the game; None in games without a score."""
    score: Tensor | None
    """Logits ``[B, 2S]`` float32 of the final score; entry i is i - S + 0.5 points.
    None in games without a score."""
    mean_score: Tensor | None
    """Expected final score in points, ``[B]`` float32; None as for ``score``."""
    lead: Tensor | None
    """Lead in points, ``[B]`` float32: what the side to move could give away to make
    the position even. None without a head for the lead."""


class AuxiliaryHeads(nn.Module):
    """Auxiliary heads: one layer per target, on the policy and value activations.

    In training they give the trunk more information than the game's result alone.

    Source: Wu 2019, "Accelerating Self-Play Learning in Go", sections 3.4 and 4.1 (the
    opponent's reply, ownership and score); KataGo (lightvector/KataGo) for values at
    several horizons and the lead.
    Differs from KataGo: the value at each horizon is one logit, not three; the score
    distribution comes from a linear layer with one logit per point; no head estimates
    its own error.
    """

    def __init__(
        self, board: BoardSpec, num_channels: int, asks_for_lead: bool
    ) -> None:
        """Creates the auxiliary heads with random weights.

        Args:
            board: The board, which defines the policy layout and the maximum score.
            num_channels: Number of channels in each of the policy and value heads.
            asks_for_lead: Whether to add a head for the lead, in games with a score.
        """
        super().__init__()
        self.reply = PolicyLogits(board, num_channels)
        self.horizons = nn.Linear(NUM_VALUE_UNITS, NUM_HORIZONS)
        self.has_score = board.max_score > 0
        if self.has_score:
            self.ownership = nn.Conv2d(num_channels, 1, 1)
            self.score = nn.Linear(NUM_VALUE_UNITS, 2 * board.max_score)
            self.mean_score = nn.Linear(NUM_VALUE_UNITS, 1)
        self.has_lead = self.has_score and asks_for_lead
        if self.has_lead:
            self.lead = nn.Linear(NUM_VALUE_UNITS, 1)

    def estimate_score(self, hidden: Tensor) -> Tensor:
        """Returns mean and standard deviation of the final score, ``[B, 2]`` float32.

        The result is in points, for the side to move. Both numbers are computed from
        the score distribution, so they are bounded and consistent.

        Args:
            hidden: ``[B, NUM_VALUE_UNITS]``, the second result of ``ValueHead.see``;
                the game must have a score.
        """
        return score_moments(self.score(hidden))

    def forward(
        self, policy: tuple[Tensor, Tensor], value: tuple[Tensor, Tensor]
    ) -> Auxiliary:
        """Returns the outputs of all auxiliary heads.

        Args:
            policy: The result of ``PolicyHead.see``.
            value: The result of ``ValueHead.see``.
        """
        cells, hidden = value
        scored = self.has_score
        return Auxiliary(
            reply=self.reply(*policy),
            horizons=self.horizons(hidden),
            ownership=self.ownership(cells).squeeze(1) if scored else None,
            score=self.score(hidden) if scored else None,
            mean_score=self._points(self.mean_score, hidden) if scored else None,
            lead=self._points(self.lead, hidden) if self.has_lead else None,
        )

    @staticmethod
    def _points(layer: nn.Linear, hidden: Tensor) -> Tensor:
        points: Tensor = layer(hidden).squeeze(1) * SCORE_SCALE
        return points


def score_moments(logits: Tensor) -> Tensor:
    """Returns the score's mean and standard deviation in points, ``[B, 2]`` float32.

    Args:
        logits: Logits ``[B, 2S]`` of the score; entry i is i - S + 0.5 points.
    """
    count = logits.shape[1]
    first = 0.5 - count // 2
    points = torch.arange(first, first + count, device=logits.device)
    share = logits.softmax(1)
    mean = (share * points).sum(1, keepdim=True)
    offset = points - mean
    # Subtract the mean first, to avoid cancellation if the distribution is narrow.
    stdev = (share * (offset * offset)).sum(1, keepdim=True).sqrt()
    return torch.cat([mean, stdev], dim=1)


class BoardNet(Net):
    """Base class of board networks; a subclass must define at least ``forward``.

    Attributes:
        board: The shapes of the game's positions and actions.
    """

    board: BoardSpec

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Initializes the base class, given the requested signature ``wanted``.

        Raises:
            UsageError: The task is not a board game, or ``wanted`` has outputs other
                than policy, value and score.
        """
        super().__init__(wanted, config)
        assert wanted.board is not None  # the config rejects other tasks
        self.board = wanted.board

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of the policy and of the outcome.

        Args:
            planes: ``[B, C, H, W]`` float32; plane 0 is the on-board mask.

        Returns:
            Policy logits ``[B, A]`` float32, and WDL logits ``[B, 3]`` float32 (win,
            draw and loss of the side to move).
        """
        raise NotImplementedError

    def learn(self, planes: Tensor) -> tuple[Tensor, Tensor, Auxiliary | None]:
        """Returns the outputs of ``forward`` and of the auxiliary heads, if any."""
        return *self(planes), None

    def estimate(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the outputs of ``forward`` and the score ``[B, 2]`` float32.

        The score has a mean and a standard deviation in points, for the side to move.
        Only for networks whose signature has the score.
        """
        raise NotImplementedError

    def expect(self, planes: Tensor) -> Tensors:
        """Returns the network's predictions of the final position, by name.

        Only for networks whose signature has the score. The predictions are float32 and
        for the side to move: ``ownership`` ``[B, H, W]`` in [-1, 1], 1 if a cell
        certainly belongs to the side to move; ``score`` as in ``estimate``; and, if the
        network has a head for the lead, ``lead`` ``[B]`` in points.
        """
        raise NotImplementedError

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns policy logits, value and, if available, score; see ``Net.answer``.

        The value is p(win) - p(loss) of the side to move, in [-1, 1].
        """
        return self.answer_some(inputs, state, self.signature.outputs)

    def answer_some(
        self, inputs: Tensors, state: Tensors, outputs: Collection[str]
    ) -> tuple[Tensors, Tensors]:
        """See ``answer``; computes the score only if it is in ``outputs``."""
        planes = inputs["planes"]
        answers: Tensors = {}
        if "score" in outputs:
            policy, outcome, answers["score"] = self.estimate(planes)
        else:
            policy, outcome = self(planes)
        share = outcome.softmax(1)
        value = share[:, 0] - share[:, 2]
        return {"policy": policy, "value": value, **answers}, {}


def embed(
    old: Tensor, new: Tensor, axes: tuple[Tensor | None, Tensor | None] = (None, None)
) -> None:
    """Copies ``old`` into ``new``; sets weights from new inputs to old outputs to 0.

    Args:
        old: A tensor of a network that grows.
        new: The tensor of the larger network; it is changed.
        axes: The new index of each old index on axes 0 and 1; None for the same.
    """
    rows = torch.arange(old.shape[0]) if axes[0] is None else axes[0]
    if old.dim() == 1:
        new[rows] = old
        return
    columns = torch.arange(old.shape[1]) if axes[1] is None else axes[1]
    new[rows] = 0.0
    new[rows[:, None], columns[None, :]] = old
