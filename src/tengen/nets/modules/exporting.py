"""A flag, one per thread, that is set while an export traces a network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch

_is_exporting = ContextVar("is_exporting", default=False)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Restricts the networks of this thread to operations that an export can trace."""
    before = _is_exporting.set(True)
    try:
        yield
    finally:
        _is_exporting.reset(before)


def is_exporting() -> bool:
    """Returns whether operations are traced, for an export or by torch's compiler."""
    return _is_exporting.get() or torch.compiler.is_compiling()
