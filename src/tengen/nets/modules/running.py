"""Statistics of the rows that a network learns from, which follow slowly."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

__all__ = ["WINDOW_ROWS", "RunningSums", "forget_rows", "uncounted"]

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
