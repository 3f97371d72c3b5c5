"""A flag that is set while a network's operations are traced for an export."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

__all__ = ["exporting", "is_exporting"]

_is_exporting = False


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Restricts networks to operations that an export can trace. Not thread-safe."""
    global _is_exporting
    _is_exporting = True
    try:
        yield
    finally:
        _is_exporting = False


def is_exporting() -> bool:
    """Returns whether operations are traced, for an export or by torch's compiler."""
    return _is_exporting or torch.compiler.is_compiling()
