"""Vectors less their mean, in units of their deviation.

Legend: B batch, N numbers of an observation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["Standard"]

_MAX_ROWS = 1_000_000.0
_MOST = 10.0
_EPSILON = 1e-8


class _Units(NamedTuple):
    """What rows are measured by, ``[N]`` float32 each."""

    mean: Tensor
    deviation: Tensor


class _Kept(NamedTuple):
    """Units, and the statistics that they are of."""

    statistics: tuple[Tensor, ...]
    versions: tuple[int, ...]
    """How often each had been changed in place."""
    units: _Units

    def is_of(self, statistics: tuple[Tensor, ...]) -> bool:
        """Tells whether these are the same, and unchanged since."""
        return all(
            one is other and one._version == version
            for one, other, version in zip(
                statistics, self.statistics, self.versions, strict=True
            )
        )


class Standard(nn.Module):
    """Subtracts a running mean, divides by the running deviation, bounds to +-10.

    The statistics are of the rows that the network was trained on, each as often as it
    was, up to a million for each part of a batch (``LearnerConfig.num_shards``); then
    they stay. Before the first of them nothing is changed.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"
    (arXiv:2005.12729), section 3, of PPO's code for MuJoCo. Differs from it: the
    statistics are the learner's and not the actors', so that a network that is resumed,
    copied or published has them.
    """

    total: Tensor
    squares: Tensor
    num_rows: Tensor

    def __init__(self, num_inputs: int) -> None:
        """Begins without statistics: only the bound changes anything."""
        super().__init__()
        # Sums, so that the mean over several copies is one over all their rows; in
        # float64, as a deviation is a small difference of large ones.
        for name in ("total", "squares"):
            self.register_buffer(name, torch.zeros(num_inputs, dtype=torch.float64))
        self.register_buffer("num_rows", torch.zeros(1))
        self._kept: _Kept | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a copy begins with: everything but the units that are kept.

        A copied tensor counts its changes from 0, so that what was kept of an old count
        would come to match other statistics.
        """
        return {**self.__dict__, "_kept": None}

    def forward(self, rows: Tensor) -> Tensor:
        """Returns ``[B, N]`` float32; in training the statistics have the rows."""
        if self.training and len(rows):
            self._observe(rows)
        units = self._units()
        return ((rows - units.mean) / units.deviation).clamp(-_MOST, _MOST)

    @torch.no_grad()
    def follow(self, other: Standard) -> None:
        """Sees the first numbers as another one sees its own, and the rest as they are.

        Args:
            other: Of as many numbers as this one, or fewer.
        """
        num_same = len(other.total)
        self.num_rows.copy_(other.num_rows)
        self.total.zero_()
        # A mean of 0 and a deviation of 1.
        self.squares.copy_(other.num_rows.expand_as(self.squares))
        self.total[:num_same].copy_(other.total)
        self.squares[:num_same].copy_(other.squares)

    def _units(self) -> _Units:
        """Returns what rows are measured by, worked out once for each statistics.

        It is a dozen operations, which take longer than a small layer.
        """
        statistics = (self.total, self.squares, self.num_rows)
        # A graph has the operations, and tensors of inference fit no gradient.
        if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
            return self._derived()
        kept = self._kept
        if kept is None or not kept.is_of(statistics):
            versions = tuple(tensor._version for tensor in statistics)
            kept = self._kept = _Kept(statistics, versions, self._derived())
        return kept.units

    def _derived(self) -> _Units:
        # Of operations that an ONNX graph has rules for.
        num_rows = self.num_rows.double()
        count = num_rows.clamp(min=1.0)
        mean = self.total / count
        # Without rows it is 1.
        is_without = (num_rows - 1.0).clamp(max=0.0)
        variance = self.squares / count - mean * mean - is_without
        deviation = variance.clamp(min=_EPSILON).sqrt()
        return _Units(mean.float(), deviation.float())

    @torch.no_grad()
    def _observe(self, rows: Tensor) -> None:
        if self.num_rows >= _MAX_ROWS:
            return
        wide = rows.double()
        self.num_rows += len(rows)
        self.total += wide.sum(0)
        self.squares += wide.square().sum(0)
