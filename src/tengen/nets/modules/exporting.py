"""A global flag that is set while an export traces a network's operations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

__all__ = ["exporting", "is_exporting"]

_is_exporting = False


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Context in which networks use only traceable operations. Not thread-safe."""
    global _is_exporting
    _is_exporting = True
    try:
        yield
    finally:
        _is_exporting = False


def is_exporting() -> bool:
    """Returns whether an export or torch's compiler is tracing operations."""
    return _is_exporting or torch.compiler.is_compiling()
