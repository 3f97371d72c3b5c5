"""Whether a network runs to be exported, when its operations become a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

__all__ = ["exporting", "is_exporting"]

_is_exporting = False


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Has networks use only operations that an export can follow. One thread."""
    global _is_exporting
    _is_exporting = True
    try:
        yield
    finally:
        _is_exporting = False


def is_exporting() -> bool:
    """Returns whether operations are followed, by tengen or by torch's compiler."""
    return _is_exporting or torch.compiler.is_compiling()
