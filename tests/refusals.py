"""Checks of the class of an error and of the names in its message, not its wording."""

from contextlib import contextmanager

import pytest


@contextmanager
def refused(kind, *named):
    """Expects an error whose message contains each of ``named``.

    Each string is a field with its value, such as ``num_envs (0)``, or a file. Tests
    must not depend on the other words of a message.
    """
    with pytest.raises(kind) as caught:
        yield caught
    for one in named:
        assert one in str(caught.value)
