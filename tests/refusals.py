"""Expected errors: their class and what they name, and not their prose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["refused"]


@contextmanager
def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], *named: str
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Expects an error whose message contains each of ``named``.

    Name a field with its value, as in ``num_envs (0)``, or a file. The rest of a
    message is for people, and no test depends on it.
    """
    with pytest.raises(kind) as caught:
        yield caught
    for one in named:
        assert one in str(caught.value)
