"""Errors in tests: their kind, and what they name; not their prose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["refused"]


@contextmanager
def refused(
    kind: type[BaseException], *named: str
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Expects an error whose message names these: a field with its value, a file."""
    with pytest.raises(kind) as caught:
        yield caught
    for one in named:
        assert one in str(caught.value)
