"""Standardization of vectors with their running mean and standard deviation.

Legend: B batch, N entries of an observation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tengen.nets.modules.exporting import is_exporting

WINDOW_ROWS = 1_000_000.0
"""Maximum total weight of the rows in the statistics. After that, the weight of a row
decreases by a factor of e per ``WINDOW_ROWS`` new rows."""


class RunningSums(nn.Module):
    """Base class of modules that store sums over rows in buffers.

    Averaging the sums of several copies yields statistics over the rows of all copies.
    In training mode, a module adds its input rows to the sums, except inside
    ``uncounted``, and only some of them inside ``counting``.

    Attributes:
        num_rows: Total weight of the rows, float32, at most ``WINDOW_ROWS`` plus the
            size of the last batch.
    """

    num_rows: Tensor

    def __init__(self) -> None:
        """Creates a module that adds its input rows to the statistics."""
        super().__init__()
        self.counts = True
        self.is_counted: Tensor | None = None

    def count(self, rows: Tensor) -> None:
        """Adds input rows ``[B, ...]`` to the statistics, if they must be added."""
        if not (self.training and self.counts):
            return
        is_counted = self.is_counted
        # The mask is for all steps; a network that evaluates one at a time counts all.
        if is_counted is not None and len(is_counted) == len(rows):
            rows = rows[is_counted]
        if len(rows) > 0:
            self.observe(rows)

    def observe(self, rows: Tensor) -> None:
        """Adds at least one row ``[B, ...]`` to the statistics."""
        raise NotImplementedError

    @torch.no_grad()
    def forget(self) -> None:
        """Scales all sums down to a total weight of at most ``WINDOW_ROWS``.

        Called before new rows are added: several learners then scale equal sums, and
        can add up the rows of each.
        """
        # Do not read the value, because that would wait for the GPU. Use float64,
        # because a standard deviation is a small difference of large sums.
        keeps = (WINDOW_ROWS / self.num_rows.double()).clamp(max=1.0)
        for buffer in self.buffers(recurse=False):
            if buffer is not self.num_rows:
                buffer.mul_(keeps)
        self.num_rows.clamp_(max=WINDOW_ROWS)


def forget_rows(net: nn.Module) -> None:
    """Calls ``forget`` on every ``RunningSums`` module of a network."""
    for module in _running(net):
        module.forget()


def has_statistics(net: nn.Module) -> bool:
    """Returns whether a network computes statistics of its inputs."""
    return bool(_running(net))


def _running(net: nn.Module) -> list[RunningSums]:
    return [one for one in net.modules() if isinstance(one, RunningSums)]


@contextlib.contextmanager
def uncounted(net: nn.Module) -> Iterator[None]:
    """Context in which a network does not add its input rows to its statistics.

    Used for rows that are evaluated again, so that each row counts once. Can be nested.
    """
    counted = [module for module in _running(net) if module.counts]
    for module in counted:
        module.counts = False
    try:
        yield
    finally:
        for module in counted:
            module.counts = True


@contextlib.contextmanager
def counting(net: nn.Module, is_counted: Tensor | None) -> Iterator[None]:
    """Context in which a network adds only some input rows to its statistics.

    Args:
        net: The network.
        is_counted: Mask ``[T, B]`` of inputs ``[T, B, ...]``; None for all rows.
    """
    if is_counted is None:
        yield
        return
    modules = _running(net)
    before = [module.is_counted for module in modules]
    for module in modules:
        module.is_counted = is_counted.flatten()
    try:
        yield
    finally:
        for module, mask in zip(modules, before, strict=True):
            module.is_counted = mask


def counted(net: nn.Module) -> Tensor | None:
    """Returns the flat mask ``[T * B]`` of the context ``counting``, or None."""
    return next((module.is_counted for module in _running(net)), None)


_MOST = 10.0
# Values enter the statistics clipped to this number of deviations from the mean. So no
# outlier dominates the statistics, but they adapt to a new scale within a few batches.
_OUTLIER = 100.0
# The spread of the first batch is this quantile of the distances from the median,
# because an outlier would dominate the standard deviation of few rows.
_NEAREST = 0.9
# The first batch is clipped to this multiple of its spread, smaller than _OUTLIER
# because large values would dominate the deviation of few rows.
_FIRST_OUTLIER = 10.0
_EPSILON = 1e-8


class _Units(NamedTuple):
    """The mean and standard deviation for standardizing rows, ``[N]`` float32."""

    mean: Tensor
    deviation: Tensor


class _Kept(NamedTuple):
    """Cached ``_Units``, and the statistics from which they were computed."""

    statistics: tuple[Tensor, ...]
    versions: tuple[int, ...]
    """Version counter of each statistics tensor at the time of the computation."""
    units: _Units

    def is_of(self, statistics: tuple[Tensor, ...]) -> bool:
        """Returns whether the cache is valid for ``statistics``."""
        return all(
            one is other and one._version == version
            for one, other, version in zip(
                statistics, self.statistics, self.versions, strict=True
            )
        )


class Standard(RunningSums):
    """Subtracts the running mean, divides by the running deviation, clips to +-10.

    The statistics are over the rows of the batches that the network was trained on;
    beyond ``WINDOW_ROWS`` rows, older rows have less weight. Outliers are clipped in
    the statistics. Before the first batch, vectors are only clipped.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"
    (arXiv:2005.12729), section 3, about PPO's code for MuJoCo. Differs from the source:
    the learner computes the statistics, not the actors, so that they are part of a
    resumed, copied or published network.
    """

    total: Tensor
    squares: Tensor

    def __init__(self, num_inputs: int) -> None:
        """Creates a module without statistics, which only clips."""
        super().__init__()
        # Use float64, because a standard deviation is a small difference of large sums.
        for name in ("total", "squares"):
            self.register_buffer(name, torch.zeros(num_inputs, dtype=torch.float64))
        self.register_buffer("num_rows", torch.zeros(1))
        self._kept: _Kept | None = None
        self._has_rows = False

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for copying the module, without the cache.

        The version counter of a copied tensor starts at 0, so an old cache could match
        different statistics.
        """
        return {**self.__dict__, "_kept": None}

    def forward(self, rows: Tensor) -> Tensor:
        """Standardizes rows ``[B, N]``; in training, first updates the statistics."""
        self.count(rows)
        units = self._units()
        return ((rows - units.mean) / units.deviation).clamp(-_MOST, _MOST)

    @torch.no_grad()
    def follow(self, other: Standard) -> None:
        """Copies the statistics of ``other``; leaves additional entries unstandardized.

        Args:
            other: A module with at most as many entries as this module.
        """
        num_same = len(other.total)
        self.num_rows.copy_(other.num_rows)
        self.total.zero_()
        # The remaining entries get a mean of 0 and a deviation of 1.
        self.squares.copy_(other.num_rows.expand_as(self.squares))
        self.total[:num_same].copy_(other.total)
        self.squares[:num_same].copy_(other.squares)

    def _units(self) -> _Units:
        """Returns the mean and deviation, cached until the statistics change.

        The computation is a dozen operations, which take longer than a small layer.
        """
        statistics = (self.total, self.squares, self.num_rows)
        # Bypass the cache in exports, whose graphs must contain the operations, and in
        # inference mode, whose tensors must not be used in training.
        if is_exporting() or torch.is_inference_mode_enabled():
            return self._derived()
        kept = self._kept
        if kept is None or not kept.is_of(statistics):
            versions = tuple(tensor._version for tensor in statistics)
            kept = self._kept = _Kept(statistics, versions, self._derived())
        return kept.units

    def _derived(self) -> _Units:
        # Use only operations that the export to ONNX supports.
        num_rows = self.num_rows.double()
        count = num_rows.clamp(min=1.0)
        mean = self.total / count
        # -1 if there are no rows, so that the variance is 1; otherwise 0.
        is_without = (num_rows - 1.0).clamp(max=0.0)
        variance = self.squares / count - mean * mean - is_without
        deviation = variance.clamp(min=_EPSILON).sqrt()
        return _Units(mean.float(), deviation.float())

    @torch.no_grad()
    def observe(self, rows: Tensor) -> None:
        """See ``RunningSums.observe``; clips outliers."""
        # Read num_rows only until it is above 0, because reading it waits for the GPU.
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
        """Loads the state; resets ``_has_rows``, because the state may have no rows."""
        self._has_rows = False
        super()._load_from_state_dict(*args)


def _first_range(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the median of the first rows, and the distance at which to clip them.

    Outliers in up to a tenth of the rows hardly affect the two results. An entry that
    rarely differs from its median is assumed to have a deviation of 1.
    """
    middle = rows.median(0).values
    num_nearest = max(1, int(_NEAREST * len(rows)))
    near = (rows - middle).abs().kthvalue(num_nearest, 0).values
    return middle, torch.where(near > 0, _FIRST_OUTLIER * near, _OUTLIER)
