"""Standardization of vectors by their running mean and standard deviation.

Legend: B batch, N numbers of an observation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tengen.nets.modules.exporting import is_exporting

__all__ = ["WINDOW_ROWS", "RunningSums", "Standard", "forget_rows", "uncounted"]

WINDOW_ROWS = 1_000_000.0
"""Rows that statistics are over; each row's weight then falls by e in as many more."""


class RunningSums(nn.Module):
    """Base of modules with sums over rows, kept as buffers.

    Sums, so that averaging several copies gives statistics over all their rows. In
    training mode a module counts the rows that it sees, except in ``uncounted``.

    Attributes:
        num_rows: float32, the weight of all rows: at most ``WINDOW_ROWS`` and those of
            the last batch.
    """

    num_rows: Tensor

    def __init__(self) -> None:
        """Begins to count."""
        super().__init__()
        self.counts = True

    def is_counting(self, rows: Tensor) -> bool:
        """Returns whether these rows enter the statistics."""
        return self.training and self.counts and len(rows) > 0

    @torch.no_grad()
    def forget(self) -> None:
        """Lets all rows count less where they are more than ``WINDOW_ROWS``.

        Called before new rows are added, so that what several learners add to the same
        sums may be added up.
        """
        # As tensors, since reading a number would wait for a GPU; in float64, since a
        # deviation is a small difference of large sums.
        keeps = (WINDOW_ROWS / self.num_rows.double()).clamp(max=1.0)
        for buffer in self.buffers(recurse=False):
            if buffer is not self.num_rows:
                buffer.mul_(keeps)
        self.num_rows.clamp_(max=WINDOW_ROWS)


def forget_rows(net: nn.Module) -> None:
    """Calls ``forget`` of every part of a network."""
    for module in _running(net):
        module.forget()


def _running(net: nn.Module) -> list[RunningSums]:
    return [one for one in net.modules() if isinstance(one, RunningSums)]


@contextlib.contextmanager
def uncounted(net: nn.Module) -> Iterator[None]:
    """Context in which the rows that a network sees enter no statistics.

    For rows that are seen again, since each row is to count once. May be nested.
    """
    counted = [module for module in _running(net) if module.counts]
    for module in counted:
        module.counts = False
    try:
        yield
    finally:
        for module in counted:
            module.counts = True


_MOST = 10.0
# Deviations from the mean beyond which a number is an outlier: it counts as if it were
# there, so that one outlier hides nothing, and a new unit is followed within batches.
_OUTLIER = 100.0
# The share of the first rows by whose distances from their median outliers are told:
# deviations of so few rows would be those of an outlier itself.
_NEAREST = 0.9
# Such distances beyond which a number of the first batch is an outlier. Fewer than
# later on: numbers so far out would be most of a deviation of so few rows.
_FIRST_OUTLIER = 10.0
_EPSILON = 1e-8


class _Units(NamedTuple):
    """The mean and scale that rows are standardized by, ``[N]`` float32 each."""

    mean: Tensor
    deviation: Tensor


class _Kept(NamedTuple):
    """Units, and the statistics that they were computed from."""

    statistics: tuple[Tensor, ...]
    versions: tuple[int, ...]
    """How often each statistic had been changed in place by then."""
    units: _Units

    def is_of(self, statistics: tuple[Tensor, ...]) -> bool:
        """Returns whether the statistics are the same tensors, unchanged since."""
        return all(
            one is other and one._version == version
            for one, other, version in zip(
                statistics, self.statistics, self.versions, strict=True
            )
        )


class Standard(RunningSums):
    """Subtracts a running mean, divides by the running deviation, clips to +-10.

    The statistics are over the rows of the batches that the network was trained on. Of
    more than ``WINDOW_ROWS`` the older ones count less. Before the first rows, vectors
    are only clipped. An outlier of any batch counts as if it were nearer.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"
    (arXiv:2005.12729), section 3, about PPO's code for MuJoCo. Differs from the source:
    the statistics are the learner's and not the actors', so that a network that is
    resumed, copied or published has them.
    """

    total: Tensor
    squares: Tensor

    def __init__(self, num_inputs: int) -> None:
        """Begins without statistics: only the bound changes anything."""
        super().__init__()
        # In float64, since a deviation is a small difference of large sums.
        for name in ("total", "squares"):
            self.register_buffer(name, torch.zeros(num_inputs, dtype=torch.float64))
        self.register_buffer("num_rows", torch.zeros(1))
        self._kept: _Kept | None = None
        self._has_rows = False

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for a copy: everything except the cached units.

        A copied tensor counts its changes from 0, so that units cached with an old
        count could match other statistics.
        """
        return {**self.__dict__, "_kept": None}

    def forward(self, rows: Tensor) -> Tensor:
        """Returns ``[B, N]`` float32; in training, rows first enter the statistics."""
        if self.is_counting(rows):
            self._observe(rows)
        units = self._units()
        return ((rows - units.mean) / units.deviation).clamp(-_MOST, _MOST)

    @torch.no_grad()
    def follow(self, other: Standard) -> None:
        """Standardizes the first numbers as another module does, the rest not at all.

        Args:
            other: A module of as many numbers as this one, or fewer.
        """
        num_same = len(other.total)
        self.num_rows.copy_(other.num_rows)
        self.total.zero_()
        # For the rest, a mean of 0 and a deviation of 1.
        self.squares.copy_(other.num_rows.expand_as(self.squares))
        self.total[:num_same].copy_(other.total)
        self.squares[:num_same].copy_(other.squares)

    def _units(self) -> _Units:
        """Returns the mean and scale, computed once for each state of the statistics.

        Computing them takes a dozen operations, which take longer than a small layer.
        """
        statistics = (self.total, self.squares, self.num_rows)
        # An exported graph must contain the operations, and inference tensors must not
        # be cached for use in training.
        if is_exporting() or torch.is_inference_mode_enabled():
            return self._derived()
        kept = self._kept
        if kept is None or not kept.is_of(statistics):
            versions = tuple(tensor._version for tensor in statistics)
            kept = self._kept = _Kept(statistics, versions, self._derived())
        return kept.units

    def _derived(self) -> _Units:
        # Only operations that the export to ONNX supports.
        num_rows = self.num_rows.double()
        count = num_rows.clamp(min=1.0)
        mean = self.total / count
        # Subtracted, so that the variance without rows is 1.
        is_without = (num_rows - 1.0).clamp(max=0.0)
        variance = self.squares / count - mean * mean - is_without
        deviation = variance.clamp(min=_EPSILON).sqrt()
        return _Units(mean.float(), deviation.float())

    @torch.no_grad()
    def _observe(self, rows: Tensor) -> None:
        # Once known, it is not asked again: reading a number waits for a GPU.
        self._has_rows = self._has_rows or self.num_rows.item() > 0
        if self._has_rows:
            units = self._units()
            middle, reach = units.mean, _OUTLIER * units.deviation
        else:
            middle, reach = _first_range(rows)
        wide = rows.clamp(middle - reach, middle + reach).double()
        self.forget()
        self.num_rows += len(rows)
        self.total += wide.sum(0)
        self.squares += wide.square().sum(0)

    def _load_from_state_dict(self, *args: Any) -> None:
        """Also forgets whether there are rows: there may be none again."""
        self._has_rows = False
        super()._load_from_state_dict(*args)


def _first_range(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the middle of the first rows, and how far from it a number counts.

    A tenth of the rows, outliers, cannot change either. A number that hardly ever
    differs from its median is in units of 1, as before any rows.
    """
    middle = rows.median(0).values
    num_nearest = max(1, int(_NEAREST * len(rows)))
    near = (rows - middle).abs().kthvalue(num_nearest, 0).values
    return middle, torch.where(near > 0, _FIRST_OUTLIER * near, _OUTLIER)
