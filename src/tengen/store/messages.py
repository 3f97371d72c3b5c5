"""What the store's servers and clients must agree on; `tengen.transport` carries it."""

from __future__ import annotations

from tengen.transport import Dialect

__all__ = ["MAX_KEYS", "STORE", "VERSION", "wait_for_name_s"]

VERSION = 7
STORE = Dialect("store", VERSION)
MAX_KEYS = 16384
"""The most keys in one command; more keys need several commands."""

# The server notices a killed client within moments; then its name is free.
_WAIT_FOR_NAME_S = 5.0


def wait_for_name_s(timeout_s: float | None) -> float:
    """Returns how long to wait for a writer's name to be free, within bounds."""
    if timeout_s is None:
        return _WAIT_FOR_NAME_S
    return min(max(0.0, timeout_s), _WAIT_FOR_NAME_S)
