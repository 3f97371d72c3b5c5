"""Errors that tests expect, by the name and the value that they begin with."""

from __future__ import annotations

import re

import pytest


def refused(error: type[BaseException], what: str) -> pytest.RaisesExc[BaseException]:
    """Returns a context that expects an error with ``name (value)`` in its message.

    The rest of a message is for people, and no test depends on it.
    """
    return pytest.raises(error, match=re.escape(what))
